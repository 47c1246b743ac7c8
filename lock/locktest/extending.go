package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// extending is the optional methods Extend and Remaining: work that takes longer than its lease asks for more time.
var extending = []promise{
	{name: "a hold is extended and not shortened", check: holdExtended},
	{name: "an extended hold ends", check: extendedHoldEnds},
	{name: "MaxHold bounds Extend", check: maxHoldBoundsExtend},
	{name: "an ended hold is not extended", check: endedHoldNotExtended},
	{name: "a hold knows how long it remains good", check: holdRemains},
}

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

// extendable takes a lock that is extended before its lease ends, if its hold can be. A slow machine may need a longer
// lease for that.
func (s *scene) extendable(r lock.Request, by time.Duration) (h lock.Hold, e extender) {
	s.Helper()
	s.inTime(func(d time.Duration) error {
		r.Lease, r.Wait = d, -1
		h = s.acquire(s.Context(), s.own(r))
		if e, _ = h.(extender); e == nil {
			return nil
		}
		return e.Extend(s.Context(), by)
	})
	if e == nil {
		s.release(h)
	}
	return h, e
}

// A hold without a lease needs no Extend, and is not to end because of one.
func holdExtended(s *scene) {
	h, e := s.extendable(lock.Request{}, time.Minute)
	if e == nil {
		return
	}
	if err := e.Extend(s.Context(), time.Millisecond); err != nil {
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
	s.release(endless)
	s.release(h)
	s.free()
}

func extendedHoldEnds(s *scene) {
	const by = lease * 3 / 2
	start := time.Now()
	h, e := s.extendable(lock.Request{}, by)
	if e == nil {
		return
	}
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1})).held()
	if h.Context().Err() == nil {
		s.Error("the next holder started and the last one has not been notified")
	}
	if held := time.Since(start); held < by*9/10 {
		s.Errorf("a hold that was extended by %v ended after %v", by, held)
	}
	s.ends(h, lock.ErrLost)
	s.releases(h, lock.ErrLost)
	s.release(next)
	s.free()
}

func maxHoldBoundsExtend(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{MaxHold: lease * 3 / 2, Lease: lease}))
	e, ok := h.(extender)
	if !ok {
		s.release(h)
		return
	}
	if err := e.Extend(s.Context(), time.Minute); errors.Is(err, lock.ErrLost) {
		s.Log("too slow for this check")
	} else if err != nil {
		s.Errorf("Extend() = %v", err)
	} else {
		s.ends(h, lock.ErrLost, lock.ErrMaxHold)
	}
	s.releases(h, lock.ErrLost)
	s.free()
}

// Extend reports a loss, but is no release: who finds out by it still releases, and gets the error again.
func endedHoldNotExtended(s *scene) {
	lost := s.acquire(s.Context(), s.own(lock.Request{Lease: lease}))
	e, ok := lost.(extender)
	if !ok {
		s.release(lost)
		return
	}
	extends := func(want error) {
		s.Helper()
		if err := e.Extend(s.Context(), time.Minute); !errors.Is(err, want) {
			s.Errorf("Extend() = %v, want %v", err, want)
		}
	}
	s.ends(lost, lock.ErrLost)
	extends(lock.ErrLost)
	s.free()
	extends(lock.ErrLost)
	s.releases(lost, lock.ErrLost)
	extends(lock.ErrNotHeld)

	h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
	s.release(h)
	e = h.(extender)
	extends(lock.ErrNotHeld)
	s.free()
}

type remainer interface {
	Remaining() time.Duration
}

// A hold remains good for its lease at most, and for nothing once it has ended. One without a lease is renewed, or has no end.
func holdRemains(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{Lease: time.Minute}))
	r, ok := h.(remainer)
	if !ok {
		s.release(h)
		return
	}
	if d := r.Remaining(); d <= 0 || d > time.Minute {
		s.Errorf("Remaining() = %v under a lease of %v", d, time.Minute)
	}
	endless := s.outer(s.Context())
	if d := endless.(remainer).Remaining(); d <= 0 {
		s.Errorf("Remaining() = %v without a lease", d)
	}
	s.release(endless)
	s.release(h)
	if d := r.Remaining(); d != 0 {
		s.Errorf("Remaining() = %v after the release", d)
	}
	lost := s.acquire(s.Context(), s.own(lock.Request{Lease: lease, Wait: -1}))
	s.ends(lost, lock.ErrLost)
	if d := lost.(remainer).Remaining(); d != 0 {
		s.Errorf("Remaining() = %v after the loss", d)
	}
	s.releases(lost, lock.ErrLost)
	s.free()
}
