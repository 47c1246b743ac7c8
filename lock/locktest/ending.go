package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ending is how a lock ends that its holder did not release.
var ending = []promise{
	{name: "the end of a lease is told before the next holder starts", check: leaseEndToldFirst},
	{name: "a released lease ends nothing", check: releasedLeaseEndsNothing},
	{name: "MaxHold ends a hold", check: maxHoldEnds},
	{name: "MaxHold ends a longer lease", check: maxHoldCutsLease},
	{name: "a kept lock stays for a while", check: keptLockStays},
}

// When somebody else has the lock, the context of the one who lost it has ended already: there is nothing to wait for
// between the two.
func leaseEndToldFirst(s *scene) {
	s.toldFirst(lock.Request{Lease: lease}, lock.ErrLost)
}

// With MaxHold no one can renew a lock for ever.
func maxHoldEnds(s *scene) {
	s.toldFirst(lock.Request{MaxHold: lease}, lock.ErrLost, lock.ErrMaxHold)
}

// The shorter one of the two counts.
func maxHoldCutsLease(s *scene) {
	s.toldFirst(lock.Request{MaxHold: lease, Lease: time.Minute}, lock.ErrLost, lock.ErrMaxHold)
}

// toldFirst checks that a hold of r ends after about lease for all of causes, and before another one starts.
func (s *scene) toldFirst(r lock.Request, causes ...error) {
	s.Helper()
	start := time.Now()
	h := s.acquire(s.Context(), s.own(r))
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1})).held()
	if h.Context().Err() == nil {
		s.Fatal("the next holder started and the last one has not been told")
	}
	s.ends(h, causes...)
	if held := time.Since(start); held < lease/2 {
		s.Errorf("a hold of %v ended after %v", lease, held)
	}
	s.releases(h, lock.ErrLost)
	if err := h.Release(s.Context()); err == nil {
		s.Error("the second release of a lost hold succeeds")
	}
	s.start(s.Context(), s.own(lock.Request{})).fails(lock.ErrBusy) // the late releases did nothing to the next holder
	s.release(next)
	s.free()
}

// A clock that runs on after the release would hit the next holder, or the same owner again.
func releasedLeaseEndsNothing(s *scene) {
	ctx := lock.NewOwner(s.Context())
	end := s.releasedLease(ctx)
	h := s.acquire(ctx, s.own(lock.Request{Wait: -1}))
	<-time.After(time.Until(end) + lease/3)
	s.busy(s.Context())
	if err := h.Context().Err(); err != nil {
		s.Errorf("the lease of the hold before ended this one: %v", context.Cause(h.Context()))
	}
	s.release(h)
	s.free()
}

// releasedLease takes and releases a lock with a lease, and returns when that would have ended. A slow machine may need a
// longer one to be in time with the release.
func (s *scene) releasedLease(ctx context.Context) (end time.Time) {
	s.Helper()
	for d := lease; d < s.suite.patience; d *= 2 {
		h := s.acquire(ctx, s.own(lock.Request{Wait: -1, Lease: d}))
		end = time.Now().Add(d)
		err := h.Release(s.Context())
		if err == nil {
			return end
		}
		if !errors.Is(err, lock.ErrLost) {
			s.Fatalf("Release() = %v", err)
		}
	}
	s.Fatal("a hold with a lease is always lost")
	return end
}

// Keep is optional: a release that takes effect for others only after a while, for work that is done once an interval.
func keptLockStays(s *scene) {
	h := s.acquire(s.Context(), s.own(lock.Request{}))
	k, ok := h.(interface {
		Keep(ctx context.Context, d time.Duration) error
	})
	if !ok {
		s.release(h)
		return
	}
	start := time.Now()
	if err := k.Keep(s.Context(), lease); err != nil {
		s.Errorf("Keep() = %v", err)
	}
	s.ends(h, context.Canceled)
	s.releases(h, lock.ErrNotHeld)
	next := s.acquire(s.Context(), s.rival(lock.Request{Wait: -1}))
	if kept := time.Since(start); kept < lease*9/10 {
		s.Errorf("a lock kept for %v came free after %v", lease, kept)
	}
	s.release(next)
}
