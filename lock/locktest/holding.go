package locktest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/lock"
)

// held is what a hold gives to its owner, until it is released.
var held = []promise{
	{"the hold's context carries values", func(s *scene) {
		ctx := context.WithValue(s.Context(), contextKey{}, "value")
		h := s.acquire(ctx, s.own(lock.Request{}))
		if got := h.Context().Value(contextKey{}); got != "value" {
			s.Errorf("the value in the hold's context = %v", got)
		}
		s.release(h)
	}},

	{"release ends the hold's context", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		s.alive(h, "a new hold")
		s.release(h)
		s.ends(h, context.Canceled)
		s.notLost(h)
	}},

	// One of several releases, such as a deferred one and one by hand, succeeds, and the others
	// fail.
	{"a hold is released once", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		var done atomic.Int64
		s.together(4, func(int) error {
			err := h.Release(s.Context())
			if err == nil {
				done.Add(1)
			}
			if errors.Is(err, lock.ErrNotHeld) {
				return nil
			}
			return err
		})
		if n := done.Load(); n != 1 {
			s.Errorf("%d of 4 releases succeeded, want 1", n)
		}
		s.releases(h, lock.ErrNotHeld)
		s.free()
	}},

	{"a released hold has no power over the next", func(s *scene) {
		first := s.acquire(s.Context(), s.own(lock.Request{}))
		s.release(first)
		next := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
		s.releases(first, lock.ErrNotHeld)
		s.busy(s.Context())
		s.free(next)
	}},

	// The work should stop, but the lock protects it until it says that it has stopped.
	{"a hold outlives the context of its request", func(s *scene) {
		ctx, cancel := context.WithCancelCause(s.Context())
		h := s.acquire(ctx, s.own(lock.Request{}))
		cancel(errCause)
		s.ends(h, errCause)
		s.pause() // for a Locker that would now release it
		s.busy(s.Context())
		s.free(h)
	}},
}

type contextKey struct{}
