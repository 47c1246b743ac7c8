package latchkey;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.SingleConnectionDataSource;

/**
 * Obeys the lines of standard input, one at a time, and answers each with a line: done, busy, gone, or what was thrown. The words of
 * a line are separated by blanks and percent-encoded.
 *
 * <pre>
 * open URL USER TABLE HOLDER db|client   the provider, with usingDbTime or without
 * lock NAME MOST LEAST                   lockAtMostFor and lockAtLeastFor in milliseconds
 * extend NAME MOST
 * unlock NAME
 * count NAME FILE TIMES                  adds to the number in a file, each time under the lock
 * </pre>
 */
public final class Peer {
    private JdbcTemplateLockProvider provider;
    private final Map<String, SimpleLock> held = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = Arrays.stream(line.split(" "))
                    .map(word -> URLDecoder.decode(word, StandardCharsets.UTF_8))
                    .toArray(String[]::new);
            String answer;
            try {
                answer = peer.obey(words);
            } catch (Exception e) {
                answer = e.toString().replace('\n', ' ');
            }
            System.out.println("answer " + answer);
        }
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "open":
                open(words[1], words[2], words[3], words[4], words[5].equals("db"));
                return "done";
            case "lock":
                return keep(words[1], lock(words[1], Long.parseLong(words[2]), Long.parseLong(words[3])), "busy");
            case "extend":
                SimpleLock old = held.remove(words[1]);
                return keep(words[1], old.extend(Duration.ofMillis(Long.parseLong(words[2])), Duration.ZERO), "gone");
            case "unlock":
                held.remove(words[1]).unlock();
                return "done";
            case "count":
                count(words[1], Path.of(words[2]), Integer.parseInt(words[3]));
                return "done";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void open(String url, String user, String table, String holder, boolean dbTime) {
        SingleConnectionDataSource source = new SingleConnectionDataSource(url, user, "", true);
        JdbcTemplateLockProvider.Configuration.Builder builder = JdbcTemplateLockProvider.Configuration.builder()
                .withJdbcTemplate(new JdbcTemplate(source))
                .withTableName(table)
                .withLockedByValue(holder);
        provider = new JdbcTemplateLockProvider((dbTime ? builder.usingDbTime() : builder).build());
    }

    private Optional<SimpleLock> lock(String name, long most, long least) {
        return provider.lock(new LockConfiguration(Instant.now(), name, Duration.ofMillis(most), Duration.ofMillis(least)));
    }

    private String keep(String name, Optional<SimpleLock> lock, String otherwise) {
        lock.ifPresent(l -> held.put(name, l));
        return lock.isPresent() ? "done" : otherwise;
    }

    private void count(String name, Path file, int times) throws Exception {
        for (int i = 0; i < times; i++) {
            Optional<SimpleLock> lock = lock(name, 60_000, 0);
            while (lock.isEmpty()) {
                Thread.sleep(2);
                lock = lock(name, 60_000, 0);
            }
            int number = Integer.parseInt(Files.readString(file));
            Thread.sleep(1);
            Files.writeString(file, Integer.toString(number + 1));
            lock.get().unlock();
        }
    }
}
