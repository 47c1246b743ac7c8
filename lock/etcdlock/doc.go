// Package etcdlock takes locks in etcd, as a [lock.Locker]. They are the locks of etcd's own concurrency.Mutex: both exclude each other,
// and stand in one line.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	…
//	locker, err := etcdlock.New(client, etcdlock.Prefix("locks/"))
//	…
//	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
//
// # The line
//
// A lock is a line of keys below its own key. A call that wants the lock puts a key there; the oldest one holds it, by
// the revision at which it was created. A waiter watches the next older key and nothing else, so a release wakes one
// waiter. This makes each lock a fair one: first come, first served, whichever process comes.
//
// All kinds but lock.Spin stand in that line. A reader waits for those ahead who are no readers, and a permit is held by the first Limit
// entries; those who wait for one hear of each release. The revision is the fencing token.
//
// # Leases
//
// Each stay at a lock has a lease of its own in etcd, and not one for all of the client. So a lock lasts exactly as long as it should
// when the process dies, also one that is kept, and the end of one stay is not the end of the others. The lease of a stay that was released
// serves the next one if it comes soon, so in general that does not cost a question.
//
// Etcd counts leases in seconds and has a shortest one, which is 2s by default. A lock with a shorter lease is released when it is over,
// by the process that took it; only if that process has died does it last longer. No lock ends earlier than it should: the leader of
// etcd counts, with a clock that steps of the system's time do not change, and a new leader begins all leases again.
//
// # Fencing tokens
//
// The revision of etcd rises with every write to it, so the tokens of a lock rise, and are not consecutive. After a restore from a
// backup it is again what it was when the backup was made, and resources that have seen higher tokens refuse the new holders. Restore
// with etcdutl snapshot restore --bump-revision and --mark-compacted, with a number that is larger than all writes since the backup.
package etcdlock
