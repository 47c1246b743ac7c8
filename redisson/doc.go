// Package redisson is Redisson's locks for Go: the same keys, fields, leases and messages in Redis. A Java service that uses Redisson and
// a Go service that uses this package exclude each other.
//
//	client, err := redisson.Open("redis://localhost:6379") // or New, on a go-redis client of your own
//	defer client.Close()
//
// A [Client] is made once for a process. It is a lock.Locker, which is all that package guard wants. Used directly, it has Redisson's nouns:
//
//	l := client.Lock("order:42")
//	err := l.Do(ctx, func(held context.Context) error { // waits as long as ctx; renewed until pay returns
//		return pay(held) // held ends if the lock is lost
//	})
//
// Or by hand: held, err := l.Lock(ctx), then defer l.Unlock(held). Names are taken as they are. Where Java makes the name, too, a guard must
// not escape it: take raw(…) in its template, or package keyexpr/spel.
//
// Lock is re-entrant, FairLock serves its waiters in order, SpinLock polls, FencedLock numbers its acquires, and a ReadWriteLock has a shared
// ReadLock and a WriteLock. Lock and FairLock also come without re-entry. A MultiLock holds all of several locks, and a RedLock the majority of
// independent servers. There are Semaphore, PermitExpirableSemaphore, CountDownLatch and RateLimiter, too.
//
// A call owns a lock, and not a goroutine. The context that Lock returns carries the chain of holds above it, and a call under it re-enters
// them. Any other call is a stranger and waits. See [lock.Ancestors], and [lock.NewOwner] for work that must exclude its parent.
//
// A held lock is renewed until it is released. Its context ends, with a cause that matches lock.ErrLost, before the lease that Redis has last
// answered can be over. A process that was stopped learns of its loss when it runs again, and a Redis that loses writes loses locks with them:
// where that matters, let the resource check the token of a FencedLock. A permanent refusal of Redis matches lock.ErrRefused.
//
// One server, Sentinel and Redis Cluster will do, with TLS and users as go-redis has them. docs/operations/redis.md says what servers, clusters
// and users need and what each operation asks of Redis, and WIRE.md has the layout of the keys.
package redisson
