package latchkey;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Does what job.go describes, one JSON object a line on standard input, and answers each with one line of JSON. It is the twin
 * of load.go and hold.go: what they count and when, it does.
 */
public final class Bench {
    private static final long DRAIN = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int IN_FLIGHT = 64;
    private static final int PRIMERS = 10 * IN_FLIGHT;

    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
    private final List<RLock> held = new ArrayList<>();

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Bench bench = new Bench();
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                out.println(new Gson().toJson(bench.answer(JsonParser.parseString(line).getAsJsonObject())));
            }
        } finally {
            Runtime.getRuntime().halt(0); // whoever gave the jobs is gone; so are we, with nothing tidied up
        }
    }

    private JsonObject answer(JsonObject job) {
        try {
            switch (job.get("do").getAsString()) {
                case "load":
                    return new Load(client(job), job).run();
                case "hold":
                    return hold(client(job), job);
                default:
                    throw new IllegalArgumentException("no job is called " + job.get("do"));
            }
        } catch (Exception e) {
            JsonObject failed = new JsonObject();
            failed.addProperty("error", e.toString());
            return failed;
        }
    }

    /** As Redisson's README opens it, for one server. */
    private RedissonClient client(JsonObject job) {
        return clients.computeIfAbsent(job.get("addr").getAsString(), address -> {
            Config config = new Config();
            config.useSingleServer().setAddress("redis://" + address);
            return Redisson.create(config);
        });
    }

    static int number(JsonObject job, String name) {
        return job.has(name) ? job.get(name).getAsInt() : 0;
    }

    /** Takes locks and keeps them until the process ends. */
    private JsonObject hold(RedissonClient client, JsonObject job) throws InterruptedException {
        String key = job.get("key").getAsString();
        int count = number(job, "count");
        take(client, key + ":p", PRIMERS);
        long bytes = memory();
        int threads = ManagementFactory.getThreadMXBean().getThreadCount();
        long start = System.nanoTime();
        take(client, key, count - PRIMERS);
        JsonObject result = new JsonObject();
        result.addProperty("done", count);
        result.addProperty("nanos", System.nanoTime() - start);
        result.addProperty("bytes", (double) (memory() - bytes) / (count - PRIMERS));
        result.addProperty("goroutines", (double) (ManagementFactory.getThreadMXBean().getThreadCount() - threads) / (count - PRIMERS));
        return result;
    }

    private void take(RedissonClient client, String key, int count) throws InterruptedException {
        Semaphore inFlight = new Semaphore(IN_FLIGHT);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        for (int i = 0; i < count; i++) {
            RLock lock = client.getLock(key + ":" + i);
            held.add(lock);
            inFlight.acquire();
            lock.lockAsync(i + 1L).whenComplete((nothing, thrown) -> {
                if (thrown != null) {
                    failure.set(thrown);
                }
                inFlight.release();
            });
        }
        inFlight.acquire(IN_FLIGHT);
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
    }

    private static long memory() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    /** Callers that lock and unlock, each its own key or all the same, until the time is over. */
    private static final class Load {
        private final List<Caller> callers = new ArrayList<>();
        private final long away;
        private final long length;
        private final boolean oneKey;
        private final AtomicInteger inside = new AtomicInteger();
        private volatile boolean over;
        private volatile int owner;
        private volatile long released;
        private volatile long since;

        Load(RedissonClient client, JsonObject job) {
            away = number(job, "away");
            length = TimeUnit.MILLISECONDS.toNanos(number(job, "millis"));
            since = TimeUnit.MILLISECONDS.toNanos(number(job, "since"));
            oneKey = job.has("one_key") && job.get("one_key").getAsBoolean();
            for (int i = 0; i < number(job, "callers"); i++) {
                callers.add(new Caller(i + 1, client, job.get("key").getAsString() + (oneKey ? "" : ":" + i)));
            }
        }

        JsonObject run() throws InterruptedException {
            long start = System.nanoTime();
            since += start;
            callers.forEach(Thread::start);
            TimeUnit.NANOSECONDS.sleep(length);
            over = true;
            long nanos = System.nanoTime() - start;
            TimeUnit.NANOSECONDS.sleep(DRAIN);
            for (Caller caller : callers) {
                while (caller.isAlive()) {
                    if (caller.waiting) {
                        caller.interrupt();
                    }
                    caller.join(5);
                }
            }
            return sum(nanos);
        }

        private JsonObject sum(long nanos) {
            Numbers times = new Numbers();
            Numbers gaps = new Numbers();
            long longest = 0;
            int changes = 0;
            int starved = 0;
            int failed = 0;
            int overlaps = 0;
            String failure = "";
            for (Caller caller : callers) {
                times.addAll(caller.times);
                gaps.addAll(caller.gaps);
                longest = Math.max(longest, caller.longest);
                changes += caller.gaps.size;
                starved += caller.served ? 0 : 1;
                failed += caller.failed;
                overlaps += caller.overlaps;
                failure = caller.failure.isEmpty() ? failure : caller.failure;
            }
            JsonObject result = new JsonObject();
            result.addProperty("done", times.size);
            result.addProperty("nanos", nanos);
            result.addProperty("failed", failed);
            result.addProperty("failure", failure);
            result.add("times", new Gson().toJsonTree(times.percentiles()));
            result.addProperty("changes", changes);
            result.add("gaps", new Gson().toJsonTree(gaps.percentiles()));
            result.addProperty("longest", longest);
            result.addProperty("starved", starved);
            result.addProperty("overlap", overlaps);
            return result;
        }

        private final class Caller extends Thread {
            private final int id;
            private final RedissonClient client;
            private final String key;
            private final Numbers times = new Numbers();
            private final Numbers gaps = new Numbers();
            private long longest;
            private int failed;
            private int overlaps;
            private String failure = "";
            private boolean served;
            private volatile boolean waiting;

            Caller(int id, RedissonClient client, String key) {
                this.id = id;
                this.client = client;
                this.key = key;
            }

            @Override
            public void run() {
                RLock lock = client.getLock(key);
                while (!over) {
                    try {
                        if (!once(lock)) {
                            return;
                        }
                        if (away > 0) {
                            Thread.sleep(away);
                        }
                    } catch (InterruptedException e) {
                        return;
                    } catch (RuntimeException e) {
                        if (over) { // it was interrupted on its way
                            return;
                        }
                        failed++;
                        failure = e.toString();
                    }
                }
            }

            /** Locks and unlocks. What took longer than the job does not count. */
            private boolean once(RLock lock) throws InterruptedException {
                long start = System.nanoTime();
                waiting = true;
                try {
                    lock.lockInterruptibly();
                } finally {
                    waiting = false;
                    if (over) {
                        longest = Math.max(longest, System.nanoTime() - start);
                    }
                }
                if (over) {
                    lock.unlock();
                    return false;
                }
                long now = System.nanoTime();
                served = served || now >= since;
                if (oneKey) {
                    enter(now, now - start);
                }
                lock.unlock();
                if (!oneKey) {
                    times.add(System.nanoTime() - start);
                }
                return true;
            }

            private void enter(long now, long waited) {
                if (inside.incrementAndGet() != 1) {
                    overlaps++;
                }
                times.add(waited);
                longest = Math.max(longest, waited);
                if (owner != id && owner != 0) {
                    gaps.add(now - released);
                }
                owner = id;
                released = System.nanoTime();
                inside.decrementAndGet();
            }
        }
    }

    /** A list of numbers that are no objects. */
    private static final class Numbers {
        private long[] all = new long[4096];
        private int size;

        void add(long number) {
            if (size == all.length) {
                all = Arrays.copyOf(all, 2 * size);
            }
            all[size++] = number;
        }

        void addAll(Numbers others) {
            for (int i = 0; i < others.size; i++) {
                add(others.all[i]);
            }
        }

        /** The median, the 99th percentile and the maximum, and nothing of nothing. */
        long[] percentiles() {
            if (size == 0) {
                return new long[0];
            }
            long[] sorted = Arrays.copyOf(all, size);
            Arrays.sort(sorted);
            return new long[] {sorted[size / 2], sorted[size * 99 / 100], sorted[size - 1]};
        }
    }
}
