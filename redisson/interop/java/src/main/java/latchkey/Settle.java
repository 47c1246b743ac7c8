package latchkey;

import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Settles an order under the lock that the Go program examples/start/java takes, too: docs/start/java.md runs both. */
public final class Settle {
    public static void main(String[] args) throws InterruptedException {
        String id = args[0];
        Config config = new Config();
        config.useSingleServer().setAddress("redis://localhost:6379");
        RedissonClient redisson = Redisson.create(config);

        RLock lock = redisson.getLock("order:" + id);
        if (lock.tryLock(2, TimeUnit.SECONDS)) { // renewed until unlock
            try {
                System.out.println("Java settles order " + id);
                Thread.sleep(10_000); // the work
            } finally {
                lock.unlock();
            }
        } else {
            System.out.println("Java: order " + id + " is busy");
        }
        redisson.shutdown();
    }
}
