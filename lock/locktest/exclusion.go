package locktest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// exclusion is who may not hold a lock at the same time.
var exclusion = []promise{
	{name: "one owner at a time", check: oneOwnerAtATime},
	{name: "siblings take turns", check: siblingsTakeTurns},
	{name: "a fresh owner is excluded", check: freshOwnerExcluded},
	{name: "another family of kinds is refused at once", check: otherFamilyRefused},
}

func oneOwnerAtATime(s *scene) { s.takeTurns(s.Context()) }

// An outer lock, on another key, does not switch off exclusion among the calls under it.
func siblingsTakeTurns(s *scene) {
	outer := s.outer(s.Context())
	s.takeTurns(outer.Context())
	s.release(outer)
}

// takeTurns checks that nobody meets anybody under the lock, except readers each other. What counts them is atomic because
// a lock on another machine synchronises nothing as far as the race detector can see.
func (s *scene) takeTurns(ctx context.Context) {
	s.Helper()
	const alone = 1000 // more than all readers together
	var inside atomic.Int64
	s.together(6, func(i int) error {
		r, weight := s.rival(lock.Request{Wait: -1}), int64(alone)
		if i%2 == 0 {
			r = s.own(r)
		}
		if r.Kind == lock.Read {
			weight = 1
		}
		for range 8 {
			if err := s.visit(ctx, r, func() error {
				defer inside.Add(-weight)
				if met := inside.Add(weight) - weight; met >= alone || met > 0 && weight == alone {
					return errors.New("two owners hold the lock at the same time")
				}
				<-time.After(time.Millisecond)
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// A call without ancestors is a stranger. NewOwner makes such a call of one that has them, however it came to its context.
func freshOwnerExcluded(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{}))
	s.busy(s.Context())
	s.busy(lock.NewOwner(h.Context()))
	s.busy(context.WithoutCancel(lock.NewOwner(h.Context())))
	under := s.outer(lock.NewOwner(h.Context()))
	s.busy(under.Context())
	s.release(under)
	s.release(h)
	s.free()
}

// Nobody can hold a key of two families, so there is nothing to wait for.
func otherFamilyRefused(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{}))
	for _, kind := range s.suite.kinds {
		if kind.Family() == s.kind.Family() {
			continue
		}
		for _, wait := range []time.Duration{0, time.Minute, -1} {
			s.refused(s.Context(), s.request(kind, lock.Request{Wait: wait}))
		}
	}
	if err := h.Context().Err(); err != nil {
		s.Errorf("a refused request ended the hold: %v", context.Cause(h.Context()))
	}
	s.release(h)
	s.free()
}
