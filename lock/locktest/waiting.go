package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// waiting is how long an Acquire stays in line, and what it says when it gives up.
var waiting = []promise{
	{"no wait means one try", waitEnds(0)},
	{"a limited wait ends", waitEnds(200 * time.Millisecond)},

	{"a limited wait is served", func(s *scene) { s.served(s.suite.patience) }},
	{"an unbounded wait is served", func(s *scene) { s.served(-1) }},

	// Callers make a Retry-After of it, so it must not be longer than the truth. A Locker that does not know says 0.
	{"busy names the remaining lease", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{Lease: time.Minute}))
		if busy := s.isBusy(lock.Request{}); busy.Remaining > time.Minute {
			s.Errorf("Remaining = %v of a lease of 1m", busy.Remaining)
		}
		s.free(h)
	}},

	// A client that hangs up neither takes the lock later nor stands in the way of those behind it.
	{"a cancelled wait leaves the line", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		ctx, cancel := context.WithCancelCause(s.Context())
		gone := s.inLine(ctx, s.rival(lock.Request{}))
		next := s.inLine(s.Context(), s.rival(lock.Request{}))
		cancel(errCause)
		gone.fails(errCause)
		s.release(h)
		s.release(next.held())
		s.free()
	}},

	{"a wait ends with the cause of its deadline", func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		ctx, cancel := context.WithTimeoutCause(s.Context(), 100*time.Millisecond, errCause)
		defer cancel()
		s.start(ctx, s.rival(lock.Request{Wait: -1})).fails(errCause)
		s.free(h)
	}},

	{"an ended context takes nothing", func(s *scene) {
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errCause)
		s.start(ctx, s.own(lock.Request{})).fails(errCause)
		s.start(ctx, s.own(lock.Request{Wait: -1})).fails(errCause)
		s.free()
	}},
}

var errCause = errors.New("the cause that the test gave")

func waitEnds(wait time.Duration) func(*scene) {
	return func(s *scene) {
		h := s.acquire(s.Context(), s.own(lock.Request{}))
		_ = s.isBusy(lock.Request{Wait: wait})
		s.free(h)
	}
}

// isBusy checks that r is refused with true details, and not before it has waited.
func (s *scene) isBusy(r lock.Request) *lock.BusyError {
	s.Helper()
	start := time.Now()
	busy := s.start(s.Context(), s.rival(r)).busy()
	took := time.Since(start)
	least := r.Wait * 9 / 10 // for clocks that count in other units
	if took < least || busy.Waited < least || busy.Waited > took {
		s.Errorf("Acquire with Wait %v took %v and says %v", r.Wait, took, busy.Waited)
	}
	if busy.Remaining < 0 {
		s.Errorf("Remaining = %v", busy.Remaining)
	}
	return busy
}

// served checks that release passes the lock to one who waits.
func (s *scene) served(wait time.Duration) {
	s.Helper()
	h := s.acquire(s.Context(), s.own(lock.Request{}))
	next := s.start(s.Context(), s.rival(lock.Request{Wait: wait}))
	s.pause()
	s.release(h)
	s.release(next.held())
}
