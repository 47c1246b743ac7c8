// Package redisson is Redisson's locks for Go: the same keys, fields, leases and messages in Redis, so that a Java service
// that uses Redisson and a Go service that uses this package exclude each other.
//
// A [Client] is made once for a process:
//
//	client, err := redisson.Open("redis://localhost:6379")
//	defer client.Close()
//
// [New] makes one on a go-redis client of your own. A Client is a lock.Locker, which is all that package guard wants. Names are taken
// as they are, as in Redisson. Where Java makes the name, too, a guard must not escape it: take raw(…) in its template, or package
// keyexpr/spel. Used directly, a Client has Redisson's nouns:
//
//	l := client.Lock("order:42")
//	err := l.Do(ctx, func(held context.Context) error { // waits as long as ctx; renewed until pay returns
//		return pay(held) // held ends if the lock is lost
//	})
//
// or, by hand,
//
//	held, err := l.Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer l.Unlock(held)
//
// The locks, all of one type:
//
//	Lock            re-entrant
//	FairLock        serves its waiters in the order in which they came, across processes
//	SpinLock        polls, where messages can't be had
//	FencedLock      numbers its acquires
//	ReadWriteLock   ReadLock is shared, WriteLock is not
//
// Lock and FairLock can be had without re-entry. Over several locks, also of several clients, there are MultiLock (all or none)
// and RedLock (the majority of independent servers). The synchronizers are Semaphore, PermitExpirableSemaphore, whose permits
// a crash gives back, CountDownLatch and RateLimiter.
//
// # Who owns a lock
//
// A call does, and not a goroutine. The context that Lock returns carries the chain of holds above it. A call under that
// context re-enters the locks in the chain, also from another goroutine. Any other call is a stranger and waits, and so do two
// calls beside each other under one hold, for a third lock. See [lock.Ancestors], and [lock.NewOwner] for work that must
// exclude its parent.
//
// The Unlock of an outer hold ends the contexts of the holds inside, because they derive from it. The lock itself stays until
// the inner holds are released too. Work that is to outlast its outer hold takes the inner one under [context.WithoutCancel].
//
// A lease of an inner hold never shortens that of the outer one: each hold ends by its own lease, and Redis keeps the lock for
// as long as any of them needs it.
//
// # What can be relied on
//
// A held lock is renewed from a third of the watchdog's timeout on. The context of a hold ends, with a cause that matches
// lock.ErrLost, before the lease that Redis has last answered can be over: when Redis is slow, gone or paused, when a peer or an
// operator removed the lock, and when the client is closed. The local clock decides. It keeps a margin for its drift, and for
// goroutines that have to wait for their turn: a twentieth of the lease, but at most a second or 1/2000, and at least 25ms or a
// quarter. After a suspension of the machine, locks are looked at before they are relied on again.
//
// Every script may run twice, and late, without harm, because its answer or its connection may be lost. Scripts set the count
// that the caller wants instead of adding to it, and never shorten a lease. An Acquire that fails gives back what it may have
// taken, in the background if Redis does not answer; what cannot be given back ends with its lease.
//
// A call leaves within 100ms of the end of its context. One that Redis has never answered gets an error half a second after its
// wait, or after [Timeout] if that is sooner. A waiter that was answered "busy" gets lock.ErrBusy at the end of its wait, also while
// Redis is silent, and the error of an outage once Redis has been silent for Timeout; so it outlasts a short failover.
//
// What Redis refuses for good is no outage, and nobody waits for it: a key that holds something else, a user without permission,
// wrong credentials, an unknown command. Such errors of all methods match lock.ErrRefused. A Redis without memory (OOM) or that
// can't write (MISCONF) is an outage at once. One that was demoted (READONLY), lacks replicas (NOREPLICAS), starts (LOADING) or moves a slot
// (TRYAGAIN) may be ready soon: it is asked again, and an outage after [Timeout].
// So it is to callers where they ask so much at once that there is no connection in time; then the error matches lock.ErrOverload.
//
// # What cannot
//
// A process that was stopped is notified of its loss when it runs again, and work may ignore its context: for a moment, two can
// then believe that they hold the lock. A Redis that loses writes, at a failover or a restart without persistence, loses locks
// with them. Where that matters, let the resource check the token of a FencedLock. A replica confirms each lock, which makes the loss at a
// failover less likely; see [SyncReplicas].
//
// The goroutines of a process pass a lock on for up to 50ms, with a question to Redis for each turn: a lock that Redis has lost does not pass on, and the
// release says so. Readers of a process that come together share an entry in Redis: the release of the last one says whether the lock was there,
// and who left before is not told of a loss that nobody has noticed yet.
//
// Redis announces no FLUSHALL: holders notice it when they renew, and a waiter may sleep for a third of the watchdog's
// timeout.
//
// # Servers
//
// One server, Sentinel and Redis Cluster will do, with TLS and users as go-redis has them. Clients of other types are refused:
// a Ring, and wrappers such as an AutoPipeliner. In a cluster, give a dead node few DialerRetries. The connections that
// listen for messages are made with the options of the go-redis client, but its hooks do not see them.
//
// A *redis.ClusterClient is that of a cluster if its servers say so: by CLUSTER SLOTS or, where sentinels or the program draw its map
// (RouteByLatency, RouteRandomly, ClusterSlots), by HELLO, which each user may ask, or by INFO. A proxy that has neither is taken for a
// cluster. Without a cluster, releases are announced at the master of the lock, and names are refused only if their keys are at different
// masters. All questions are scripts, so masters answer them, whatever is routed to replicas. A *redis.Client of one node of a cluster
// is refused where another node has the key, with an error that says what to write.
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
// Locks that are wanted together, as those of a list of keys or a MultiLock, are one command for each fifty of them, to take and to give
// back, and travel together; where there is a map of masters, that is one for each slot. Readers of a process that come within 50ms with
// the same lease share a holder, so that one command takes and one gives back for all of them, and a reader that leaves before the others
// asks whether the lock was there. Each operation of a Semaphore, PermitExpirableSemaphore, CountDownLatch or RateLimiter is one command,
// and a RedLock costs what its members cost. Client.Replace is one command, and one or two in the background. Client.Inspect is one command
// for the object and one for the names of clients. Client.Objects has three passes of one command for each 1,000 keys, and one command for
// the channels; then it needs, as Client.InspectKeys does, one for each object, and one for the names of the clients of a hundred. What is
// for a hundred objects travels together; of clients that describe their holds, it is asked each time. In a cluster, that is for each master, and the names of clients are one for each master that has
// some.
//
// A waiting process subscribes a channel, on one connection for the whole client, and asks again only after a message, when the holder's
// lease is over, or once in a third of the watchdog's timeout. The release of a Lock or FencedLock wakes one of the processes that wait, so
// with any number of them an acquisition takes three commands: the question that gets in line, the one that takes the lock, and the release. See
// "Who is woken" in WIRE.md. A waiter for a fair lock asks once in
// a third of its patience, too. The goroutines of a process stand in a queue behind the one that asks; [MaxWaiters] bounds how many wait.
// A Lock passes on in the queue 16 times, with one script for a release and an acquire. Renewals go in
// pipelines of up to 500, one after the other for each master.
//
// A client that has held a lock for 50ms listens on a channel of its own, latchkey_client:<id>, until it has held nothing for a second or two:
// there it is told of a lock that somebody has freed by hand, asks Redis why, which is one command, and whether it still has that holder. When it begins to hear, it asks once about
// all that it holds. A ForceUnlock costs a command for each holder of another client, beside its own. Who has waited for a fair lock listens
// for an hour: a failover may bring back its place in the queue, which it removes.
//
// [MeterProvider] has all this measured, and docs/operations has what to watch.
//
// docs/security.md has a line for each feature that makes a user who may do just that. A user for all of them needs the categories
// @hash, @string, @sortedset, @list, @stream and @scripting, the commands time, exists, del, pexpire,
// pttl, persist, publish, type, scan, dbsize, pubsub, subscribe, unsubscribe and ping, and for a cluster spublish, ssubscribe, sunsubscribe,
// pubsub|shardnumsub, cluster|slots and command; for replicas, role and wait. Its keys are the names of the locks, redisson_lock_*,
// latchkey_* and those that begin with a name in braces; its channels redisson_lock__channel:*, redisson_rwlock:*,
// redisson_sc:*, redisson_countdownlatch__channel__*, latchkey_client:* and, for Replace, latchkey_newest:*.
package redisson
