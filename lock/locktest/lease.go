package locktest

import (
	"context"
	"errors"
	"math"
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

// nesting is how long the holds of one stay last: each for its own lease, and the lock for the longest.
var nesting = []promise{
	// An inner declaration does not change an outer one, be that renewed or with a lease of its own.
	{"a shorter nested lease ends only the nested hold", func(s *scene) {
		pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return long, lease })
		for _, p := range pairs {
			s.ends(p.inner, lock.ErrLost)
		}
		<-time.After(lease / 3) // more than what a Locker may be early with telling
		for _, p := range pairs {
			p.busy(s.Context())
			s.alive(p.outer, "the outer hold")
			s.releases(p.inner, lock.ErrLost)
			s.releases(p.inner, lock.ErrNotHeld)
			p.busy(s.Context())
			s.alive(p.outer, "the outer hold")
			p.free(p.outer)
		}
	}},

	{"a longer nested lease outlives the release of the outer hold", func(s *scene) {
		pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return lease, long })
		for _, p := range pairs {
			if err := p.outer.Release(s.Context()); err != nil && !errors.Is(err, lock.ErrLost) {
				s.Errorf("Release() = %v", err)
			}
		}
		<-time.After(lease + lease/3)
		for _, p := range pairs {
			p.busy(s.Context())
			s.alive(p.inner, "the nested hold")
			p.free(p.inner)
		}
	}},

	{"a longer nested lease outlives the lease of the outer hold", func(s *scene) {
		pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return lease, long })
		for _, p := range pairs {
			s.ends(p.outer, lock.ErrLost)
		}
		<-time.After(lease / 3)
		for _, p := range pairs {
			p.busy(s.Context())
			s.alive(p.inner, "the nested hold")
			s.releases(p.outer, lock.ErrLost)
			p.busy(s.Context())
			p.free(p.inner)
		}
	}},

	// What remains of the outer hold is not longer than what the nested one asked for.
	{"the end of a nested lease frees the lock", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		inner := s.acquire(context.WithoutCancel(outer.Context()), s.own(lock.Request{Lease: lease}))
		s.release(outer)
		next := s.overtakes(inner)
		s.ends(inner, lock.ErrLost)
		s.releases(inner, lock.ErrLost)
		s.free(next)
	}},
}

// pair is two holds of one stay, in a scene with a key of its own.
type pair struct {
	*scene
	outer, inner lock.Hold
}

// pairs takes an outer and an inner hold for each of long, which is the lease of one of them. The context of the inner one
// does not end with the outer one. On a slow machine, an outer lease may be over before the inner Acquire, which makes two
// stays of them: the check proves less then, but must not fail.
func (s *scene) pairs(leases func(long time.Duration) (outer, inner time.Duration)) []pair {
	s.Helper()
	var pairs []pair
	for _, long := range []time.Duration{0, time.Minute} { // both are longer than lease
		at := *s
		at.key += ":" + long.String()
		outer, inner := leases(long)
		p := pair{scene: &at, outer: at.acquire(s.Context(), at.own(lock.Request{Lease: outer}))}
		p.inner = at.acquire(context.WithoutCancel(p.outer.Context()), at.own(lock.Request{Lease: inner, Wait: -1}))
		pairs = append(pairs, p)
	}
	return pairs
}

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
