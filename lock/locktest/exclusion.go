package locktest

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// exclusion is who may hold a lock at the same time, and who may not.
var exclusion = []promise{
	{name: "one owner at a time", check: oneOwnerAtATime},
	{name: "a fresh owner is excluded", check: freshOwnerExcluded},
	{name: "an owner re-enters", check: ownerReenters},
	{name: "re-entry outlives the outer hold", check: reentryOutlivesOuter},
	{name: "re-entry passes the queue", check: reentryPassesQueue},
}

// Nobody meets anybody under the lock, except readers each other. What counts them is atomic because a lock on another
// machine synchronises nothing as far as the race detector can see.
func oneOwnerAtATime(s *scene) {
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
			if err := s.visit(r, func() error {
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

// An Acquire without an owner in its context gets a new one, and NewOwner replaces the one of a hold: both must exclude
// their parent, however they came to its context.
func freshOwnerExcluded(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{}))
	s.busy(s.Context())
	s.busy(lock.NewOwner(h.Context()))
	s.release(h)
	s.free()
}

// Guarded code may call guarded code. It must not wait for itself, and the inner release must not free the lock.
func ownerReenters(s *scene) {
	outer := s.acquire(s.Context(), s.own(lock.Request{}))
	inner := s.acquire(outer.Context(), s.own(lock.Request{}))
	s.release(inner)
	s.busy(s.Context())
	if err := outer.Context().Err(); err != nil {
		s.Errorf("the inner release ended the outer hold: %v", err)
	}
	s.release(outer)
	s.free()
}

// The holds of one owner end in any order, and the lock with the last of them.
func reentryOutlivesOuter(s *scene) {
	ctx := lock.NewOwner(s.Context())
	outer := s.acquire(ctx, s.own(lock.Request{}))
	inner := s.acquire(ctx, s.own(lock.Request{}))
	s.release(outer)
	s.busy(s.Context())
	if err := inner.Context().Err(); err != nil {
		s.Errorf("the release of one hold ended another: %v", err)
	}
	s.release(inner)
	s.free()
}

// Whoever is in line waits for the owner, so an owner behind them would wait for itself.
func reentryPassesQueue(s *scene) {
	outer := s.acquire(s.Context(), s.own(lock.Request{}))
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1}))
	s.pause()
	inner := s.acquire(outer.Context(), s.own(lock.Request{Wait: -1}))
	s.release(inner)
	s.release(outer)
	s.release(next.held())
}
