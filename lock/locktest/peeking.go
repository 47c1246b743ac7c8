package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// peeking is the optional method Peek.
var peeking = []promise{
	{"Peek says what an Acquire would get", having[peeker](func(s *scene) {
		ended, cancel := context.WithCancelCause(s.Context())
		cancel(errCause)
		s.foretold(s.Context(), s.own(lock.Request{}))
		s.foretold(ended, s.own(lock.Request{}))
		h := s.acquire(s.Context(), s.own(lock.Request{Lease: time.Minute, Wait: -1}))
		for _, kind := range s.suite.kinds {
			s.foretold(s.Context(), s.request(kind, lock.Request{}))
			s.foretold(h.Context(), s.request(kind, lock.Request{}))
			s.foretold(lock.NewOwner(h.Context()), s.request(kind, lock.Request{}))
		}
		s.foretold(s.Context(), s.own(lock.Request{Key: s.key + "2"}))
		s.free(h)
		s.foretold(s.Context(), s.own(lock.Request{}))
	})},

	{"Peek takes nothing", having[peeker](func(s *scene) {
		peek := func(want error) {
			s.Helper()
			for range 3 {
				if err := s.locker.(peeker).Peek(s.Context(), s.rival(lock.Request{Wait: -1})); !errors.Is(err, want) {
					s.Errorf("Peek() = %v, want %v", err, want)
				}
			}
		}
		peek(nil)
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		peek(lock.ErrBusy)
		s.alive(h, "the hold that was looked at")
		s.release(h)
		s.release(s.acquire(s.Context(), s.own(lock.Request{Wait: -1})))
		s.free()
	})},
}

type peeker interface {
	Peek(ctx context.Context, r lock.Request) error
}

// foretold checks that Peek returns what an Acquire of r does. What that gets is released.
func (s *scene) foretold(ctx context.Context, r lock.Request) {
	s.Helper()
	said := s.locker.(peeker).Peek(ctx, r)
	h, err := s.start(ctx, r).result()
	if h != nil {
		s.release(h)
	}
	same := (said == nil) == (err == nil)
	for _, class := range []error{lock.ErrBusy, lock.ErrUnsupported, errCause} {
		same = same && errors.Is(said, class) == errors.Is(err, class)
	}
	if !same {
		s.Errorf("%+v: Peek() = %v, and Acquire() = %v", r, said, err)
	}
	if busy, ok := errors.AsType[*lock.BusyError](said); ok && (busy.Remaining < 0 || busy.Remaining > time.Minute) {
		s.Errorf("%+v: Peek says that it remains held for %v of a lease of %v", r, busy.Remaining, time.Minute)
	}
}
