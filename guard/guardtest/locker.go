package guardtest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Locker is a lock.Locker that misbehaves by script and records its calls. Make one with New or Record. It is safe for
// concurrent use.
type Locker struct {
	inner lock.Locker

	mu      sync.Mutex
	faults  []Fault
	since   time.Time // of faults
	steps   []Step
	held    []*hold // in the order taken
	orders  orders
	entered chan struct{} // closed and replaced at each step
}

// Op is what happened in a Step.
type Op string

// The operations on a lock that a Step can record.
const (
	Asked    Op = "asked"    // Acquire was called
	Acquired Op = "acquired" // Acquire got the lock
	Refused  Op = "refused"  // Acquire failed
	Released Op = "released" // Release or Keep was called for the first time
	Lost     Op = "lost"     // by Lose or LostAfter
)

// Step is one thing that happened to a lock.
type Step struct {
	Op      Op
	Key     string
	Request lock.Request
	Err     error // of Refused and Released
}

// New returns a Locker that locks in memory.
func New(faults ...Fault) *Locker { return Record(memlock.New(), faults...) }

// Record returns a Locker over l.
func Record(l lock.Locker, faults ...Fault) *Locker {
	r := &Locker{inner: l, entered: make(chan struct{})}
	r.Set(faults...)
	return r
}

// Set replaces the faults, whose time starts now. Without any the Locker is well again. Locks that are held stay so.
func (l *Locker) Set(faults ...Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults, l.since = slices.Clone(faults), time.Now()
}

// Acquire implements [lock.Locker].
func (l *Locker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	l.note(Step{Op: Asked, Key: r.Key, Request: r}, nil)
	h, err := l.acquire(ctx, r)
	if err != nil {
		l.note(Step{Op: Refused, Key: r.Key, Request: r, Err: err}, nil)
	}
	return h, err
}

func (l *Locker) acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	faults, since := l.faultsOf(r.Key)
	asked, lost := r, time.Duration(-1)
	for _, f := range faults {
		if f.lost >= 0 {
			lost = f.lost
		}
		if f.acquire == nil {
			continue
		}
		if err := f.acquire(ctx, &r, since); err != nil {
			return nil, err
		}
	}
	inner, err := l.inner.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	h := &hold{Hold: inner, l: l, request: asked, outer: innermost(ctx)}
	l.note(Step{Op: Acquired, Key: r.Key, Request: asked}, func() {
		for o := h.outer; o != nil; o = o.outer {
			if o.l == l && slices.Contains(l.held, o) {
				l.orders.add(o.request.Key, r.Key)
			}
		}
		l.held = append(l.held, h)
	})
	if lost >= 0 {
		h.timer = time.AfterFunc(lost, func() {
			if h.Remaining() > 0 { // else it is somebody else's by now
				l.Lose(r.Key)
			}
		})
	}
	return h.public(), nil
}

// Replace is that of the recorded locker, or ErrUnsupported if it has none. No Step tells of it.
func (l *Locker) Replace(ctx context.Context, r lock.Request) (turn context.Context, leave func(), err error) {
	inner, ok := l.inner.(interface {
		Replace(context.Context, lock.Request) (context.Context, func(), error)
	})
	if !ok {
		return nil, nil, fmt.Errorf("%w: a %T has no method Replace", lock.ErrUnsupported, l.inner)
	}
	return inner.Replace(ctx, r)
}

// ServesLevels is that of the recorded locker, or ErrUnsupported if it has none.
func (l *Locker) ServesLevels(keys ...string) error {
	inner, ok := l.inner.(interface{ ServesLevels(keys ...string) error })
	if !ok {
		return fmt.Errorf("%w: a %T has no levels and no rates", lock.ErrUnsupported, l.inner)
	}
	return inner.ServesLevels(keys...)
}

func (l *Locker) faultsOf(key string) ([]Fault, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.faults), func(f Fault) bool { return !f.concerns(key) }), l.since
}

