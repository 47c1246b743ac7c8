package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

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
