// Package lock is the vocabulary that the rest of Latchkey is written in: what a lock is, who owns it, and the few ways
// in which taking it can end. It has no dependencies.
//
// Most programs meet it through package guard, which takes a [Locker] and puts it in front of a function. Use it
// directly to write a Locker of your own (package locktest checks it), or to tell apart the errors of one:
//
//	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
//	if errors.Is(err, lock.ErrBusy) {
//		return retryLater
//	}
//	if err != nil {
//		return err
//	}
//	defer hold.Release(context.WithoutCancel(ctx))
//	return pay(hold.Context())
//
// # Ownership
//
// A call owns a lock, and never a goroutine. The context of a [Hold] carries the chain of the holds above it; see
// [Ancestors]. A call re-enters the locks that its own ancestors hold, and nothing else: in the example, pay may take
// order:42 again. To every other holder it is a stranger, even if both have the same ancestors. Two calls under one hold
// exclude each other on a third key, as two threads do.
//
// A hold and the holds that re-entered it, directly or through one another, are one stay at the lock. A stay begins with
// its first hold and ends with the last one, in whatever order they are released or lost. Each hold has its own lease,
// which changes nothing for the others. Releasing an outer hold ends the contexts of the inner ones, because they derive
// from its context, but the inner holds keep the lock until they are released themselves.
//
// [NewOwner] starts work that has no ancestors, and so excludes the call that started it.
package lock

import (
	"context"
	"fmt"
	"time"
)

// A Locker takes locks. Its values are safe for concurrent use. It may have more methods than this, found by a type
// assertion:
//
//   - ReleaseAll(ctx context.Context, holds []Hold) error gives back holds of one call together, where that is quicker than
//     one by one. It is [Hold.Release] for each of them, also if others fail, and its error joins theirs.
//   - Reserve(ctx context.Context, rs []Request) (reserved context.Context, n int, leave func(), err error) takes several locks in
//     one question. If the Wait of the first request is 0, it takes all or none, and ErrBusy says that one of them is busy. Otherwise it takes
//     those that come before the first that is. An Acquire of one of them, as requested and under the context reserved, gets it
//     without asking; n is how many, from the first one on, nobody has to wait for. The caller calls leave when it has acquired what it
//     wants: that gives back the rest. Locks that can't be taken together do not count, and an Acquire says why.
//   - Peek(ctx context.Context, r Request) error returns the result that an Acquire of r without waiting would have now, nil if
//     it would get the lock. It takes nothing.
//   - Serves(k Kind) error returns nil if there are locks of that kind, and otherwise the error that each Acquire would return, which matches
//     ErrUnsupported. It asks nobody, so a guard can refuse at start.
//   - ServesLevels(keys ...string) error returns nil if requests with Levels, and with a Rate, are served. A Locker without this method
//     serves none. The keys are those of the levels, or templates of them: where they show that levels can't be taken together, as they are in several slots of a
//     cluster, it is an error. It asks nobody.
//   - Replace(ctx context.Context, r Request) (turn context.Context, leave func(), err error) is for calls of which only the
//     newest is of use. It announces a call that is about to Acquire r with the context turn. Those that were announced before
//     at the key of r, and have not left, are replaced, also in other processes: their turns end with the cause ErrReplaced,
//     so that they stop waiting, or end their work and release the lock. Until then they hold it, as do all those that were
//     never announced. A newcomer replaces them from its announcement on, even if it never gets the lock. The turn of a call
//     that would re-enter is ctx: it replaces nobody. The caller calls leave when it has released the lock, or
//     could not have it. Replace returns the errors of Acquire, but for those that say who holds the lock. After a failure,
//     older calls may have been replaced nevertheless.
type Locker interface {
	// Acquire takes the lock that r names. If an ancestor of ctx holds it, Acquire re-enters (see Ancestors and Reenter),
	// past everybody who waits. Otherwise the caller is a stranger to all holders.
	//
	// Acquire returns ErrBusy (a *BusyError with the remaining time, if known) when the lock stayed with others for all of
	// r.Wait; the cause of ctx when ctx ended first; ErrUnsupported at once when waiting can't help (a *KindError, if the
	// kind that is held is the reason); ErrRefused at once when the lock service answers that it never will, such as for a
	// key of another type, or a user without permission; and any other error when the lock service could not answer. A
	// failed Acquire leaves nothing behind, also when the answer was lost on the way.
	Acquire(ctx context.Context, r Request) (Hold, error)
}

