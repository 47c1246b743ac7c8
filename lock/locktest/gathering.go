package locktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/lock"
)

// gathering is the optional method ReleaseAll: a Release of each of many holds.
var gathering = []promise{
	// The holds are of several keys, and two of one stay, in the order in which a call took them.
	{"ReleaseAll releases all", having[gatherer](func(s *scene) {
		if err := s.gathered(); err != nil {
			s.Errorf("ReleaseAll() of no holds = %v", err)
		}
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		again := s.acquire(context.WithoutCancel(outer.Context()), s.own(lock.Request{}))
		holds := []lock.Hold{outer, again}
		for n := range 3 {
			holds = append(holds, s.acquire(s.Context(), s.own(s.nth(n, lock.Request{}))))
		}
		next := s.start(s.Context(), s.rival(lock.Request{Wait: -1}))
		s.pause()
		if err := s.gathered(holds...); err != nil {
			s.Errorf("ReleaseAll() = %v", err)
		}
		for _, h := range holds {
			s.ends(h, context.Canceled)
			s.releases(h, lock.ErrNotHeld)
		}
		s.release(next.held())
		for n := range 3 {
			s.release(s.acquire(s.Context(), s.rival(s.nth(n, lock.Request{Wait: s.suite.patience}))))
		}
		s.free()
	})},

	// One hold is good among those that are not.
	{"ReleaseAll tells the fate of each", having[gatherer](func(s *scene) {
		lost := s.acquire(s.Context(), s.own(s.nth(0, lock.Request{Lease: lease})))
		released := s.acquire(s.Context(), s.own(s.nth(1, lock.Request{})))
		good := s.acquire(s.Context(), s.own(lock.Request{}))
		s.release(released)
		s.ends(lost, lock.ErrLost)
		if err := s.gathered(lost, released, good); !errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrNotHeld) {
			s.Errorf("ReleaseAll() = %v, want both ErrLost and ErrNotHeld", err)
		}
		s.ends(good, context.Canceled)
		for _, h := range []lock.Hold{lost, released, good} {
			s.releases(h, lock.ErrNotHeld)
		}
		s.free()
	})},
}

type gatherer interface {
	ReleaseAll(ctx context.Context, holds []lock.Hold) error
}

// gathered releases holds together, within the patience of the suite.
func (s *scene) gathered(holds ...lock.Hold) error {
	ctx, cancel := context.WithTimeout(s.Context(), s.suite.patience)
	defer cancel()
	return s.locker.(gatherer).ReleaseAll(ctx, holds)
}

// nth is a request for another key than the scene's.
func (s *scene) nth(n int, r lock.Request) lock.Request {
	r.Key = fmt.Sprint(s.key, ":", n)
	return r
}
