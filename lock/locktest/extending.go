package locktest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// extending is the optional methods Extend and Remaining: work that takes longer than its lease asks for more time.
var extending = []promise{
	// A hold without a lease needs no Extend, and is not to end because of one.
	{"a hold is extended and not shortened", holding[extender](func(s *scene) {
		h := s.extended(time.Minute)
		if err := h.(extender).Extend(s.Context(), time.Millisecond); err != nil {
			s.Errorf("a shorter Extend() = %v", err)
		}
		endless := s.outer(s.Context())
		if err := endless.(extender).Extend(s.Context(), lease); err != nil {
			s.Errorf("Extend() of a hold without a lease = %v", err)
		}
		<-time.After(lease + lease/3)
		s.busy(s.Context())
		s.alive(h, "the extended hold")
		s.alive(endless, "a hold without a lease")
		s.free(endless, h)
	})},

	{"an extended hold ends", holding[extender](func(s *scene) {
		const by = lease * 3 / 2
		start := time.Now()
		h := s.extended(by)
		next := s.overtakes(h)
		if held := time.Since(start); held < by*9/10 {
			s.Errorf("a hold that was extended by %v ended after %v", by, held)
		}
		s.ends(h, lock.ErrLost)
		s.releases(h, lock.ErrLost)
		s.free(next)
	})},

	{"MaxHold bounds Extend", holding[extender](func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{MaxHold: lease * 3 / 2, Lease: lease}))
		if err := h.(extender).Extend(s.Context(), time.Minute); errors.Is(err, lock.ErrLost) {
			s.Log("too slow for this check")
		} else if err != nil {
			s.Errorf("Extend() = %v", err)
		} else {
			s.ends(h, lock.ErrLost, lock.ErrMaxHold)
		}
		s.releases(h, lock.ErrLost)
		s.free()
	})},

	// Extend reports a loss, but is no release: who finds out by it still releases, and gets the error again.
	{"an ended hold is not extended", holding[extender](func(s *scene) {
		lost := s.acquire(s.Context(), s.own(lock.Request{Lease: lease}))
		extends := func(h lock.Hold, want error) {
			s.Helper()
			if err := h.(extender).Extend(s.Context(), time.Minute); !errors.Is(err, want) {
				s.Errorf("Extend() = %v, want %v", err, want)
			}
		}
		s.ends(lost, lock.ErrLost)
		extends(lost, lock.ErrLost)
		s.free()
		extends(lost, lock.ErrLost)
		s.releases(lost, lock.ErrLost)
		extends(lost, lock.ErrNotHeld)
		h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
		s.release(h)
		extends(h, lock.ErrNotHeld)
		s.free()
	})},

	// A hold remains good for its lease at most, and for nothing once it has ended. One without a lease is renewed, or has no end.
	{"a hold knows how long it remains good", holding[remainer](func(s *scene) {
		remains := func(what string, h lock.Hold, least, most time.Duration) {
			s.Helper()
			if d := h.(remainer).Remaining(); d < least || d > most {
				s.Errorf("Remaining() = %v %s", d, what)
			}
		}
		h := s.acquire(s.Context(), s.own(lock.Request{Lease: time.Minute}))
		remains("under a lease of 1m", h, 1, time.Minute)
		endless := s.outer(s.Context())
		remains("without a lease", endless, 1, math.MaxInt64)
		s.release(endless, h)
		remains("after the release", h, 0, 0)
		lost := s.acquire(s.Context(), s.own(lock.Request{Lease: lease, Wait: -1}))
		s.ends(lost, lock.ErrLost)
		remains("after the loss", lost, 0, 0)
		s.releases(lost, lock.ErrLost)
		s.free()
	})},
}

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

// extended takes a lock that is extended before its lease ends. A slow machine may need a longer lease for that.
func (s *scene) extended(by time.Duration) (h lock.Hold) {
	s.Helper()
	s.inTime(func(d time.Duration) error {
		h = s.acquire(s.Context(), s.own(lock.Request{Lease: d, Wait: -1}))
		return h.(extender).Extend(s.Context(), by)
	})
	return h
}

type remainer interface {
	Remaining() time.Duration
}
