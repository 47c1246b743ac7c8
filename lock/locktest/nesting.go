package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// nesting is how long the holds of one stay last: each for its own lease, and the lock for the longest.
var nesting = []promise{
	{name: "a shorter nested lease ends only the nested hold", check: shortNestedLease},
	{name: "a longer nested lease outlives the release of the outer hold", check: longNestedLeaseAfterRelease},
	{name: "a longer nested lease outlives the lease of the outer hold", check: longNestedLeaseAfterLoss},
	{name: "the end of a nested lease frees the lock", check: nestedLeaseEnds},
}

// pair is two holds of one stay, on a key of their own.
type pair struct {
	s            *scene
	key          string
	outer, inner lock.Hold
}

// pairs takes an outer and an inner hold for each of long, which is the lease of one of them. The context of the inner one
// does not end with the outer one. On a slow machine, an outer lease may be over before the inner Acquire, which makes two
// stays of them: the check proves less then, but must not fail.
func (s *scene) pairs(leases func(long time.Duration) (outer, inner time.Duration)) []pair {
	s.Helper()
	var pairs []pair
	for _, long := range []time.Duration{0, time.Minute} { // both are longer than lease
		p := pair{s: s, key: s.key + ":" + long.String()}
		outer, inner := leases(long)
		p.outer = s.acquire(s.Context(), s.own(lock.Request{Key: p.key, Lease: outer}))
		ctx := context.WithoutCancel(p.outer.Context())
		p.inner = s.acquire(ctx, s.own(lock.Request{Key: p.key, Lease: inner, Wait: -1}))
		pairs = append(pairs, p)
	}
	return pairs
}

// busy checks that strangers are refused.
func (p pair) busy() {
	p.s.Helper()
	p.s.start(p.s.Context(), p.s.rival(lock.Request{Key: p.key})).fails(lock.ErrBusy)
}

// free checks that strangers get the lock.
func (p pair) free() {
	p.s.Helper()
	p.s.release(p.s.acquire(p.s.Context(), p.s.rival(lock.Request{Key: p.key, Wait: -1})))
}

// An inner declaration does not change an outer one, be that renewed or with a lease of its own.
func shortNestedLease(s *scene) {
	pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return long, lease })
	for _, p := range pairs {
		s.ends(p.inner, lock.ErrLost)
	}
	<-time.After(lease / 3) // more than what a Locker may be early with telling
	for _, p := range pairs {
		p.busy()
		s.alive(p.outer, "the outer hold")
		s.releases(p.inner, lock.ErrLost)
		s.releases(p.inner, lock.ErrNotHeld)
		p.busy()
		s.alive(p.outer, "the outer hold")
		s.release(p.outer)
		p.free()
	}
}

func longNestedLeaseAfterRelease(s *scene) {
	pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return lease, long })
	for _, p := range pairs {
		if err := p.outer.Release(s.Context()); err != nil && !errors.Is(err, lock.ErrLost) {
			s.Errorf("Release() = %v", err)
		}
	}
	<-time.After(lease + lease/3)
	for _, p := range pairs {
		p.busy()
		s.alive(p.inner, "the nested hold")
		s.release(p.inner)
		p.free()
	}
}

func longNestedLeaseAfterLoss(s *scene) {
	pairs := s.pairs(func(long time.Duration) (outer, inner time.Duration) { return lease, long })
	for _, p := range pairs {
		s.ends(p.outer, lock.ErrLost)
	}
	<-time.After(lease / 3)
	for _, p := range pairs {
		p.busy()
		s.alive(p.inner, "the nested hold")
		s.releases(p.outer, lock.ErrLost)
		p.busy()
		s.release(p.inner)
		p.free()
	}
}

// What remains of the outer hold is not longer than what the nested one asked for.
func nestedLeaseEnds(s *scene) {
	outer := s.acquire(s.Context(), s.own(lock.Request{}))
	inner := s.acquire(context.WithoutCancel(outer.Context()), s.own(lock.Request{Lease: lease}))
	s.release(outer)
	next := s.start(s.Context(), s.rival(lock.Request{Wait: -1})).held()
	if inner.Context().Err() == nil {
		s.Error("the next holder started and the last one has not been notified")
	}
	s.ends(inner, lock.ErrLost)
	s.releases(inner, lock.ErrLost)
	s.release(next)
	s.free()
}
