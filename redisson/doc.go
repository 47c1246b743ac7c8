// Package redisson is Redisson's locks for Go: the same keys, fields, leases and messages in Redis, so that a Java service
// that uses Redisson and a Go service that uses this package exclude each other.
//
// A [Client] is made once for a process, on any go-redis client:
//
//	client, err := redisson.New(redis.NewClient(&redis.Options{Addr: "localhost:6379"}))
//	defer client.Close()
//
// It is a lock.Locker, which is all that package guard wants. Used directly, it has Redisson's nouns:
//
//	l := client.Lock("order:42")
//	held, err := l.Lock(ctx) // waits as long as ctx; renewed until Unlock
//	if err != nil {
//		return err
//	}
//	defer l.Unlock(held)
//	return settle(held) // held ends if the lock is lost
//
// The locks, all of one type:
//
//	Lock            re-entrant
//	FairLock        serves its waiters in the order in which they came, across processes
//	SpinLock        polls, where messages can't be had
//	FencedLock      numbers its acquires
//	ReadWriteLock   ReadLock is shared, WriteLock is not
//
// Over several of them, also of several clients: MultiLock, all or none, and RedLock, the majority of independent servers.
// And the synchronizers: Semaphore; PermitExpirableSemaphore, whose permits a crash gives back; CountDownLatch; RateLimiter.
//
// # Who owns a lock
//
// An owner is an invocation, and travels in the context that Lock returns: a call under that context re-enters, also from
// another goroutine, and a call under another context waits. See lock.NewOwner for work that must exclude its parent.
//
// # What can be relied on
//
// A held lock is renewed from a third of the watchdog's timeout on. The context of a hold ends, with a cause that matches
// lock.ErrLost, before the lease that Redis was last known to have given can be over: when Redis is slow, gone or paused,
// when a peer or an operator removed the lock, and when the client is closed. The local clock decides, and a margin of a
// twentieth of the lease, at most a second, is kept for its drift.
//
// Every script may run twice without harm, because the answer to the first run may be lost: scripts set the count that
// the caller wants instead of adding to it. An Acquire that fails gives back what it may have taken, in the background if
// Redis does not answer; what cannot be given back ends with its lease.
//
// # What cannot
//
// A process that was stopped is told of its loss when it runs again, and work may ignore its context: for a moment, two
// can then believe that they hold the lock. A Redis that loses writes, at a failover or a restart without persistence,
// loses locks with them. Where that matters, let the resource check the token of a FencedLock. A machine that was suspended
// counts no time meanwhile, and may take a lock for held that is not. [SyncReplicas] makes the
// loss at a failover less likely.
//
// # Servers
//
// One server, Sentinel and Redis Cluster will do, with TLS and users as go-redis has them; a Ring is refused. Set
// ContextTimeoutEnabled, and in a cluster give a dead node few DialerRetries. While masters change, a question may fail;
// who waits for a lock that was busy goes on waiting unless that lasts longer than [Timeout], and a release that failed is
// repeated in the background.
//
// In a cluster, a lock and all that belongs to it share a slot. Names whose braces prevent that are refused: "a{b", "a}b",
// "{}x". Releases are announced as Redisson does it: on sharded channels if the cluster has them, or as [ShardedPubSub]
// says, and never on both kinds, because a cluster passes a classic message on to each of its nodes. Who listens to
// the other kind gets the lock without being woken, after a third of its watchdog's timeout at most. A client has one
// connection to listen on for each master with such channels, and follows them when a slot moves or a master fails.
//
// # What Redis is asked
//
// Commands without contention, as a test counts them:
//
//	                 take   give back
//	Lock             1      1
//	FairLock         1      1
//	SpinLock         1      1
//	FencedLock       1      1
//	ReadLock         1      1
//	WriteLock        1      1
//
// Each operation of a Semaphore, PermitExpirableSemaphore, CountDownLatch or RateLimiter is one command, and a MultiLock or
// RedLock costs what its members cost.
//
// A waiting process subscribes to the lock's channel, on one
// connection for the whole client, and asks again only after a message, when the holder's lease is over, or once in a
// third of the watchdog's timeout; its goroutines queue up behind the one that asks. Renewals go in pipelines of up to 500.
//
// An ACL user needs the categories @hash, @string, @sortedset, @list and @scripting, the commands time, exists, del, pexpire,
// pttl, persist, publish, subscribe, unsubscribe and ping, and for a cluster spublish, ssubscribe, sunsubscribe,
// pubsub|shardnumsub, cluster|slots and command; for SyncReplicas, wait. Its keys are the names of the locks, redisson_lock_*,
// latchkey_receipt:* and those that begin with a name in braces; its channels redisson_lock__channel:*, redisson_rwlock:*,
// redisson_sc:* and redisson_countdownlatch__channel__*. Synchronizers name their channel as a key, too.
package redisson
