package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// lockerFunc is a Locker that does what the function does.
type lockerFunc func(context.Context, lock.Request) (lock.Hold, error)

func (f lockerFunc) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) { return f(ctx, r) }

// brokenHold is a hold with some of its methods replaced.
type brokenHold struct {
	lock.Hold
	ctx     context.Context
	release func(context.Context) error
}

func (h brokenHold) Context() context.Context {
	if h.ctx != nil {
		return h.ctx
	}
	return h.Hold.Context()
}

func (h brokenHold) Release(ctx context.Context) error {
	if h.release != nil {
		return h.release(ctx)
	}
	return h.Hold.Release(ctx)
}

// holds is a good Locker whose holds go through change.
func holds(change func(*memlock.Locker, lock.Request, lock.Hold) lock.Hold) lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		h, err := l.Acquire(ctx, r)
		if err != nil {
			return nil, err
		}
		return change(l, r, h), nil
	})
}

// requested is a good Locker whose requests go through change.
func requested(change func(*lock.Request)) lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		change(&r)
		return l.Acquire(ctx, r)
	})
}

// failing is a good Locker whose failures go through change.
func failing(change func(context.Context, error) error) lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		h, err := l.Acquire(ctx, r)
		if err != nil {
			return nil, change(ctx, err)
		}
		return h, nil
	})
}

func good() lock.Locker { return memlock.New() }

func noExclusion() lock.Locker {
	var n atomic.Int64
	return requested(func(r *lock.Request) { r.Key += string(rune(n.Add(1))) })
}

func readersMeetWriters() lock.Locker {
	return requested(func(r *lock.Request) {
		if r.Kind == lock.Read {
			r.Key += ":read"
		}
	})
}

func neverWakes() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		wait := r.Wait
		r.Wait = 0
		h, err := l.Acquire(ctx, r)
		if err == nil || wait == 0 {
			return h, err
		}
		if wait > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, wait, lock.ErrBusy)
			defer cancel()
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
}

func waitsForEver() lock.Locker { return requested(func(r *lock.Request) { r.Wait = -1 }) }

func doesNotWait() lock.Locker { return requested(func(r *lock.Request) { r.Wait = 0 }) }

func deafToContext() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		return l.Acquire(context.WithoutCancel(ctx), r)
	})
}

// leakyWaiter answers a cancelled caller at once, but goes on to take the lock for it.
func leakyWaiter() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		a := (&scene{locker: l}).start(context.WithoutCancel(ctx), r)
		select {
		case <-a.done:
			return a.hold, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
}

func causeForgotten() lock.Locker {
	return failing(func(ctx context.Context, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	})
}

func takesForTheGone() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		if ctx.Err() == nil {
			return l.Acquire(ctx, r)
		}
		if _, err := l.Acquire(context.WithoutCancel(ctx), r); err != nil {
			return nil, err
		}
		return nil, context.Cause(ctx)
	})
}

func bareBusy() lock.Locker {
	return failing(func(_ context.Context, err error) error {
		if errors.Is(err, lock.ErrBusy) {
			return lock.ErrBusy
		}
		return err
	})
}

func remainingTooLong() lock.Locker {
	return failing(func(_ context.Context, err error) error {
		if busy, ok := errors.AsType[*lock.BusyError](err); ok {
			busy.Remaining += time.Minute
		}
		return err
	})
}

func valuesDropped() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(_ context.Context, r lock.Request) (lock.Hold, error) {
		return l.Acquire(context.Background(), r)
	})
}

// contextStays never ends a context, so nobody hears of a lost lock.
func contextStays() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold {
		return brokenHold{Hold: h, ctx: context.WithoutCancel(h.Context())}
	})
}

// endsAs is a Locker whose holds end with what cause makes of the real cause, after delay.
func endsAs(delay time.Duration, cause func(error) error) lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(h.Context()))
		context.AfterFunc(h.Context(), func() {
			time.AfterFunc(delay, func() { cancel(cause(context.Cause(h.Context()))) })
		})
		return brokenHold{Hold: h, ctx: ctx}
	})
}

