// Package setnxlock takes locks in Redis as many libraries do: a string under the lock's name, with the owner's token as its value and
// a time to live, set by SET NX PX, and removed by a script that compares the token first. Take it to share locks with such a library:
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
//	locker, err := setnxlock.New(rdb, setnxlock.RedisLockRegistry("orders"))
//
// Where nobody else is to be considered, package redisson is the better one: its waiters are woken by messages, and it has fair,
// read and write locks, permits and fencing tokens. The two do not exclude each other. Its lock is a hash, so that one under the same
// key is refused here with lock.ErrRefused, and the other way round.
//
// A [Locker] serves lock.Exclusive and lock.Spin, which are the same here. Other kinds get lock.ErrUnsupported.
//
// # Peers
//
// An option says whose locks these are. Its format was read in the sources of the version that stands at the option, and is tested
// with that library in a process of its own: the Go libraries in the module interop, the Java ones in redisson/interop.
//
//	option             library                               key in Redis                  value              a release
//	none                                                     the key                       26 random letters  compares, deletes
//	Redislock          bsm/redislock v0.9.4                  the key                       the same           the same
//	Redsync            go-redsync v4.18.1, one pool          the key                       the same           the same
//	Lock4j             lock4j 2.2.7, RedisTemplate           the key                       the same           the same
//	RedisLockRegistry  spring-integration-redis 7.1.2        registryKey:key               the same           and publishes the key
//	ShedLock           shedlock-provider-redis-spring 7.10.1 job-lock:environment:key      ADDED:time@host:…  compares, deletes
//
// None of them escapes a key. A template of package guard does, and then both sides get in for an id such as "a b": write
// guard.Key("order:#{raw(req.ID)}") where the peer has "order:" + id, or take Java's words by package keyexpr/spel.
//
// All of them compare the value before they release or renew, with one exception: a ShedLock provider in Java that is not built with
// safeUpdate(true). See [ShedLock].
//
// Any string under the key is a lock of somebody, until its time to live is over. A program that used SETNX without an
// expiry may have left one without an end, which keeps everybody out until it is deleted.
//
// # What it guarantees
//
//	fault                          what happens
//	the holder crashes             the lock ends with its lease: [Watchdog], 30s, or that of the request
//	the holder is stopped          others get the lock after its lease. The holder learns it when it runs again, which is too late if its
//	                               work does not look at its context; there is no fencing token
//	the network is cut, or         the hold's context ends before the lease that Redis has granted is over. The local monotonic clock
//	Redis is silent                decides, less a margin of a twentieth of the lease, at most a second
//	an answer is lost              the question is repeated, which all scripts allow. A lock that a failed Acquire may have taken is freed
//	                               in the background
//	Redis restarts                 with appendfsync always, holders and waiters go on. Without persistence the locks are gone: their
//	                               holders learn it with the next renewal, after a third of the lease, and others may be in until then
//	the master fails               a lock that no replica had is gone, as after a restart. Waiters go on waiting
//	the clock of Redis steps       forward, locks end early by as much, as after a restart; back, they last longer
//	somebody deletes the key,      the holder learns it with the next renewal, and its Release returns lock.ErrLost
//	or writes over it
//
// Where two holders at a time must never be, let the resource check a fencing token; package redisson has them.
//
// # Waiting, and what Redis is asked
//
// To take a lock that is free and to give it back costs one script each. A renewal is one every third of the lease. The goroutines of
// a process that wait for a key stand in line; the first of them asks every 50 to 100 ms, or as [Poll] says. There is no line across
// processes. With [RedisLockRegistry] it also listens, on one more connection for the Locker while somebody waits, and then asks once
// more after each message. Peers that don't publish are noticed with the next poll.
//
// # Servers
//
// A single server, Sentinel and Redis Cluster will do, each script having one key. A redis.Ring is refused, because it moves keys when a
// server is down, and so is a wrapper that may send a script twice. A lock on several independent servers, as redsync has with several
// pools, is not served.
//
// A user needs the keys, and evalsha, eval, get, set, del, pexpire, pttl and type; with RedisLockRegistry also its
// channels, and publish, subscribe, unsubscribe and ping. A permanent refusal by Redis matches lock.ErrRefused; nobody
// waits for its end.
package setnxlock
