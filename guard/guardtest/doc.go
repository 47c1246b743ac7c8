// Package guardtest has what tests of guarded code need: a locker that misbehaves by script, a record of what was locked
// with assertions, and a record of how guarded calls ended. All of it works in bubbles of testing/synctest.
//
//	l := guardtest.New(guardtest.BusyFor(2 * time.Second))
//	settle := newService(l).Settle // waits 1s for its lock
//	_, err := settle(ctx, Order{ID: "7"})
//	// errors.Is(err, guard.ErrBusy), one second later
//	l.WantNothingHeld(t)
//
// [New] locks in memory, as package memlock does, and keeps a record. [Record] does the same over any other locker. Faults make
// it busy, slow, deaf, or fail; [On] limits a fault to some keys. [Events] records the events of guards, and finds guards
// that are taken in opposite orders. [PassThrough] is for programs that are to run without locks, in staging.
//
// The page docs/testing.md has recipes.
package guardtest
