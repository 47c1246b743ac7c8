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
		s.matches("a second Keep()", h.(keeper).Keep(s.Context(), lease), lock.ErrNotHeld)
		s.freeAfter(context.WithoutCancel(h.Context()), start, s.rival(lock.Request{Wait: -1}))
	})},

	// The inner work is done once an interval, whatever it is that calls it.
	{"a nested hold keeps the lock beyond the outer one", holding[keeper](func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		start := s.keep(s.acquire(outer.Context(), s.own(lock.Request{})))
		s.alive(outer, "the outer hold")
		s.release(outer)
		s.freeAfter(s.Context(), start, s.rival(lock.Request{Wait: -1}))
	})},
}

// endingLease is long enough for a locker to keep a part of it that outlasts the pauses of a busy machine: what a locker promises
// of an end, it promises to a process that runs.
const endingLease = 4 * lease

// notifiedFirst checks that a hold of r ends after about endingLease for all of causes, and before another one starts.
func notifiedFirst(r lock.Request, causes ...error) func(*scene) {
	return func(s *scene) {
		start := time.Now()
		end := s.overtaken(s.acquire(s.Context(), s.own(r)), causes...)
		if held := end.Sub(start); held < endingLease/2 {
			s.Errorf("a hold of %v ended after %v", endingLease, held)
		}
	}
}

// overtaken waits for the end of h in line. It checks that the context of h has ended for all of causes when the next hold starts, which
// is the time that it returns, and that late releases do nothing to the next holder.
func (s *scene) overtaken(h lock.Hold, causes ...error) (end time.Time) {
	s.Helper()
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1})).held()
	end = time.Now()
	own, knows := h.(remainer)
	if late := knows && own.Remaining() == 0; h.Context().Err() == nil && !late { // by its own clock it is over, and a busy process says so late
		s.Fatal("the next holder started and the last one has not been notified")
	}
	s.ends(h, causes...)
	s.releases(h, lock.ErrLost)
	s.releases(h, lock.ErrNotHeld)
	s.start(s.Context(), s.own(lock.Request{})).fails(lock.ErrBusy)
	s.free(next)
	return end
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

// beneath takes outer with a lease of its own, and r under it, whose context does not end with the outer one's.
func (s *scene) beneath(outer, r lock.Request) (first, second lock.Hold) {
	s.Helper()
	s.inTime(func(lease time.Duration) (err error) {
		outer.Lease = lease
		first = s.acquire(s.Context(), outer)
		if second, err = s.start(context.WithoutCancel(first.Context()), r).result(); err != nil {
			s.releases(first, lock.ErrLost)
		}
		return err
	})
	return first, second
}

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// keep keeps h for a lease from start on.
func (s *scene) keep(h lock.Hold) (start time.Time) {
	s.Helper()
	start = time.Now()
	s.matches("Keep()", h.(keeper).Keep(s.Context(), lease), nil)
	return start
}

// freeAfter checks that even those under ctx get what was kept only a lease after start, and that they do get it.
func (s *scene) freeAfter(ctx context.Context, start time.Time, r lock.Request) {
	s.Helper()
	next := s.acquire(ctx, r)
	if kept := time.Since(start); kept < lease*9/10 {
		s.Errorf("a lock kept for %v came free after %v", lease, kept)
	}
	s.release(next)
}

// nesting is how long the holds of one stay last: each for its own lease, and the lock for the longest.
var nesting = []promise{
	// An inner declaration does not change an outer one, be that renewed or with a lease of its own.
	{"a shorter nested lease ends only the nested hold", func(s *scene) { longStays(s.pairs(false)) }},

	{"a longer nested lease outlives the lease of the outer hold", func(s *scene) { longStays(s.pairs(true)) }},

	{"a longer nested lease outlives the release of the outer hold", func(s *scene) {
		pairs := s.pairs(true)
		for _, p := range pairs {
			if err := p.short.Release(s.Context()); err != nil && !errors.Is(err, lock.ErrLost) {
				s.Errorf("Release() = %v", err)
			}
		}
		<-time.After(lease + lease/3)
		for _, p := range pairs {
			p.busy(s.Context())
			s.alive(p.long, "the nested hold")
			p.free(p.long)
		}
	}},

	// The outer hold lasts no longer than the lease that the nested one has requested.
	{"the end of a nested lease frees the lock", func(s *scene) {
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		inner := s.acquire(context.WithoutCancel(outer.Context()), s.own(lock.Request{Lease: lease}))
		s.release(outer)
		s.overtaken(inner, lock.ErrLost)
	}},
}

