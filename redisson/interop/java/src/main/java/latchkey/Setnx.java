package latchkey;

import com.baomidou.lock.LockInfo;
import com.baomidou.lock.LockTemplate;
import com.baomidou.lock.executor.RedisTemplateLockExecutor;
import com.baomidou.lock.spring.boot.autoconfigure.Lock4jProperties;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/** A client of one Redis that makes locks of the libraries that take them with SET NX PX. */
public final class Setnx {
    private final LettuceConnectionFactory connections;
    private final StringRedisTemplate redis;

    Setnx(String address) {
        int colon = address.lastIndexOf(':');
        connections = new LettuceConnectionFactory(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
        connections.afterPropertiesSet();
        connections.start();
        redis = new StringRedisTemplate(connections);
    }

    void close() {
        connections.destroy();
    }

    /** Those of Spring Integration, with SPIN_LOCK or PUB_SUB_LOCK. */
    public Locks registry(String registryKey, String type) {
        RedisLockRegistry registry = new RedisLockRegistry(connections, registryKey);
        registry.setRedisLockType(RedisLockType.valueOf(type));
        return new Locks(redis) {
            @Override
            public boolean take(String key, long wait, long lease) throws Exception {
                return registry.obtain(key).tryLock(Duration.ofMillis(wait), Duration.ofMillis(lease));
            }

            @Override
            public boolean give(String key) {
                registry.obtain(key).unlock();
                return true;
            }

            @Override
            public void renew(String key, long lease) {
                registry.renewLock(key, Duration.ofMillis(lease));
            }
        };
    }

    /** Those of lock4j's RedisTemplate executor. A lease of -1 is 30 seconds, and renewed. */
    public Locks lock4j() throws Exception {
        LockTemplate template = new LockTemplate();
        Lock4jProperties properties = new Lock4jProperties();
        template.setProperties(properties);
        template.setExecutors(List.of(new RedisTemplateLockExecutor(redis, properties)));
        template.afterPropertiesSet();
        Map<String, LockInfo> held = new ConcurrentHashMap<>();
        return new Locks(redis) {
            @Override
            public boolean take(String key, long wait, long lease) {
                LockInfo info = template.lock(key, lease, wait);
                if (info != null) {
                    held.put(key, info);
                }
                return info != null;
            }

            @Override
            public boolean give(String key) {
                return template.releaseLock(held.remove(key));
            }
        };
    }

    /** Those of ShedLock, which look at the value before they delete it if they are safe. Nobody waits there, so take asks again. */
    public Locks shedLock(String environment, boolean safe) {
        RedisLockProvider provider = new RedisLockProvider.Builder(redis).environment(environment).safeUpdate(safe).build();
        Map<String, SimpleLock> held = new ConcurrentHashMap<>();
        return new Locks(redis) {
            @Override
            public boolean take(String key, long wait, long lease) throws Exception {
                return takeAtLeast(key, wait, lease, 0);
            }

            @Override
            public boolean takeAtLeast(String key, long wait, long lease, long least) throws Exception {
                long end = System.nanoTime() + wait * 1_000_000;
                while (true) {
                    Optional<SimpleLock> lock = provider.lock(new LockConfiguration(
                            ClockProvider.now(), key, Duration.ofMillis(lease), Duration.ofMillis(least)));
                    if (lock.isPresent()) {
                        held.put(key, lock.get());
                    }
                    if (lock.isPresent() || System.nanoTime() >= end) {
                        return lock.isPresent();
                    }
                    Thread.sleep(20);
                }
            }

            @Override
            public boolean give(String key) {
                held.remove(key).unlock();
                return true;
            }

            @Override
            public void renew(String key, long lease) {
                held.compute(key, (k, lock) -> lock.extend(Duration.ofMillis(lease), Duration.ZERO).orElseThrow());
            }
        };
    }

    /** What all of them can do. Times are in milliseconds. */
    public abstract static class Locks {
        private final StringRedisTemplate redis;

        Locks(StringRedisTemplate redis) {
            this.redis = redis;
        }

        /** Reports whether this thread has got the lock. */
        public abstract boolean take(String key, long wait, long lease) throws Exception;

        /** Releases the lock of this thread, and reports whether it was held, where the library says so. */
        public abstract boolean give(String key) throws Exception;

        /** Takes a lock that is kept for a while after its release. */
        public boolean takeAtLeast(String key, long wait, long lease, long least) throws Exception {
            throw new UnsupportedOperationException();
        }

        /** Renews the lock of this thread, or throws if it is lost. */
        public void renew(String key, long lease) {
            throw new UnsupportedOperationException();
        }

        /** Counts up under the lock, so that two who do so at a time lose a number, and returns how often. */
        public long count(String key, String counter, int rounds) throws Exception {
            for (int i = 0; i < rounds; i++) {
                if (!take(key, 60_000, 60_000)) {
                    return i;
                }
                String before = redis.opsForValue().get(counter);
                Thread.sleep(1);
                redis.opsForValue().set(counter, String.valueOf(before == null ? 1 : Long.parseLong(before) + 1));
                give(key);
            }
            return rounds;
        }
    }
}
