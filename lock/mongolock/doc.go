// Package mongolock is a [lock.Locker] on MongoDB: one document for each lock, in the form of ShedLock's Mongo provider, so that a Java
// service with ShedLock and a Go service with Latchkey exclude each other.
//
//	locker, err := mongolock.New(client.Database("app").Collection(mongolock.Collection))
//
// A document has the key as its _id, lockUntil, lockedAt and lockedBy. A call that takes a lock puts its own ID into
// lockedBy and the end of its lease into lockUntil, in one command on one document, and only if lockUntil is not later
// than now. Now is the clock of the server, $$NOW, and not that of a client; see [HelloClock] for servers that don't
// have it.
//
// The README of this folder has the guarantees under each fault, the price in round trips, and the consequences of
// ShedLock's own use of the client's clock for both sides.
//
// # What it asks of the server
//
// Each command has the write concern majority with journal, whatever the collection was made with: a write that a
// minority of the replica set has acknowledged is rolled back when its primary steps down, and then two hold the lock.
// Nothing is decided by reading. A command with an answer that was lost may be repeated, as it is bound to the ID of
// the one stay that it is for.
//
// The server is MongoDB 4.4 or later, which the driver wants, with any storage engine and topology. The collection must
// not have a collation of its own, nor be capped; if it is sharded, then by _id. [Locker.Check] reports mistakes at
// start.
package mongolock
