package latchkey;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/**
 * Does to Curator's locks what it is told, one command a line on standard input, and answers each with one line on standard output, in
 * the order in which the answers come. The words of a line are separated by tabs:
 *
 * <pre>
 * 1   main   acquire   mutex   /locks/order:1   3000     takes the lock within 3 seconds; the answer is true or false
 * 2   main   release   mutex   /locks/order:1
 * 3   main   token     mutex   /locks/order:1            the czxid of the first node in line
 * 4   main   count     write   /locks/order:1   file   50    adds one to the number in the file, 50 times, each time under the lock
 * </pre>
 *
 * The second word is a thread: commands of one thread run in that thread, one after the other. The locks are mutex, read and write; an
 * object of Curator's is made once for each path, so that a thread re-enters. An answer is the number of its command, ok or error, and
 * the value.
 */
public final class Peer {
    private static final String OK = "ok";

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Map<String, Executor> threads = new ConcurrentHashMap<>();
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    private final Map<String, InterProcessReadWriteLock> readWriteLocks = new ConcurrentHashMap<>();
    private final CuratorFramework client;

    private Peer(CuratorFramework client) {
        this.client = client;
    }

    /** The arguments are the servers and the session's timeout in milliseconds. */
    public static void main(String[] args) throws IOException {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
                args[0], Integer.parseInt(args[1]), 5000, new RetryOneTime(100));
        client.start();
        new Peer(client).listen();
        client.close();
        System.exit(0);
    }

    private void listen() throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t", -1);
            threads.computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor())
                    .execute(() -> answer(words));
        }
    }

    private void answer(String[] words) {
        String[] answer;
        try {
            answer = new String[] {words[0], OK, obey(words)};
        } catch (Exception e) {
            answer = new String[] {words[0], "error", e.toString().replaceAll("\\s+", " ")};
        }
        synchronized (out) {
            out.println(String.join("\t", answer));
            out.flush();
        }
    }

    private String obey(String[] words) throws Exception {
        InterProcessMutex lock = lock(words[3], words[4]);
        switch (words[2]) {
            case "acquire":
                return Boolean.toString(lock.acquire(Long.parseLong(words[5]), TimeUnit.MILLISECONDS));
            case "release":
                lock.release();
                return OK;
            case "token":
                Iterator<String> nodes = lock.getParticipantNodes().iterator();
                return Long.toString(client.checkExists().forPath(nodes.next()).getCzxid());
            case "count":
                count(lock, words[3].equals("read"), Path.of(words[5]), Integer.parseInt(words[6]));
                return OK;
            default:
                throw new IllegalArgumentException(words[2]);
        }
    }

    private InterProcessMutex lock(String kind, String path) {
        if (kind.equals("mutex")) {
            return mutexes.computeIfAbsent(path, p -> new InterProcessMutex(client, p));
        }
        var lock = readWriteLocks.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
        return kind.equals("read") ? lock.readLock() : lock.writeLock();
    }

    private static void count(InterProcessMutex lock, boolean reads, Path file, int rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            lock.acquire();
            try {
                String before = Files.readString(file);
                Thread.sleep(1);
                if (reads && !Files.readString(file).equals(before)) {
                    throw new IllegalStateException("somebody has written while this thread held the read lock");
                }
                if (!reads) {
                    Files.writeString(file, Long.toString(Long.parseLong(before) + 1));
                }
            } finally {
                lock.release();
            }
        }
    }
}
