package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ending is how a lock ends that its holder did not release.
var ending = []promise{
	// When somebody else has the lock, the context of the one who lost it has ended already: there is nothing to wait for between the two.
	{"a holder is notified of its end before the next one starts", notifiedFirst(lock.Request{Lease: endingLease}, lock.ErrLost)},

	// A clock that runs on after the release would hit the next holder, or the same call again.
	{"a released lease ends nothing", func(s *scene) {
		var end time.Time
		s.inTime(func(d time.Duration) error {
			h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1, Lease: d}))
			end = time.Now().Add(d)
			return h.Release(s.Context())
		})
		h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
		<-time.After(time.Until(end) + lease/3)
		s.busy(s.Context())
		s.alive(h, "a hold without a lease")
		s.free(h)
	}},

	// With MaxHold no one can renew a lock for ever.
	{"MaxHold ends a hold", notifiedFirst(lock.Request{MaxHold: endingLease}, lock.ErrLost, lock.ErrMaxHold)},
	{"MaxHold ends a longer lease", notifiedFirst(lock.Request{MaxHold: endingLease, Lease: time.Minute}, lock.ErrLost, lock.ErrMaxHold)},

	// Keep is optional: a release that takes effect for strangers only after a while, for work that is done once an interval.
	// For the holder it is a release like any other.
	{"a kept lock stays for a while", holding[keeper](func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		start := s.keep(h)
		s.ends(h, context.Canceled)
		s.releases(h, lock.ErrNotHeld)
		if err := h.(keeper).Keep(s.Context(), lease); !errors.Is(err, lock.ErrNotHeld) {
			s.Errorf("a second Keep() = %v, want ErrNotHeld", err)
		}
		s.freeAfter(context.WithoutCancel(h.Context()), start, lease)
	})},

	// The inner work is done once an interval, whatever it is that calls it.
	{"a nested hold keeps the lock beyond the outer one", holding[keeper](func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		start := s.keep(s.acquire(outer.Context(), s.own(lock.Request{})))
		s.alive(outer, "the outer hold")
		s.release(outer)
		s.freeAfter(s.Context(), start, lease)
	})},
}

// endingLease is long enough for a locker to keep a part of it that outlasts the pauses of a busy machine: what a locker promises
// of an end, it promises to a process that runs.
const endingLease = 4 * lease

// notifiedFirst checks that a hold of r ends after about endingLease for all of causes, and before another one starts.
func notifiedFirst(r lock.Request, causes ...error) func(*scene) {
	return func(s *scene) {
		start := time.Now()
		h := s.acquire(s.Context(), s.own(r))
		next := s.overtakes(h)
		s.ends(h, causes...)
		if held := time.Since(start); held < endingLease/2 {
			s.Errorf("a hold of %v ended after %v", endingLease, held)
		}
		s.releases(h, lock.ErrLost)
		s.releases(h, lock.ErrNotHeld)
		s.start(s.Context(), s.own(lock.Request{})).fails(lock.ErrBusy) // the late releases did nothing to the next holder
		s.free(next)
	}
}

// overtakes waits for the end of h in line, and checks that its context has ended when the next hold starts.
func (s *scene) overtakes(h lock.Hold) (next lock.Hold) {
	s.Helper()
	next = s.start(s.Context(), s.rival(lock.Request{Wait: -1})).held()
	own, knows := h.(remainer)
	if late := knows && own.Remaining() == 0; h.Context().Err() == nil && !late { // by its own clock it is over, and a busy process says so late
		s.Fatal("the next holder started and the last one has not been notified")
	}
	return next
}

// inTime calls f with a lease until that is long enough to be in time with what f does under it. A slow machine may need a
// longer one.
func (s *scene) inTime(f func(lease time.Duration) error) {
	s.Helper()
	for d := lease; d < s.suite.patience; d *= 2 {
		err := f(d)
		if err == nil {
			return
		}
		if !errors.Is(err, lock.ErrLost) {
			s.Fatalf("under a lease of %v: %v", d, err)
		}
	}
	s.Fatal("a hold with a lease is always lost")
}

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// keep keeps h for a lease from start on.
func (s *scene) keep(h lock.Hold) (start time.Time) {
	s.Helper()
	start = time.Now()
	if err := h.(keeper).Keep(s.Context(), lease); err != nil {
		s.Errorf("Keep() = %v", err)
	}
	return start
}

// freeAfter checks that even those under ctx get the lock only d after start, and that they do get it.
func (s *scene) freeAfter(ctx context.Context, start time.Time, d time.Duration) {
	s.Helper()
	next := s.acquire(ctx, s.rival(lock.Request{Wait: -1}))
	if kept := time.Since(start); kept < d*9/10 {
		s.Errorf("a lock kept for %v came free after %v", d, kept)
	}
	s.release(next)
}
