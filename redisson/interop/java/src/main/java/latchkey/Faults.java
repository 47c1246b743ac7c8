package latchkey;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A worker of the module faults: it plays random programs with Redisson's locks, on the names that the workers in Go use, and writes
 * a history in their format. Its setup is in the environment, its orders come on standard input; faults/worker/setup.go has both.
 */
public final class Faults {
    private static final Gson JSON = new Gson();
    private static final int THREADS = 4;
    /** How many nanoseconds longer than it said Redisson may wait: that is not judged. */
    private static final long SLACK = 5_000_000_000L;
    /** In place of a token: others have the lock. */
    private static final long BUSY = -1;

    private final JsonObject setup;
    private final RedissonClient redisson;
    private final FileOutputStream log;
    private final AtomicLong calls = new AtomicLong();
    private final PrintStream out = System.out;
    private volatile boolean healed;

    private Faults(JsonObject setup) throws IOException {
        this.setup = setup;
        String name = setup.get("Name").getAsString();
        log = new FileOutputStream(setup.get("Dir").getAsString() + "/" + name + ".log", true);
        note(Map.of("op", "start", "p", name, "pid", ProcessHandle.current().pid()));
        URI url = URI.create(setup.getAsJsonArray("Servers").get(0).getAsJsonObject().get("URL").getAsString());
        Config config = Config.fromYAML(JSON.toJson(Map.of(
                "threads", THREADS,
                "nettyThreads", 2,
                "fairLockWaitTimeout", setup.get("FairWait").getAsLong() / 1_000_000,
                "lockWatchdogTimeout", setup.get("Watchdog").getAsLong() / 1_000_000,
                "singleServerConfig", Map.of(
                        "address", "redis://" + url.getHost() + ":" + url.getPort(),
                        "connectionMinimumIdleSize", 2,
                        "connectionPoolSize", 8,
                        "timeout", 1000,
                        "retryAttempts", 2))));
        redisson = Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        Faults worker = new Faults(JsonParser.parseString(System.getenv("LATCHKEY_FAULTS_WORKER")).getAsJsonObject());
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                worker.obey(JsonParser.parseString(line).getAsJsonObject());
            }
        } finally {
            Runtime.getRuntime().halt(0);
        }
    }

    private void obey(JsonObject order) {
        switch (order.get("Do").getAsString()) {
            case "round" -> round(order);
            case "heal" -> healed = true;
            case "end" -> {
                redisson.shutdown();
                reply("end", order);
            }
            default -> { } // is for workers in Go
        }
    }

    private void round(JsonObject order) {
        healed = false;
        List<Thread> players = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int id = i;
            Thread player = new Thread(() -> play(order, id));
            players.add(player);
            player.start();
        }
        new Thread(() -> {
            for (Thread player : players) {
                try {
                    player.join();
                } catch (InterruptedException e) {
                    return;
                }
            }
            reply("heal", order);
        }).start();
    }

    private void reply(String what, JsonObject order) {
        synchronized (out) {
            out.println(JSON.toJson(Map.of("Do", what, "Round", order.get("Round").getAsInt(), "Error", "")));
            out.flush();
        }
    }

    private void play(JsonObject order, int id) {
        int round = order.get("Round").getAsInt();
        Random random = new Random(setup.get("Seed").getAsLong() + 1000L * round + id);
        List<String> kinds = new ArrayList<>();
        order.getAsJsonArray("Mix").forEach(kind -> kinds.add(kind.getAsString()));
        for (int n = 0; !healed; n++) {
            program(order, id, n, kinds.get(random.nextInt(kinds.size())), random, false);
        }
        for (String kind : kinds) {
            for (int n = 0; !program(order, id, 1_000_000 + n, kind, random, true); n++) {
                sleep(20);
            }
        }
    }

    /** Reports whether it was inside. */
    private boolean program(JsonObject order, int id, int n, String kind, Random random, boolean must) {
        long call = calls.incrementAndGet();
        String names = kind.equals("read") || kind.equals("write") ? "rw" : kind;
        String key = "r" + order.get("Round").getAsInt() + ":" + names + ":" + random.nextInt(order.get("Keys").getAsInt());
        boolean bounded = !must && random.nextInt(2) == 0;
        long wait = bounded ? random.nextInt(400) : -1;
        note(Map.of("op", "ask", "c", call, "kind", kind, "keys", List.of(key), "servers", List.of("s0"), "w", id,
                "owner", setup.get("Name").getAsString() + "/" + id + "/" + order.get("Round").getAsInt() + "/" + n,
                "wait", bounded ? SLACK + wait * 1_000_000 : -1, "lease", setup.get("Watchdog").getAsLong()));
        RLock lock;
        long token = 0;
        try {
            lock = lock(kind, key);
            if (kind.equals("fenced")) {
                token = fenced(lock, wait);
            } else if (!bounded) {
                lock.lock();
            } else if (!lock.tryLock(wait, TimeUnit.MILLISECONDS)) {
                token = BUSY;
            }
            if (token == BUSY) {
                note(Map.of("op", "busy", "c", call, "error", "busy"));
                return false;
            }
        } catch (Exception e) {
            note(Map.of("op", "failed", "c", call, "error", String.valueOf(e)));
            sleep(10);
            return false;
        }
        note(Map.of("op", "enter", "c", call, "token", token));
        sleep(random.nextInt(3));
        note(Map.of("op", "look", "c", call)); // Redisson tells nobody of a loss; the work is short for the lease
        note(Map.of("op", "exit", "c", call));
        try {
            lock.unlock();
            note(Map.of("op", "released", "c", call));
        } catch (IllegalMonitorStateException e) {
            note(Map.of("op", "notheld", "c", call, "error", String.valueOf(e)));
        } catch (Exception e) {
            note(Map.of("op", "unreleased", "c", call, "error", String.valueOf(e)));
        }
        return true;
    }

    /** Takes a fenced lock, with a wait below zero for as long as it takes, and returns its token. */
    private static long fenced(RLock lock, long wait) throws ReflectiveOperationException {
        if (wait < 0) {
            return (Long) lock.getClass().getMethod("lockAndGetToken").invoke(lock);
        }
        Object token = lock.getClass().getMethod("tryLockAndGetToken", long.class, TimeUnit.class).invoke(lock, wait, TimeUnit.MILLISECONDS);
        return token == null ? BUSY : (Long) token;
    }

    /** Old versions of Redisson have no fenced lock, so that it is found by its name. */
    private RLock lock(String kind, String key) throws ReflectiveOperationException {
        return switch (kind) {
            case "fair" -> redisson.getFairLock(key);
            case "spin" -> redisson.getSpinLock(key);
            case "fenced" -> (RLock) RedissonClient.class.getMethod("getFencedLock", String.class).invoke(redisson, key);
            case "read" -> redisson.getReadWriteLock(key).readLock();
            case "write" -> redisson.getReadWriteLock(key).writeLock();
            default -> redisson.getLock(key);
        };
    }

    /** Writes a line of the history, by one write to the file. The time is that of CLOCK_MONOTONIC. */
    private void note(Map<String, Object> event) {
        JsonObject line = JSON.toJsonTree(event).getAsJsonObject();
        line.addProperty("t", System.nanoTime());
        try {
            log.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
