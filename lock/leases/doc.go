// Package leases makes a [lock.Locker] out of a service that keeps leases: who has what, and until when. It is for the
// author of a Locker. A [Store] says how the service takes, extends and frees one entry; everything that such Lockers
// have in common is here: owners and re-entry, contexts that end in time, renewal, extension, the wait, and the way to
// proceed when an answer is lost.
//
//	type store struct{ db *mydb.Client }
//
//	func (s store) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) { … }
//	func (s store) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) { … }
//	func (s store) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error { … }
//
//	locker, err := leases.New(store{db})
//
// Run package locktest against what New returns, and test the Store's own faults: a service that is slow, gone or restarted.
//
// # Stays and entries
//
// A stay at a lock begins with the Acquire of a stranger and lasts until its last hold is gone; see package lock. Each stay is one
// [Entry] in the service, with an ID that is never used again, so that a request that is late can't touch the entry of another
// one. A re-entry joins the stay and asks nothing: what is known about the lease of the entry is true for it, too.
//
// # Who decides that a lock is lost
//
// The clock of the process does. An entry is good until the lease ends that the service granted last, counted from
// before the question, less a margin for timers, clocks and the work itself. Renewal begins when a third of the lease
// has passed, so that the other two thirds are there for an outage. When the service answers that the entry is gone,
// the stay is lost at once.
//
// # Questions without an answer
//
// The Locker never makes two calls of a Store for one Entry at once. It gives each call a context that ends with the [Timeout], and
// leaves a call that does not come back. A Take without an answer may have happened, or may still happen: the Locker tries again
// with another Entry, and frees the first one over and over, until the service has answered and the request can't arrive anymore.
package leases
