package locktest

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ownership is which locks a call re-enters: those that its own ancestors hold, and nothing else.
var ownership = []promise{
	// A hold may stand in the chain as several, if the Locker is made of others.
	{"ancestors are the live holds", func(s *scene) {
		above := func(ctx context.Context) int { return len(slices.Collect(lock.Ancestors(ctx))) }
		outer := s.outer(s.Context())
		inner := s.acquire(outer.Context(), s.own(lock.Request{}))
		one, both := above(outer.Context()), above(inner.Context())
		if above(s.Context()) != 0 || one == 0 || both <= one {
			s.Errorf("%d ancestors without a hold, %d under one, %d under two", above(s.Context()), one, both)
		}
		if n := above(lock.NewOwner(inner.Context())); n != 0 {
			s.Errorf("%d ancestors under NewOwner", n)
		}
		s.release(outer)
		if n := above(inner.Context()); n != both-one {
			s.Errorf("%d ancestors under a hold whose outer one was released, want %d", n, both-one)
		}
		s.release(inner)
		if n := above(inner.Context()); n != 0 {
			s.Errorf("%d ancestors under released holds", n)
		}
		s.free()
	}},

	// Guarded code may call guarded code. It must not wait for itself, and the inner release must not free the lock.
	{"a nested call re-enters", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		inner := s.acquire(outer.Context(), s.own(lock.Request{}))
		innermost := s.acquire(inner.Context(), s.own(lock.Request{Wait: -1}))
		s.release(innermost, inner)
		s.busy(s.Context())
		s.alive(outer, "the outer hold")
		s.free(outer)
	}},

	// The context of an inner hold ends with the outer one, because it derives from it. But the work under it may take a while to
	// stop, and until it has done so and released its hold, nobody else gets in.
	{"re-entry outlives the outer hold", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		inner := s.acquire(outer.Context(), s.own(lock.Request{}))
		s.release(outer)
		s.ends(inner, context.Canceled)
		s.pause() // for a Locker that would now release it
		s.busy(s.Context())
		s.release(s.acquire(context.WithoutCancel(inner.Context()), s.own(lock.Request{})))
		s.busy(s.Context())
		s.free(inner)
	}},

	// A call in line waits for the outer call, so an inner call behind it would wait for itself.
	{"re-entry passes the queue", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		next := s.inLine(s.Context(), s.rival(lock.Request{}))
		inner := s.acquire(outer.Context(), s.own(lock.Request{Wait: -1}))
		s.release(inner, outer)
		s.release(next.held())
	}},

	{"kinds re-enter each other by the table", func(s *scene) {
		for _, kind := range s.suite.kinds {
			key := s.key + ":" + kind.String()
			outer := s.acquire(s.Context(), s.own(lock.Request{Key: key}))
			if lock.Reenter(kind, s.kind) == nil {
				s.release(s.acquire(outer.Context(), s.request(kind, lock.Request{Key: key, Wait: -1})))
			} else {
				s.refused(outer.Context(), s.request(kind, lock.Request{Key: key, Wait: -1}))
			}
			s.alive(outer, "the outer hold")
			s.start(s.Context(), s.rival(lock.Request{Key: key})).fails(lock.ErrBusy)
			s.release(outer)
		}
	}},

	// Two calls under one held lock are as strange to each other as two threads. So are the calls under them.
	{"siblings exclude each other", func(s *scene) {
		outer := s.outer(s.Context())
		first := s.acquire(outer.Context(), s.own(lock.Request{}))
		s.busy(outer.Context())
		nephew := s.acquire(outer.Context(), s.own(lock.Request{Key: s.key + ":nephew"}))
		s.busy(nephew.Context())
		second := s.inLine(outer.Context(), s.rival(lock.Request{}))
		s.release(first)
		held := second.held()
		s.start(outer.Context(), s.own(lock.Request{})).fails(lock.ErrBusy)
		s.free(held, nephew, outer)
	}},

	{"siblings re-enter their common ancestor", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		first := s.acquire(outer.Context(), s.own(lock.Request{}))
		second := s.acquire(outer.Context(), s.own(lock.Request{}))
		s.release(first)
		s.alive(second, "the sibling of a released hold")
		s.busy(s.Context())
		s.release(outer)
		s.busy(s.Context())
		s.free(second)
	}},

	// After its release, a hold gives no right to what others hold, or the same call again, or what it left to an inner call.
	{"a released ancestor is none", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		ctx := context.WithoutCancel(outer.Context())
		inner := s.acquire(outer.Context(), s.own(lock.Request{}))
		s.release(outer)
		s.busy(ctx)
		s.release(inner)

		again := s.acquire(ctx, s.own(lock.Request{Wait: -1}))
		s.busy(ctx)
		s.release(again)

		next := s.acquire(s.Context(), s.rival(lock.Request{Wait: -1}))
		s.start(ctx, s.own(lock.Request{})).fails(lock.ErrBusy)
		s.free(next)
	}},

	{"a lost ancestor is none", func(s *scene) {
		lost := s.acquire(s.Context(), s.own(lock.Request{Lease: lease}))
		ctx := context.WithoutCancel(lost.Context())
		s.ends(lost, lock.ErrLost)
		for range lock.Ancestors(ctx) {
			s.Error("a lost hold is an ancestor")
		}
		next := s.acquire(s.Context(), s.rival(lock.Request{Wait: -1}))
		s.start(ctx, s.own(lock.Request{})).fails(lock.ErrBusy)
		s.release(next)
		s.releases(lost, lock.ErrLost)
		s.free()
	}},

	// Work that goes on after its caller has gone is still under the locks that the caller holds.
	{"WithoutCancel keeps the ancestors", func(s *scene) {
		lockedOuter := s.acquire(s.Context(), s.own(lock.Request{}))
		between := s.outer(context.WithoutCancel(lockedOuter.Context()))
		ctx := context.WithoutCancel(between.Context())
		s.release(s.acquire(ctx, s.own(lock.Request{})))
		s.release(between)
		inner := s.acquire(ctx, s.own(lock.Request{}))
		s.release(lockedOuter)
		s.alive(inner, "the hold under WithoutCancel")
		s.busy(s.Context())
		s.free(inner)
	}},

	// A call that has dropped the context of its hold waits for itself. The error says so, to make that easy to find.
	{"busy reports a related holder", func(s *scene) {
		outer := s.outer(s.Context())
		h := s.acquire(outer.Context(), s.own(lock.Request{}))
		ctx := context.WithoutCancel(outer.Context())
		check := func(what string, ctx context.Context, wait time.Duration, want bool) {
			s.Helper()
			if busy := s.start(ctx, s.rival(lock.Request{Wait: wait})).busy(); busy.Related != want {
				s.Errorf("%s: Acquire() = %v with Related = %v, want %v", what, busy, busy.Related, want)
			}
		}
		check("under the same outer hold", outer.Context(), 0, true)
		check("after a wait", outer.Context(), 50*time.Millisecond, true)
		check("under WithoutCancel", ctx, 0, true)
		check("under no hold", s.Context(), 0, false)
		check("after a wait under no hold", s.Context(), 50*time.Millisecond, false)
		check("under NewOwner", lock.NewOwner(outer.Context()), 0, false)
		s.release(outer)
		check("under a released outer hold", ctx, 0, false)
		s.free(h)
	}},

	// A call that is kept out by another one of its process may be waiting for itself: the error names that one, by its name if it has one.
	{"busy reports a holder of this process", func(s *scene) {
		for _, holder := range []string{"", "holder"} {
			h := s.acquire(s.Context(), s.own(lock.Request{Holder: holder, Wait: -1}))
			busy := s.start(s.Context(), s.rival(lock.Request{Wait: 50 * time.Millisecond, Holder: "caller"})).busy()
			if !busy.Here || busy.Holder != holder {
				s.Errorf("Acquire() = %+v, want Here and Holder = %q", *busy, holder)
			}
			s.release(h)
		}
	}},
}

// outer takes a lock on another key than the scene's.
func (s *scene) outer(ctx context.Context) lock.Hold {
	s.Helper()
	return s.acquire(ctx, s.own(lock.Request{Key: s.key + ":outer", Wait: -1}))
}
