// Package history is the log of a run of faults: what each worker did with its locks, and what was done to them.
//
// Each process of a run, the orchestrator too, writes a file of its own into one directory ([Create]); [Read] merges the
// files by time. All times are nanoseconds of CLOCK_MONOTONIC, which is one clock for all processes of a machine ([Now];
// System.nanoTime in Java). A line is a JSON object, written by one write(2) with O_APPEND, so that a process that is
// killed leaves all its lines, and at most a torn last one, which the reader drops. The first line of a file is a [Start].
//
// # What a worker writes
//
// A call is one attempt to take something, and what follows from it. It begins with an [Ask], which says all about the
// call; later lines name only its number:
//
//	call := log.Ask(history.Event{Kind: "lock", Keys: []string{"a"}, Servers: []string{"r1"}, Worker: 3, Owner: "w1/3",
//		Wait: -1, Lease: 2 * time.Second, Deadline: history.Until(ctx)})
//	held, err := l.Lock(ctx)
//	switch {
//	case errors.Is(err, lock.ErrBusy), errors.Is(err, context.DeadlineExceeded):
//		call.Fail(history.Busy, err) // gave up; for certain, it does not hold it
//	case err != nil:
//		call.Fail(history.Failed, err)
//	case call.Enter(held, token): // looked at the context: the section begins; token is 0 if the kind has none
//		for range steps {
//			work()
//			if !call.Look(held) { // every few milliseconds
//				break // and leave at once
//			}
//		}
//		call.Exit() // before the release is called
//	}
//	err = l.Unlock(held)
//	call.Release(err, errors.Is(err, lock.ErrLost)) // after it has returned
//
// The order is what makes the log proof: a section lies within the time in which the lock was held. Enter and Look read
// the clock before they look at the context, Exit is written before the release is called. The calls of one owner that
// nest on one key re-enter; a call that does not re-enter has an owner of its own. Owners are distinct over all processes.
//
// # What the orchestrator writes
//
// Faults begin and end ([Fault], [Healed]); the interval covers the whole time in which the fault may be felt, so Fault is
// written before it is made, and Healed after it was undone. The same holds for the pauses of processes ([Stop] before
// SIGSTOP is sent, [Cont] after SIGCONT was), and for kills ([Kill] before SIGKILL is sent). [DataLost] says that a server may
// have lost locks: what was granted before its Since no longer counts, and what was granted after its At does. It is due
// after FLUSHALL, a restart that may lose writes, a failover, a step of the server's clock, and a type that was forced upon a key.
// [Heal] says that all is well from now on: each worker that is alive must get what it waits for.
package history