// pair is two holds of one stay, in a scene with a key of its own.
type pair struct {
	*scene
	short, long lock.Hold
}

// pairs takes an outer hold and one under it, for each of the leases that outlast the other's. The context of the inner one does not end
// with the outer one. On a slow machine, an outer lease may be over before the inner Acquire, which makes two stays of them: the check
// proves less then, but must not fail.
func (s *scene) pairs(longInner bool) (pairs []pair) {
	s.Helper()
	for _, long := range []time.Duration{0, time.Minute} {
		at := *s
		at.key += ":" + long.String()
		p := pair{scene: &at}
		if longInner {
			p.short, p.long = at.beneath(at.own(lock.Request{}), at.own(lock.Request{Lease: long, Wait: -1}))
		} else {
			p.long = at.acquire(s.Context(), at.own(lock.Request{Lease: long}))
			p.short = at.acquire(context.WithoutCancel(p.long.Context()), at.own(lock.Request{Lease: lease, Wait: -1}))
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// longStays checks that the shorter lease ends its hold and nothing else.
func longStays(pairs []pair) {
	for _, p := range pairs {
		p.ends(p.short, lock.ErrLost)
	}
	<-time.After(lease / 3) // more than what a Locker may be early with telling
	for _, p := range pairs {
		p.busy(p.Context())
		p.alive(p.long, "the hold with the longer lease")
		p.releases(p.short, lock.ErrLost)
		p.releases(p.short, lock.ErrNotHeld)
		p.busy(p.Context())
		p.alive(p.long, "the hold with the longer lease")
		p.free(p.long)
	}
}

// extending is the optional methods Extend and Remaining: work that takes longer than its lease asks for more time.
var extending = []promise{
	// A hold without a lease needs no Extend, and is not to end because of one.
	{"a hold is extended and not shortened", holding[extender](func(s *scene) {
		h := s.extended(time.Minute)
		s.extends(h, time.Millisecond, nil)
		endless := s.outer(s.Context())
		s.extends(endless, lease, nil)
		<-time.After(lease + lease/3)
		s.busy(s.Context())
		s.alive(h, "the extended hold")
		s.alive(endless, "a hold without a lease")
		s.free(endless, h)
	})},

	{"an extended hold ends", holding[extender](func(s *scene) {
		const by = lease * 3 / 2
		start := time.Now()
		end := s.overtaken(s.extended(by), lock.ErrLost)
		if held := end.Sub(start); held < by*9/10 {
			s.Errorf("a hold that was extended by %v ended after %v", by, held)
		}
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
		s.ends(lost, lock.ErrLost)
		s.extends(lost, time.Minute, lock.ErrLost)
		s.free()
		s.extends(lost, time.Minute, lock.ErrLost)
		s.releases(lost, lock.ErrLost)
		s.extends(lost, time.Minute, lock.ErrNotHeld)
		h := s.acquire(s.Context(), s.own(lock.Request{Wait: -1}))
		s.release(h)
		s.extends(h, time.Minute, lock.ErrNotHeld)
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

// extends checks that an Extend of h by d returns an error that matches want.
func (s *scene) extends(h lock.Hold, d time.Duration, want error) {
	s.Helper()
	s.matches("Extend()", h.(extender).Extend(s.Context(), d), want)
}

type remainer interface {
	Remaining() time.Duration
}
