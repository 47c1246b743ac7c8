package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

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

	// Whoever waits has nothing meanwhile, whichever level comes free first. Those behind it that need no other level go on.
	{"a wait for one level holds nothing of the others", leveled(func(s *scene) {
		a, b := s.level("a", 1), s.level("b", 1)
		inA, inB := s.acquire(s.Context(), permit(0, a)), s.acquire(s.Context(), permit(0, b))
		both := s.start(s.Context(), permit(-1, a, b))
		s.pause()
		next := s.start(s.Context(), permit(-1, a))
		s.pause()
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
			s.release(s.acquire(s.Context(), permit(-1, b)))
			if kept := time.Since(start); kept < lease*9/10 {
				s.Errorf("a level kept for %v came free after %v", lease, kept)
			}
			s.release(s.acquire(s.Context(), permit(-1, a)))
		})(s)
	})},

	// Each key of a call is re-entered by itself. What was taken together with it may last as long as that.
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

// passes checks that the levels can be had at once.
func (s *scene) passes(levels ...lock.Level) {
	s.Helper()
	s.release(s.acquire(s.Context(), permit(0, levels...)))
}

// full checks that r can't be had at once, because of this level, or of the rate if that is empty.
func (s *scene) full(level string, r lock.Request) lock.BusyError {
	s.Helper()
	_, err := s.start(s.Context(), r).result()
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok || busy.Level != level || busy.Rate != (level == "") || busy.Here == busy.Rate {
		s.Fatalf("Acquire(%+v) = %#v, want a BusyError for the level %q", r, err, level)
	}
	having[peeker](func(s *scene) { s.foretold(s.Context(), r) })(s)
	return *busy
}
