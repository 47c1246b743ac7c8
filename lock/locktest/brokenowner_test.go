package locktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// The Lockers here are wrong about ownership: about who re-enters what, and how long it lasts.

// ledger is a good Locker that keeps a record of all its holds, and can so be wrong about them.
type ledger struct {
	*memlock.Locker
	mu    sync.Mutex
	holds []*record

	caller func(ctx context.Context, c claim) context.Context // who calls, in the Locker's opinion; may be nil
	hold   func(c claim, h *record) lock.Hold                 // what the caller gets; may be nil
}

// claim is an Acquire in the ledger.
type claim struct {
	*ledger
	r     lock.Request
	above []*record // holds of the key above the caller, also what was released or is hidden by NewOwner; innermost first
}

// record is a hold of a ledger.
type record struct {
	lock.Hold
	r     lock.Request
	ctx   context.Context
	outer *record
}

func (h *record) Context() context.Context { return h.ctx }

func (h *record) held() bool {
	return slices.Contains(slices.Collect(lock.Ancestors(h.Hold.Context())), h.Hold)
}

type recordKey struct{}

func (l *ledger) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	c := claim{ledger: l, r: r}
	outer, _ := ctx.Value(recordKey{}).(*record)
	for h := outer; h != nil; h = h.outer {
		if h.r.Key == r.Key {
			c.above = append(c.above, h)
		}
	}
	if l.caller != nil {
		ctx = l.caller(ctx, c)
	}
	h, err := l.Locker.Acquire(ctx, c.r)
	if err != nil {
		return nil, err
	}
	own := &record{Hold: h, r: r, outer: outer}
	own.ctx = context.WithValue(h.Context(), recordKey{}, own)
	l.mu.Lock()
	l.holds = append(l.holds, own)
	l.mu.Unlock()
	if l.hold != nil {
		return l.hold(c, own), nil
	}
	return own, nil
}

// find returns the first live hold of the key that is as wanted.
func (c claim) find(wanted func(*record) bool) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holds {
		if h.r.Key == c.r.Key && h.held() && wanted(h) {
			return h
		}
	}
	return nil
}

// as is a ledger that takes its callers for others.
func as(caller func(ctx context.Context, c claim) context.Context) func() lock.Locker {
	return func() lock.Locker { return &ledger{Locker: memlock.New(), caller: caller} }
}

// joining returns ctx under h, which may be nil.
func joining(ctx context.Context, h *record) context.Context {
	if h == nil {
		return ctx
	}
	return lock.WithHold(ctx, h.Hold, h.held)
}

func anyHold(*record) bool { return true }

var (
	// oneOwner takes everybody for the holder.
	oneOwner = as(func(ctx context.Context, c claim) context.Context { return joining(ctx, c.find(anyHold)) })

	// siblingsShare takes all calls under one hold for one owner.
	siblingsShare = as(func(ctx context.Context, c claim) context.Context {
		return joining(ctx, c.find(func(h *record) bool { return lock.Related(ctx, h.ctx) }))
	})

	// releasedCounts gives a call what others hold, if an ancestor has held it once.
	releasedCounts = as(func(ctx context.Context, c claim) context.Context {
		if len(c.above) == 0 || !slices.ContainsFunc(c.above, func(h *record) bool { return !h.held() }) {
			return ctx
		}
		return joining(ctx, c.find(anyHold))
	})

	notReentrant = as(func(ctx context.Context, _ claim) context.Context { return lock.NewOwner(ctx) })

	// firstNestedOnly knows the holder, but not by those under it.
	firstNestedOnly = as(func(ctx context.Context, c claim) context.Context {
		if len(c.above) < 2 {
			return ctx
		}
		return lock.NewOwner(ctx)
	})

	// oneChildOnly lets one call at a time re-enter.
	oneChildOnly = as(func(ctx context.Context, c claim) context.Context {
		if len(c.above) > 0 && c.find(func(h *record) bool { return h.outer == c.above[0] }) != nil {
			return lock.NewOwner(ctx)
		}
		return ctx
	})

	// sameKindOnly does not know that kinds of a family go together.
	sameKindOnly = as(func(ctx context.Context, c claim) context.Context {
		if len(c.above) > 0 && c.above[0].r.Kind != c.r.Kind {
			return lock.NewOwner(ctx)
		}
		return ctx
	})

	// reentryQueues lets a re-entry that may wait do so behind all others.
	reentryQueues = as(func(ctx context.Context, c claim) context.Context {
		if c.r.Wait != 0 {
			return lock.NewOwner(ctx)
		}
		return ctx
	})

	withoutCancelCuts = as(func(ctx context.Context, _ claim) context.Context {
		if ctx.Done() == nil {
			return lock.NewOwner(ctx)
		}
		return ctx
	})

	newOwnerIgnored = as(func(ctx context.Context, c claim) context.Context {
		for _, h := range c.above {
			if h.held() {
				return joining(ctx, h)
			}
		}
		return ctx
	})

	// readersUpgrade lets go of all readers when one of them wants to write.
	readersUpgrade = as(func(ctx context.Context, c claim) context.Context {
		if len(c.above) > 0 && c.r.Kind == lock.Write {
			c.ForceUnlock(c.r.Key)
			return context.WithoutCancel(ctx)
		}
		return ctx
	})

	// upgradeWaits lets a reader who wants to write wait for itself.
	upgradeWaits = as(func(ctx context.Context, c claim) context.Context {
		if c.r.Kind == lock.Write && !slices.ContainsFunc(c.above, func(h *record) bool { return h.r.Kind == lock.Write }) {
			return lock.NewOwner(ctx)
		}
		return ctx
	})
)

