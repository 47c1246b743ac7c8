package latchkey;

import com.mongodb.ReadConcern;
import com.mongodb.WriteConcern;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.mongo.MongoLockProvider;
import org.bson.Document;

/**
 * Takes and gives back locks with ShedLock's MongoLockProvider as it is told, one command a line on standard input, with an
 * answer in one line on standard output.
 *
 * <pre>
 * lock NAME MILLIS          locked, or busy: for at most so long
 * extend NAME MILLIS        extended, or gone: the lock of that name, which is the extended one then
 * unlock NAME               unlocked
 * clock MILLIS              set: ShedLock's clock is ahead by so much from now on
 * raise NAME ROUNDS FILE    raised: raises the number in the file so often under the lock, in a way that shows an overlap
 * </pre>
 *
 * What goes wrong is answered with "error" and its text. Its arguments are the URI of the server, the database and the collection. With
 * the only argument "server" it is a server itself, and says its address.
 */
public final class Peer {
    private final MongoLockProvider provider;
    private final Map<String, SimpleLock> locks = new HashMap<>();

    private Peer(MongoCollection<Document> collection) {
        provider = new MongoLockProvider(
                collection.withWriteConcern(WriteConcern.MAJORITY).withReadConcern(ReadConcern.MAJORITY));
    }

    public static void main(String[] args) throws Exception {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            if (args[0].equals("server")) {
                System.out.println(new MongoServer(new MemoryBackend().version(new Recent())).bind().toString().replaceAll("^.*/", ""));
                in.readLine(); // until whoever started it is gone
                return;
            }
            MongoClient client = MongoClients.create(args[0]);
            Peer peer = new Peer(client.getDatabase(args[1]).getCollection(args[2]));
            System.out.println("ready");
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println(peer.obey(line.split(" ")));
            }
        } finally {
            Runtime.getRuntime().halt(0);
        }
    }

    /** The Go driver refuses servers that call themselves older than MongoDB 4.4; what the locks need is there. */
    private static final class Recent implements MongoVersion {
        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    }

    private String obey(String[] words) {
        try {
            return switch (words[0]) {
                case "lock" -> lock(words[1], Duration.ofMillis(Long.parseLong(words[2]))) ? "locked" : "busy";
                case "extend" -> extend(words[1], Duration.ofMillis(Long.parseLong(words[2]))) ? "extended" : "gone";
                case "unlock" -> {
                    locks.remove(words[1]).unlock();
                    yield "unlocked";
                }
                case "clock" -> {
                    ClockProvider.setClock(Clock.offset(Clock.systemUTC(), Duration.ofMillis(Long.parseLong(words[1]))));
                    yield "set";
                }
                case "raise" -> {
                    raise(words[1], Integer.parseInt(words[2]), Path.of(words[3]));
                    yield "raised";
                }
                default -> "error unknown command " + words[0];
            };
        } catch (Exception e) {
            return "error " + e;
        }
    }

    private boolean lock(String name, Duration atMost) {
        Optional<SimpleLock> got = provider.lock(new LockConfiguration(ClockProvider.now(), name, atMost, Duration.ZERO));
        got.ifPresent(l -> locks.put(name, l));
        return got.isPresent();
    }

    private boolean extend(String name, Duration atMost) {
        Optional<SimpleLock> got = locks.remove(name).extend(atMost, Duration.ZERO);
        got.ifPresent(l -> locks.put(name, l));
        return got.isPresent();
    }

    private void raise(String name, int rounds, Path file) throws Exception {
        for (int done = 0; done < rounds; ) {
            if (!lock(name, Duration.ofMinutes(1))) {
                Thread.sleep(5);
                continue;
            }
            int n = Integer.parseInt(Files.readString(file).trim());
            Thread.sleep(1); // for another one to come in between, if it can
            Files.writeString(file, Integer.toString(n + 1));
            locks.remove(name).unlock();
            done++;
        }
    }
}
