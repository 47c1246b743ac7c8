package locktest

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// rates bound how often permits are given, and not how many are held. The Lockers with levels have them.
var rates = []promise{
	// Each call goes by its own rate. A release gives nothing back.
	{"a rate gives so many permits within an interval", leveled(func(s *scene) {
		r := s.rated(0, 3, time.Minute)
		start := time.Now()
		for range r.Rate.Permits {
			s.release(s.acquire(s.Context(), r))
		}
		busy := s.full("", r)
		if least := time.Minute - time.Since(start); busy.Remaining < least-10*time.Millisecond { // for clocks that count in other units
			s.Errorf("the next permit comes in %v, and not within %v", busy.Remaining, least)
		}
		s.release(s.acquire(s.Context(), s.rated(0, 4, time.Minute)))
		s.usedUp(r)
		s.pause()
		s.pause()
		s.release(s.acquire(s.Context(), s.rated(0, 1, 50*time.Millisecond)))
		s.usedUp(s.rated(0, 5, time.Minute))
		r.Key = s.level("a", 1).Key
		s.release(s.acquire(s.Context(), r))
	})},

	// The interval is that between any two moments.
	{"permits of a rate come back one by one", leveled(func(s *scene) {
		r := s.rated(0, 2, lease)
		r.Wait = -1
		var asked []time.Time
		for i := range 6 {
			asked = append(asked, time.Now())
			s.release(s.acquire(s.Context(), r))
			if i == 0 {
				<-time.After(lease * 2 / 3)
			} else if i > 1 && time.Since(asked[i-2]) < lease*9/10 {
				s.Errorf("3 permits within %v", time.Since(asked[i-2]))
			}
		}
	})},

	// Neither what is full nor the rate is taken from.
	{"a call that is refused takes nothing", leveled(func(s *scene) {
		r, b := s.rated(1, 2, time.Minute), s.level("b", 1)
		r.Levels = []lock.Level{b}
		for _, level := range []lock.Level{b, s.level("", 1)} {
			h := s.acquire(s.Context(), permit(0, level))
			s.full(level.Key, r)
			s.release(h)
		}
		for range r.Rate.Permits {
			s.release(s.acquire(s.Context(), r))
		}
		s.usedUp(r)
		ctx, cancel := context.WithCancelCause(s.Context())
		r.Wait = -1
		waiter := s.start(ctx, r)
		s.pause()
		s.passes(s.level("", 1), b)
		cancel(errCause)
		waiter.fails(errCause)
	})},

	// Somebody holds the lock of the key, and calls are counted all the same, also one under another.
	{"a rate without a limit holds nothing", leveled(func(s *scene) {
		r := s.rated(0, 3, time.Minute)
		holder := s.acquire(s.Context(), s.request(s.suite.kinds[0], lock.Request{Key: r.Key}))
		h := s.acquire(s.Context(), r)
		inner := s.acquire(h.Context(), r)
		s.release(inner)
		s.alive(h, "the outer hold")
		s.release(h)
		s.ends(h, context.Canceled)
		s.releases(h, lock.ErrNotHeld)
		r.MaxHold = lease
		h = s.acquire(holder.Context(), r)
		s.ends(h, lock.ErrLost, lock.ErrMaxHold)
		s.releases(h, lock.ErrMaxHold)
		s.usedUp(r)
		s.alive(holder, "the lock of the key")
		s.release(holder)
	})},

	{"a re-entry takes nothing from a rate", leveled(func(s *scene) {
		r := s.rated(1, 1, time.Minute)
		h := s.acquire(s.Context(), r)
		s.release(s.acquire(h.Context(), r))
		s.release(s.acquire(h.Context(), r))
		s.release(h)
		s.usedUp(r)
	})},
}

// rated is a request for a permit of a rate.
func (s *scene) rated(limit, permits int, interval time.Duration) lock.Request {
	r := permit(0, s.level("", limit))
	r.Rate = lock.Rate{Permits: permits, Interval: interval}
	return r
}

// usedUp checks that the rate of r is.
func (s *scene) usedUp(r lock.Request) {
	s.Helper()
	if busy := s.full("", r); busy.Remaining <= 0 || busy.Remaining > r.Rate.Interval {
		s.Errorf("the next permit of %v comes in %v", r.Rate, busy.Remaining)
	}
}