// giving is a ledger with other holds.
func giving(hold func(c claim, h *record) lock.Hold) func() lock.Locker {
	return func() lock.Locker { return &ledger{Locker: memlock.New(), hold: hold} }
}

// whenLost calls f after the loss of h.
func whenLost(h lock.Hold, f func()) {
	context.AfterFunc(h.Context(), func() {
		if errors.Is(context.Cause(h.Context()), lock.ErrLost) {
			f()
		}
	})
}

var (
	// chainHidden does not put its holds into their contexts.
	chainHidden = giving(func(_ claim, h *record) lock.Hold {
		return brokenHold{Hold: h, ctx: lock.NewOwner(h.ctx)}
	})

	// shortLeaseFrees ends all holds with the first that ends.
	shortLeaseFrees = giving(func(c claim, h *record) lock.Hold {
		whenLost(h, func() { c.ForceUnlock(c.r.Key) })
		return h
	})

	// outerReleaseFrees ends the stay with the hold that began it.
	outerReleaseFrees = giving(func(c claim, h *record) lock.Hold {
		if len(c.above) > 0 {
			return h
		}
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			defer c.ForceUnlock(c.r.Key)
			return h.Release(ctx)
		}}
	})

	// innerReleaseFrees does not count.
	innerReleaseFrees = giving(func(c claim, h *record) lock.Hold {
		if len(c.above) == 0 {
			return h
		}
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			defer c.ForceUnlock(c.r.Key)
			return h.Release(ctx)
		}}
	})

	lostTwice = giving(func(_ claim, h *record) lock.Hold {
		var lost error
		return brokenHold{Hold: h, release: func(ctx context.Context) error {
			err := h.Release(ctx)
			if errors.Is(err, lock.ErrLost) {
				lost = err
			}
			if lost != nil {
				return lost
			}
			return err
		}}
	})
)

// nestedForEver renews what re-enters, whatever its lease.
func nestedForEver() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		for range lock.Ancestors(ctx) {
			r.Lease, r.MaxHold = 0, 0
		}
		return l.Acquire(ctx, r)
	})
}

// writersStay notifies a writer that its lease is over, but leaves the lock in the mode of writing.
func writersStay() lock.Locker {
	l := memlock.New()
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		d := r.Lease
		if r.Kind == lock.Write {
			r.Lease = 0
		}
		h, err := l.Acquire(ctx, r)
		if err != nil || r.Kind != lock.Write || d == 0 {
			return h, err
		}
		ctx, cancel := context.WithCancelCause(h.Context())
		time.AfterFunc(d, func() { cancel(&lock.LostError{Held: d}) })
		return brokenHold{Hold: h, ctx: ctx}, nil
	})
}

// relatedIs is a good Locker that is sure about all who wait.
func relatedIs(related bool) func() lock.Locker {
	return func() lock.Locker {
		return failing(func(_ context.Context, err error) error {
			if busy, ok := errors.AsType[*lock.BusyError](err); ok {
				busy.Related = related
			}
			return err
		})
	}
}

