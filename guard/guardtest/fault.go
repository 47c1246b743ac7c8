package guardtest

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// A Fault is one way in which a Locker misbehaves, for New, Record and Locker.Set. Its time starts there.
type Fault struct {
	keys    []string                                              // empty means all
	acquire func(context.Context, *lock.Request, time.Time) error // before the real Acquire; may shorten r.Wait
	release func(context.Context) error                           // before the real Release; a result is in its place
	lost    time.Duration                                         // after the lock was acquired; negative is never
}

// On limits f to these keys.
func On(f Fault, keys ...string) Fault {
	f.keys = append(slices.Clone(f.keys), keys...)
	return f
}

// BusyFor has every key held by somebody else for d from now on. A call that waits longer than that gets the lock.
func BusyFor(d time.Duration) Fault {
	return fault(func(ctx context.Context, r *lock.Request, since time.Time) error {
		left := d - time.Since(since)
		if left <= 0 {
			return nil
		}
		if r.Wait < 0 || r.Wait >= left {
			if r.Wait > 0 {
				r.Wait -= left
			}
			return sleep(ctx, left)
		}
		if err := sleep(ctx, r.Wait); err != nil {
			return err
		}
		return &lock.BusyError{Remaining: left - r.Wait, Waited: r.Wait}
	})
}

// Busy has every key held by somebody else, who renews the lock and never ends.
func Busy() Fault {
	return fault(func(ctx context.Context, r *lock.Request, _ time.Time) error {
		if r.Wait < 0 {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		if err := sleep(ctx, r.Wait); err != nil {
			return err
		}
		return &lock.BusyError{Waited: r.Wait}
	})
}

// LostAfter takes every lock away d after its acquisition: the work's context ends, others can acquire the lock, and
// its release answers lock.ErrLost. Only lockers that lock in memory can lose a lock to others; any other goes on
// holding it.
func LostAfter(d time.Duration) Fault { return Fault{lost: max(d, 0)} }

// LostUnnoticed lets every lock be lost, but says so only when it is released.
func LostUnnoticed() Fault {
	return Fault{lost: -1, release: func(context.Context) error { return &lock.LostError{} }}
}

// Outage lets every Acquire fail with err, as a lock service that can't be reached.
func Outage(err error) Fault {
	return fault(func(context.Context, *lock.Request, time.Time) error { return err })
}

// OutageFor is Outage for d from now on.
func OutageFor(d time.Duration, err error) Fault {
	return fault(func(_ context.Context, _ *lock.Request, since time.Time) error {
		if time.Since(since) < d {
			return err
		}
		return nil
	})
}

// ReleaseFails lets every release fail with err, though the lock is given back.
func ReleaseFails(err error) Fault {
	return Fault{lost: -1, release: func(context.Context) error { return err }}
}

// Slow lets every Acquire and every release take d longer. Both end early with their context.
func Slow(d time.Duration) Fault {
	return both(func(ctx context.Context) error { return sleep(ctx, d) })
}

// Deaf is Slow without an ear for contexts: a locker with a bug, or a service that hangs in a system call.
func Deaf(d time.Duration) Fault {
	return both(func(context.Context) error { return sleep(context.Background(), d) })
}

// both is a fault of each Acquire and of each release.
func both(f func(context.Context) error) Fault {
	acquire := func(ctx context.Context, _ *lock.Request, _ time.Time) error { return f(ctx) }
	return Fault{lost: -1, acquire: acquire, release: f}
}

// fault is one of each Acquire alone.
func fault(acquire func(context.Context, *lock.Request, time.Time) error) Fault {
	return Fault{lost: -1, acquire: acquire}
}

func (f *Fault) concerns(key string) bool { return len(f.keys) == 0 || slices.Contains(f.keys, key) }

// sleep returns after d, or with the cause of ctx when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
