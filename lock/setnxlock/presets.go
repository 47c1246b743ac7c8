package setnxlock

import (
	"fmt"
	"os"
	"time"
)

// Redislock shares locks with github.com/bsm/redislock: the key is its key, and the value is any text. Redislock obtains, refreshes and
// releases by comparing the value, as this package does.
//
// Checked against redislock.go of v0.9.4. There a lock ends by itself with the ttl given to Obtain, unless the program refreshes it.
func Redislock() Option { return preset(texts{preset: "Redislock"}) }

// Redsync shares locks with github.com/go-redsync/redsync that have one pool, which is on this server. The key is the name of the
// mutex, and the value is any text. Redsync unlocks and extends by comparing the value. Its option WithSetNXOnExtend has a holder who
// has lost a lock take it again, if it is free at that moment.
//
// A mutex of several pools is a RedLock: it is held by whoever has it on most of the servers. One server of these is not enough to
// share it.
//
// Checked against mutex.go, scripts.go and redsync.go of v4.18.1. There a mutex ends by itself after 8s, unless the program says
// otherwise.
func Redsync() Option { return preset(texts{preset: "Redsync"}) }

// Lock4j shares locks with the RedisTemplate executor of lock4j in Java. The key is that of LockTemplate.lock, and the value is any
// text. For the key of a method with the annotation @Lock4j, see package keyexpr/spel: lock4j:name#keys. Lock4j releases and renews by
// comparing the value.
//
// Checked against RedisTemplateLockExecutor.java and LockTemplate.java of
// com.baomidou:lock4j-redis-template-spring-boot-starter 2.2.7. There a lock ends by itself after 30s, unless expire says otherwise,
// and is renewed if expire is -1. Lock4j's Redisson executor is another thing: package redisson shares its locks.
func Lock4j() Option { return preset(texts{preset: "Lock4j"}) }

// ShedLock shares locks with the Redis providers of ShedLock in Java, whose key is job-lock:environment:name; the environment is
// "default" there if the program gives none. Add KeyText if the provider has a key prefix of its own. The value has ShedLock's form,
// ADDED:time@host:id, for those who read it.
//
// A provider without safeUpdate, which is its default, deletes and extends a lock without looking at the value. A job there that
// runs for longer than its lockAtMostFor so frees the lock of whoever has it then, also one of this package. This package learns of
// that when it renews, after a third of the watchdog's lease: give lockAtMostFor room, and have providers built with safeUpdate(true).
// The method Keep is what lockAtLeastFor is there.
//
// Checked against InternalRedisLockProvider.java of net.javacrumbs.shedlock:shedlock-support-redis 7.10.1, which the providers for
// Spring, Jedis and Lettuce have in common.
func ShedLock(environment string) Option {
	t := texts{preset: "ShedLock", value: shedLockValue}
	t.key = func(key string) string { return "job-lock:" + environment + ":" + key }
	set := preset(t)
	return optionFunc(func(s *settings) {
		if environment == "" {
			s.faults = append(s.faults, fmt.Errorf(`setnxlock: ShedLock without an environment: want that of the provider in Java, "default" if it gives none`))
		}
		set.apply(s)
	})
}

func shedLockValue(id string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return "ADDED:" + time.Now().UTC().Format("2006-01-02T15:04:05.000Z") + "@" + host + ":" + id
}

// RedisLockRegistry shares locks with Spring Integration's RedisLockRegistry in Java, whose key is registryKey:lockKey. The value
// is any text, there the id of a registry. It renews and unlocks by comparing the value.
//
// A registry of the type PUB_SUB_LOCK hears of releases on the channels registryKey-channel:*. Those of this package are announced there,
// too, and its waiters listen there on one connection for the Locker, while there are any. A registry of the type SPIN_LOCK, the default,
// neither listens nor announces; it polls, and so do waiters here for a lock that it holds.
//
// Checked against RedisLockRegistry.java of org.springframework.integration:spring-integration-redis 7.1.2. There a lock ends by itself
// after 60s, unless the registry has another expireAfter or a scheduler that renews.
func RedisLockRegistry(registryKey string) Option {
	return preset(texts{
		preset:  "RedisLockRegistry",
		key:     func(key string) string { return registryKey + ":" + key },
		channel: func(redisKey string) string { return registryKey + "-channel:" + redisKey },
	})
}