func notifiedLate() lock.Locker {
	return endsAs(100*time.Millisecond, func(err error) error { return err })
}

func lossForgotten() lock.Locker {
	return endsAs(0, func(error) error { return context.Canceled })
}

func releaseHidesLoss() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold {
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			if err := h.Release(ctx); !errors.Is(err, lock.ErrLost) {
				return err
			}
			return nil
		}}
	})
}

// foreignRelease frees the key, whoever holds it, and only then looks whether that was right.
func foreignRelease() lock.Locker {
	return holds(func(l *memlock.Locker, r lock.Request, h lock.Hold) lock.Hold {
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			err := h.Release(ctx)
			l.ForceUnlock(r.Key)
			return err
		}}
	})
}

func releasedTwice() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold {
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			if err := h.Release(ctx); !errors.Is(err, lock.ErrNotHeld) {
				return err
			}
			return nil
		}}
	})
}

func diesWithRequest() lock.Locker {
	return holds(func(l *memlock.Locker, r lock.Request, h lock.Hold) lock.Hold {
		context.AfterFunc(h.Context(), func() { l.ForceUnlock(r.Key) })
		return h
	})
}

func oldClockRunsOn() lock.Locker {
	return holds(func(l *memlock.Locker, r lock.Request, h lock.Hold) lock.Hold {
		if r.Lease > 0 {
			time.AfterFunc(r.Lease, func() { l.ForceUnlock(r.Key) })
		}
		return h
	})
}

func leaseIgnored() lock.Locker { return requested(func(r *lock.Request) { r.Lease = 0 }) }

func shortLease() lock.Locker { return requested(func(r *lock.Request) { r.Lease /= 10 }) }

func maxHoldIgnored() lock.Locker { return requested(func(r *lock.Request) { r.MaxHold = 0 }) }

func keysTrimmed() lock.Locker {
	return requested(func(r *lock.Request) { r.Key = strings.TrimSpace(r.Key) })
}

func keysCut() lock.Locker {
	return requested(func(r *lock.Request) { r.Key = r.Key[:min(len(r.Key), 1000)] })
}

func hashTags() lock.Locker {
	return requested(func(r *lock.Request) {
		if _, tag, ok := strings.Cut(r.Key, "{"); ok {
			r.Key, _, _ = strings.Cut(tag, "}")
		}
		r.Key += "."
	})
}

func anythingGoes() lock.Locker {
	return requested(func(r *lock.Request) { *r = lock.Request{Key: r.Key + ".", Wait: r.Wait} })
}

func goroutineStays() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold {
		go func() { <-make(chan struct{}) }()
		return h
	})
}

// lastFirst serves the newest of those who wait.
func lastFirst() lock.Locker {
	l := memlock.New()
	var mu sync.Mutex
	var line []int64
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		r.Wait = 0
		me := rand.Int64()
		mu.Lock()
		line = append(line, me)
		mu.Unlock()
		for ; ; <-time.After(10 * time.Millisecond) {
			mu.Lock()
			if line[len(line)-1] == me {
				if h, err := l.Acquire(ctx, r); err == nil {
					line = line[:len(line)-1]
					mu.Unlock()
					return h, nil
				}
			}
			mu.Unlock()
		}
	})
}

func readersExclude() lock.Locker {
	return requested(func(r *lock.Request) {
		if r.Kind == lock.Read {
			r.Kind = lock.Write
		}
	})
}

func noToken() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold { return brokenHold{Hold: h} })
}

type brokenToken struct{ lock.Hold }

func (brokenToken) Token() int64 { return 1 }

func sameToken() lock.Locker {
	return holds(func(_ *memlock.Locker, _ lock.Request, h lock.Hold) lock.Hold { return brokenToken{h} })
}

func overLimit() lock.Locker { return requested(func(r *lock.Request) { r.Limit++ }) }

func underLimit() lock.Locker {
	return requested(func(r *lock.Request) { r.Limit = max(1, r.Limit-1) })
}