// Lose takes the lock of key from whoever holds it, as an operator could, and reports whether there was one. It needs a
// locker with a method ForceUnlock(key string) bool, which that of New has.
func (l *Locker) Lose(key string) bool {
	forced, ok := l.inner.(interface{ ForceUnlock(key string) bool })
	if !ok || !forced.ForceUnlock(key) {
		return false
	}
	l.note(Step{Op: Lost, Key: key}, nil)
	return true
}

// note records a step, and does what else belongs to it.
func (l *Locker) note(s Step, also func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, s)
	if also != nil {
		also()
	}
	close(l.entered)
	l.entered = make(chan struct{})
}

// Await returns when op has happened to key n times in all, or with the cause of ctx when that ends first. It is for tests
// outside of bubbles, which have nothing else to wait for: Await(ctx, Asked, key, 2) is that a second caller has come.
func (l *Locker) Await(ctx context.Context, op Op, key string, n int) error {
	for {
		l.mu.Lock()
		got, next := l.countLocked(op, key), l.entered
		l.mu.Unlock()
		if got >= n {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *Locker) countLocked(op Op, key string) (n int) {
	for _, s := range l.steps {
		if s.Op == op && s.Key == key {
			n++
		}
	}
	return n
}

// hold is a lock that is recorded.
type hold struct {
	lock.Hold
	l       *Locker
	request lock.Request
	outer   *hold // of any Locker
	timer   *time.Timer
}

type holdKey struct{}

func innermost(ctx context.Context) *hold {
	h, _ := ctx.Value(holdKey{}).(*hold)
	return h
}

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return context.WithValue(h.Hold.Context(), holdKey{}, h) }

// Release implements [lock.Hold].
func (h *hold) Release(ctx context.Context) error { return h.end(ctx, h.Hold.Release) }

// Extend is that of the recorded hold, or ErrUnsupported if it has none.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	e, ok := h.Hold.(interface {
		Extend(context.Context, time.Duration) error
	})
	if !ok {
		return lock.ErrUnsupported
	}
	return e.Extend(ctx, d)
}

// Remaining is that of the recorded hold. One that can't say is taken to have no end, until it has ended.
func (h *hold) Remaining() time.Duration {
	if r, ok := h.Hold.(interface{ Remaining() time.Duration }); ok {
		return r.Remaining()
	}
	if h.Hold.Context().Err() != nil {
		return 0
	}
	return math.MaxInt64
}

func (h *hold) end(ctx context.Context, release func(context.Context) error) error {
	if h.timer != nil {
		h.timer.Stop()
	}
	var failed error
	faults, _ := h.l.faultsOf(h.request.Key)
	for _, f := range faults {
		if f.release != nil {
			failed = cmp.Or(failed, f.release(ctx))
		}
	}
	err := cmp.Or(failed, release(ctx))
	h.l.note(Step{Op: Released, Key: h.request.Key, Request: h.request, Err: err}, func() {
		h.l.held = slices.DeleteFunc(h.l.held, func(o *hold) bool { return o == h })
	})
	return err
}

// keeper is a hold that can stand for some time after its release.
type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// fenced is a hold with a fencing token.
type fenced interface{ Token() int64 }

// public is what the caller of Acquire gets: a token, or Keep, only where the recorded hold has it.
func (h *hold) public() lock.Hold {
	_, keeps := h.Hold.(keeper)
	token, isFenced := h.Hold.(fenced)
	switch {
	case keeps && isFenced:
		return fencedKeptHold{keptHold{h}, token}
	case keeps:
		return keptHold{h}
	case isFenced:
		return fencedHold{h, token}
	}
	return h
}

type keptHold struct{ *hold }

// Keep is Release, but strangers find the lock held for another d.
func (h keptHold) Keep(ctx context.Context, d time.Duration) error {
	return h.end(ctx, func(ctx context.Context) error { return h.Hold.(keeper).Keep(ctx, d) })
}

type fencedHold struct {
	*hold
	fenced
}

type fencedKeptHold struct {
	keptHold
	fenced
}
