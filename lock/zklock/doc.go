// Package zklock takes distributed locks in ZooKeeper. Those who want a key stand in line as ephemeral nodes, as Curator's
// InterProcessMutex and InterProcessReadWriteLock have them do, so that Java services with Curator and Go services with this package
// exclude each other.
//
//	session, err := zklock.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"})
//	if err != nil {
//		return err
//	}
//	defer session.Close()
//	locker, err := zklock.New(session)
//
// The README says what the locks guarantee under which fault, what they cost, and who can share them.
//
// # Kinds
//
// Exclusive, Fair and Fenced are one line for each key, served in the order of arrival, with the nodes of Curator's InterProcessMutex.
// Each stay has a fencing token: the number of the write that made its node, its czxid. Read and Write are those of
// InterProcessReadWriteLock, also served in order: a reader waits for writers that came before it. The others are refused with
// lock.ErrUnsupported.
//
// # The end of a lock
//
// A lock ends with the session of the process that holds it, for which the servers have to be silent for the session's
// timeout. The context of a hold ends earlier: as soon as the session can't be proven to live on. The proofs are writes
// that most servers have confirmed. The client library's own view does not count, nor does that of a server that may be
// cut off from the others. A process that can't reach ZooKeeper learns of the loss after some two thirds of the
// timeout.
//
// The process itself enforces Request.Lease and Keep, and deletes the node at the end. If it crashes, its locks end
// with its session, which may be later than the lease, or earlier than the Keep.
package zklock
