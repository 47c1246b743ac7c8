package locktest

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

var permits = []promise{
	{"as many owners as the limit", func(s *scene) {
		r := s.own(lock.Request{Limit: 3})
		var holds []lock.Hold
		for range r.Limit {
			holds = append(holds, s.acquire(s.Context(), r))
		}
		s.start(s.Context(), r).fails(lock.ErrBusy)
		waiter := s.inLine(s.Context(), r)
		s.release(holds[1])
		holds[1] = waiter.held()
		s.start(s.Context(), r).fails(lock.ErrBusy)
		s.release(holds...)
	}},

	{"never more owners than the limit", func(s *scene) {
		r := s.own(lock.Request{Limit: 2, Wait: -1})
		s.crowd(s.Context(), func(int, *rand.Rand) (lock.Request, int64) { return r, 1 }, func(inside int64) bool { return inside <= int64(r.Limit) })
	}},

	// Each call goes by the limit that it names itself, also if it waits.
	{"limits change from call to call", func(s *scene) {
		with := func(limit int) lock.Request { return s.own(lock.Request{Limit: limit}) }
		var holds []lock.Hold
		for _, limit := range []int{2, 2, 3, 5} {
			holds = append(holds, s.acquire(s.Context(), with(limit)))
		}
		s.start(s.Context(), with(4)).fails(lock.ErrBusy)
		waiter := s.inLine(s.Context(), with(2))
		s.release(holds[1:]...)
		s.release(waiter.held())
		s.start(s.Context(), with(1)).fails(lock.ErrBusy)
		s.release(holds[0])
		s.release(s.inLine(s.Context(), with(1)).held())
	}},
}

// levels are permits of several keys at once, which only some Lockers have.
var levels = []promise{
	{"levels are held together or not at all", leveled(func(s *scene) {
		total, ann, bob, eve := s.level("", 2), s.level("ann", 1), s.level("bob", 1), s.level("eve", 1)
		h := s.acquire(s.Context(), permit(0, total, ann))
		s.full(ann.Key, permit(0, total, bob, ann))
		other := s.acquire(s.Context(), permit(0, total, bob)) // so the refused call has neither
		s.full(total.Key, permit(0, total, eve))
		s.full(total.Key, permit(0, eve, total))
		s.passes(eve)
		s.release(h)
		s.passes(ann, eve, total)
		s.release(other)
		s.passes(s.level("", 1), bob, ann)
	})},

	// A call that waits has nothing meanwhile, whichever level comes free first. Those behind it that need no other
	// level go on.
	{"a wait for one level holds nothing of the others", leveled(func(s *scene) {
		a, b := s.level("a", 1), s.level("b", 1)
		inA, inB := s.acquire(s.Context(), permit(0, a)), s.acquire(s.Context(), permit(0, b))
		both := s.inLine(s.Context(), permit(0, a, b))
		next := s.inLine(s.Context(), permit(0, a))
		s.release(inA)
		inA = next.held()
		s.passes(s.level("c", 1), s.level("a", 2))
		s.release(inB)
		s.release(s.acquire(s.Context(), permit(-1, b, s.level("c", 1))))
		s.release(inA)
		s.release(both.held())
	})},

	{"levels end together", leveled(func(s *scene) {
		a, b := s.level("a", 1), s.level("b", 1)
		r := permit(0, a, b)
		r.Lease = lease
		h := s.acquire(s.Context(), r)
		s.ends(h, lock.ErrLost)
		s.release(s.acquire(s.Context(), permit(-1, b, a)))
		s.releases(h, lock.ErrLost)
		holding[keeper](func(s *scene) {
			start := s.keep(s.acquire(s.Context(), permit(-1, a, b)))
			s.freeAfter(s.Context(), start, permit(-1, b))
			s.release(s.acquire(s.Context(), permit(-1, a)))
		})(s)
	})},

	// Each key of a call is re-entered by itself. A key that was taken together with it may last as long as that.
	{"a nested call re-enters what its ancestors hold", leveled(func(s *scene) {
		a, b, c := s.level("a", 1), s.level("b", 1), s.level("c", 1)
		outer := s.acquire(s.Context(), permit(0, a, b))
		for _, r := range []lock.Request{permit(-1, a, b), permit(-1, b, a), permit(-1, a), permit(-1, b)} {
			s.release(s.acquire(outer.Context(), r))
		}
		ctx := context.WithoutCancel(outer.Context())
		inner := s.acquire(ctx, permit(-1, c, b)) // takes c alone
		s.full(c.Key, permit(0, c, s.level("d", 1)))
		s.release(outer)
		s.full(b.Key, permit(0, s.level("d", 1), b))
		s.release(inner)
		s.passes(a, b, c)
	})},

	// Many calls at a time name some of the levels in some order. Most of them wait for ever.
	{"any order of levels keeps each limit and comes to an end", leveled(func(s *scene) {
		a, b, c := s.level("a", 2), s.level("b", 1), s.level("c", 1)
		s.crowd(s.Context(), func(_ int, r *rand.Rand) (lock.Request, int64) {
			var some []lock.Level
			var weight int64
			for _, n := range r.Perm(3)[:1+r.IntN(3)] {
				some, weight = append(some, []lock.Level{a, b, c}[n]), weight+1<<(8*n) // a byte for each level
			}
			return permit(max(-1, time.Duration(r.IntN(8)-6))*time.Millisecond, some...), weight
		}, func(inside int64) bool { return inside&0xff <= 2 && inside>>8&0xff <= 1 && inside>>16 <= 1 })
		s.passes(c, b, s.level("a", 1))
	})},
}

type leveler interface {
	ServesLevels(keys ...string) error
}

// leveled is the check of a Locker that serves levels and rates.
func leveled(check func(*scene)) func(*scene) {
	return having[leveler](func(s *scene) {
		if s.locker.(leveler).ServesLevels(s.level("", 1).Key, s.level("a", 1).Key) == nil {
			check(s)
		}
	})
}

// level is one of the scene's, all of which are in one slot of a cluster.
func (s *scene) level(name string, limit int) lock.Level {
	return lock.Level{Key: "{" + s.key + "}" + name, Limit: limit}
}

// permit is a request for these levels. The first of them is its Key.
func permit(wait time.Duration, levels ...lock.Level) lock.Request {
	return lock.Request{Key: levels[0].Key, Kind: lock.Permit, Limit: levels[0].Limit, Levels: levels[1:], Wait: wait}
}

// passes checks that the levels are free.
func (s *scene) passes(levels ...lock.Level) {
	s.Helper()
	s.release(s.acquire(s.Context(), permit(0, levels...)))
}

// full checks that r is busy because of this level, or of the rate if that is empty.
func (s *scene) full(level string, r lock.Request) lock.BusyError {
	s.Helper()
	busy := s.start(s.Context(), r).busy()
	if busy.Level != level || busy.Rate != (level == "") || busy.Here == busy.Rate {
		s.Fatalf("Acquire(%+v) = %+v, want it busy for the level %q", r, *busy, level)
	}
	having[peeker](func(s *scene) { s.foretold(s.Context(), r) })(s)
	return *busy
}

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
		waiter := s.inLine(ctx, r)
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