// A Hold is one successful Acquire. It is safe for concurrent use.
//
// A Hold may have more methods than these. Callers find them by a type assertion:
//
//   - Token() int64 is the fencing token of a [Fenced] lock. It is greater than the tokens of all earlier stays at the key.
//   - Keep(ctx context.Context, d time.Duration) error is Release, but strangers find the lock held for another d.
//   - Extend(ctx context.Context, d time.Duration) error lets the hold go on for d from now, if it would end earlier. It
//     never shortens a hold, and Request.MaxHold bounds it as ever. On a hold that has ended it returns what Release
//     would, ErrLost or ErrNotHeld, but leaves the release to be done. Where a lock service keeps the lock, each Extend of a
//     live hold asks it; so the shortest d, 1ms, is a check that the lock is still held.
//   - Remaining() time.Duration is how long the hold is still good if nothing is renewed: never negative, 0 once the hold has
//     ended, and the longest Duration if it has no end. It asks nobody.
type Hold interface {
	// Context derives from the one given to Acquire. The hold is the innermost of its Ancestors. It ends with a cause
	// that matches ErrLost before anybody else can hold the lock. After Release it is cancelled with cause
	// context.Canceled.
	Context() context.Context
	// Release gives the lock back, once; ctx bounds the attempt. ErrLost says that the lock was no longer held when
	// Release was called, ErrNotHeld that this hold had been released before, also with ErrLost. After any other error
	// the lock ends by itself with its lease.
	Release(ctx context.Context) error
}

// Level is a key that at most Limit owners may hold at once.
type Level struct {
	Key   string
	Limit int
}

// Rate lets at most Permits calls begin within any Interval.
type Rate struct {
	Permits  int
	Interval time.Duration // of whole milliseconds, at least 1ms
}

// Request says which lock to take and how. Its zero value is invalid only for want of a Key.
type Request struct {
	// Key names the lock. It must not be empty.
	Key string
	// Kind is the sort of lock; the zero value is Exclusive.
	Kind Kind
	// Wait bounds the time spent in line for a lock that others hold: 0 tries once, a negative value waits as long as
	// the context.
	Wait time.Duration
	// Lease is how long the lock may be held: 0 means that it is renewed until released, a positive value that it ends
	// by itself after that time. A lease is a whole number of milliseconds in some services, so at least 1ms.
	Lease time.Duration
	// MaxHold bounds renewal: at the latest MaxHold after it was taken, a lock that is renewed or has a longer Lease ends,
	// and its context with it, with a cause that matches both ErrMaxHold and ErrLost. 0 sets no bound.
	MaxHold time.Duration
	// Limit is how many owners may hold a Permit at once; 0 sets no bound where there is a Rate, and then nothing is held. Other kinds ignore it.
	Limit int
	// Levels are at most two more keys that a Permit takes, each with a limit of its own: with Key all of them, or none.
	Levels []Level
	// Rate bounds how often a Permit of Key is given, whenever it is given back; the zero value sets no bound.
	Rate Rate
	// Holder says in a word or two who asks, such as `guard "order.settle"`, for those in this process whom the lock will keep
	// out: see BusyError.Holder. It gets into errors and logs, so it has no key in it, and no lock service sees it, unless a redisson.Client
	// describes its holds. It may be empty.
	Holder string
}

// Validate reports the first fault of r that no Locker could serve, and nil if there is none.
func (r Request) Validate() error {
	switch {
	case r.Key == "":
		return fmt.Errorf("lock: request without a key")
	case int(r.Kind) >= len(kindNames):
		return fmt.Errorf("lock: unknown kind %d", int(r.Kind))
	case r.Lease < 0:
		return fmt.Errorf("lock: negative lease %v", r.Lease)
	case r.Lease > 0 && r.Lease < time.Millisecond:
		return fmt.Errorf("lock: lease %v is under a millisecond", r.Lease)
	case r.MaxHold < 0:
		return fmt.Errorf("lock: negative max hold %v", r.MaxHold)
	case r.Kind == Permit && (r.Limit < 0 || r.Limit == 0 && r.Rate == Rate{}):
		return fmt.Errorf("lock: a permit needs a limit of at least 1, not %d", r.Limit)
	}
	if r.Bounded() {
		return r.validateBounds()
	}
	return nil
}

// validateBounds reports the first fault of the levels and the rate.
func (r Request) validateBounds() error {
	keys := map[string]bool{r.Key: true}
	for _, l := range r.Levels {
		if l.Key == "" || l.Limit < 1 || keys[l.Key] {
			return fmt.Errorf("lock: level %q with a limit of %d: give each level a key of its own, and a limit of at least 1", l.Key, l.Limit)
		}
		keys[l.Key] = true
	}
	switch {
	case r.Kind != Permit:
		return fmt.Errorf("lock: levels and a rate belong to kind permit, not to kind %v", r.Kind)
	case len(r.Levels) > 2 || len(r.Levels) > 0 && r.Limit < 1:
		return fmt.Errorf("lock: at most two levels stand beside a limit, not %d beside a limit of %d", len(r.Levels), r.Limit)
	case r.Rate != Rate{} && (r.Rate.Permits < 1 || r.Rate.Interval < time.Millisecond):
		return fmt.Errorf("lock: a rate of %d within %v: give at least 1 within at least 1ms", r.Rate.Permits, r.Rate.Interval)
	}
	return nil
}

// Bounded reports whether r has Levels or a Rate, which few lockers serve.
func (r Request) Bounded() bool { return len(r.Levels) > 0 || r.Rate != Rate{} }