// hereIs is a good Locker that takes all holders for its own, or none.
func hereIs(here bool) func() lock.Locker {
	return func() lock.Locker {
		return failing(func(_ context.Context, err error) error {
			if busy, ok := errors.AsType[*lock.BusyError](err); ok {
				busy.Here = here
			}
			return err
		})
	}
}

// namelessHolders is a good Locker that does not say who the holder is.
func namelessHolders() lock.Locker {
	return failing(func(_ context.Context, err error) error {
		if busy, ok := errors.AsType[*lock.BusyError](err); ok {
			busy.Holder = ""
		}
		return err
	})
}

// kindErrors is a good Locker that has other words for what does not go together.
func kindErrors(change func(*lock.KindError) error) func() lock.Locker {
	return func() lock.Locker {
		return failing(func(_ context.Context, err error) error {
			if kinds, ok := errors.AsType[*lock.KindError](err); ok {
				return change(kinds)
			}
			return err
		})
	}
}

var (
	familiesWait  = kindErrors(func(*lock.KindError) error { return &lock.BusyError{} })
	kindsNotNamed = kindErrors(func(*lock.KindError) error { return lock.ErrUnsupported })
	kindsConfused = kindErrors(func(e *lock.KindError) error { return &lock.KindError{Held: e.Wanted, Wanted: e.Held} })
)

// familiesMeet has a lock for each family.
func familiesMeet() lock.Locker {
	return requested(func(r *lock.Request) { r.Key += r.Kind.Family().String() })
}

// brokenOptions is a hold with other optional methods.
type brokenOptions struct {
	lock.Hold
	keep, extend func(ctx context.Context, d time.Duration) error
	remaining    func() time.Duration
}

func (h brokenOptions) Keep(ctx context.Context, d time.Duration) error   { return h.keep(ctx, d) }
func (h brokenOptions) Extend(ctx context.Context, d time.Duration) error { return h.extend(ctx, d) }
func (h brokenOptions) Remaining() time.Duration                          { return h.remaining() }

// optional is a good Locker whose holds have other optional methods.
func optional(change func(l *memlock.Locker, r lock.Request, h *brokenOptions)) func() lock.Locker {
	return func() lock.Locker {
		return holds(func(l *memlock.Locker, r lock.Request, h lock.Hold) lock.Hold {
			o := brokenOptions{Hold: h, keep: h.(keeper).Keep, extend: h.(extender).Extend, remaining: h.(remainer).Remaining}
			change(l, r, &o)
			return o
		})
	}
}

var (
	doesNotKeep = optional(func(_ *memlock.Locker, _ lock.Request, h *brokenOptions) {
		h.keep = func(ctx context.Context, _ time.Duration) error { return h.Release(ctx) }
	})

	// keepEndsWithOuter keeps a lock until the next release.
	keepEndsWithOuter = optional(func(l *memlock.Locker, r lock.Request, h *brokenOptions) {
		good := h.Hold
		h.Hold = brokenHold{Hold: good, release: func(ctx context.Context) error {
			defer l.ForceUnlock(r.Key)
			return good.Release(ctx)
		}}
	})

	remainsForEver = optional(func(_ *memlock.Locker, _ lock.Request, h *brokenOptions) {
		h.remaining = func() time.Duration { return time.Minute }
	})

	// endedWithoutEnd counts to an end that a hold without a lease does not have.
	endedWithoutEnd = optional(func(_ *memlock.Locker, r lock.Request, h *brokenOptions) {
		if r.Lease == 0 {
			h.remaining = func() time.Duration { return 0 }
		}
	})

	doesNotExtend = optional(func(_ *memlock.Locker, _ lock.Request, h *brokenOptions) {
		h.extend = func(context.Context, time.Duration) error { return nil }
	})

	extendShortens = optional(func(l *memlock.Locker, r lock.Request, h *brokenOptions) {
		extend := h.extend
		h.extend = func(ctx context.Context, d time.Duration) error {
			time.AfterFunc(d, func() { l.ForceUnlock(r.Key) })
			return extend(ctx, d)
		}
	})

	extendsForEver = optional(func(_ *memlock.Locker, _ lock.Request, h *brokenOptions) {
		extend := h.extend
		h.extend = func(ctx context.Context, _ time.Duration) error { return extend(ctx, time.Hour) }
	})

	extendsTheEnded = optional(func(_ *memlock.Locker, _ lock.Request, h *brokenOptions) {
		extend := h.extend
		h.extend = func(ctx context.Context, d time.Duration) error {
			_ = extend(ctx, d)
			return nil
		}
	})
)
