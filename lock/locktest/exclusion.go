package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// exclusion checks that locks exclude those who must not hold them at the same time.
var exclusion = []promise{
	{"one owner at a time", func(s *scene) { s.takeTurns(s.Context()) }},

	// An outer lock, on another key, does not switch off exclusion among the calls under it.
	{"siblings take turns", func(s *scene) {
		outer := s.outer(s.Context())
		s.takeTurns(outer.Context())
		s.release(outer)
	}},

	// A call without ancestors is a stranger. NewOwner makes such a call of one that has them, however it came to its context.
	{"a fresh owner is excluded", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		s.busy(s.Context())
		s.busy(lock.NewOwner(h.Context()))
		s.busy(context.WithoutCancel(lock.NewOwner(h.Context())))
		under := s.outer(lock.NewOwner(h.Context()))
		s.busy(under.Context())
		s.free(under, h)
	}},

	// Nobody can hold a key of two families, so there is nothing to wait for.
	{"another family of kinds is refused at once", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		for _, kind := range s.suite.kinds {
			if kind.Family() == s.kind.Family() {
				continue
			}
			for _, wait := range []time.Duration{0, time.Minute, -1} {
				s.refused(s.Context(), s.request(kind, lock.Request{Wait: wait}))
			}
		}
		s.alive(h, "the hold beside which others were refused")
		s.free(h)
	}},
}

// takeTurns checks that nobody meets anybody under the lock, except readers each other.
func (s *scene) takeTurns(ctx context.Context) {
	s.Helper()
	const alone = 1000 // more than all readers together
	s.crowd(ctx, func(i int, _ *rand.Rand) (lock.Request, int64) {
		r := s.rival(lock.Request{Wait: -1})
		if i%2 == 0 {
			r = s.own(r)
		}
		if r.Kind == lock.Read {
			return r, 1
		}
		return r, alone
	}, func(inside int64) bool { return inside <= alone })
}

// crowd has callers visit again and again, and checks that those who meet inside fit together, by the sum of their weights. That is
// atomic because a lock on another machine synchronises nothing as far as the race detector can see.
func (s *scene) crowd(ctx context.Context, next func(i int, r *rand.Rand) (lock.Request, int64), fit func(inside int64) bool) {
	s.Helper()
	var inside atomic.Int64
	seed := s.suite.seed()
	s.together(6, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range 8 {
			r, weight := next(i, random)
			err := s.visit(ctx, r, func() error {
				defer inside.Add(-weight)
				if !fit(inside.Add(weight)) {
					return errors.New("more owners hold the lock than go together")
				}
				<-time.After(time.Millisecond)
				return nil
			})
			if err != nil && (r.Wait < 0 || !errors.Is(err, lock.ErrBusy)) {
				return err
			}
		}
		return nil
	})
}
