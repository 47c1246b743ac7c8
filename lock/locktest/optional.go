package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// replacing is the optional method Replace: the newest call wins.
var replacing = []promise{
	// The older call is notified, and has the lock for as long as it needs to come to an end.
	{"a newer call replaces an older one", having[replacer](func(s *scene) {
		older := s.newcomer(s.Context(), lock.Request{})
		h := s.acquire(older.ctx, s.own(lock.Request{}))
		older.goesOn("the only turn")
		newer := s.newcomer(s.Context(), lock.Request{})
		older.replaced()
		s.ends(h, lock.ErrReplaced)
		next := s.inLine(newer.ctx, s.rival(lock.Request{}))
		s.busy(s.Context())
		s.release(h)
		older.leave()
		last := next.held()
		s.alive(last, "the newer hold")
		s.release(last)
		newer.leave()
		newer.leave() // as a deferred one may
		s.ends(newer, context.Canceled)
		s.free()
	})},

	// Those that wait give up.
	{"of many newcomers the newest stays", having[replacer](func(s *scene) {
		first := s.newcomer(s.Context(), lock.Request{})
		h := s.acquire(first.ctx, s.own(lock.Request{}))
		waiting := s.newcomer(s.Context(), lock.Request{})
		attempt := s.start(waiting.ctx, s.rival(lock.Request{Wait: -1}))
		for range 5 {
			next := s.newcomer(s.Context(), lock.Request{})
			waiting.replaced()
			attempt.fails(lock.ErrReplaced)
			waiting.leave()
			waiting, attempt = next, s.start(next.ctx, s.rival(lock.Request{Wait: -1}))
		}
		waiting.goesOn("the newest turn")
		s.release(h)
		first.leave()
		s.release(attempt.held())
		waiting.goesOn("the newest turn")
		waiting.leave()
		s.free()
	})},

	// A call under the hold is a part of it, and ends with it.
	{"a re-entry replaces nobody", having[replacer](func(s *scene) {
		outer := s.newcomer(s.Context(), lock.Request{})
		h := s.acquire(outer.ctx, s.own(lock.Request{}))
		inner := s.newcomer(h.Context(), lock.Request{})
		nested := s.acquire(inner.ctx, s.own(lock.Request{}))
		outer.goesOn("the turn of the call that came again")
		s.release(nested)
		inner.leave()
		outer.goesOn("the turn of the call that came again and left")
		inner = s.newcomer(h.Context(), lock.Request{})
		stranger := s.newcomer(lock.NewOwner(s.Context()), lock.Request{})
		outer.replaced()
		inner.replaced()
		inner.leave()
		stranger.goesOn("the newest turn")
		s.release(h)
		outer.leave()
		stranger.leave()
		s.free()
	})},

	{"only turns at the key are replaced", having[replacer](func(s *scene) {
		elsewhere := s.newcomer(s.Context(), lock.Request{Key: s.key + "2"})
		left := s.newcomer(s.Context(), lock.Request{})
		left.leave()
		s.ends(left, context.Canceled)
		plain := s.acquire(s.Context(), s.own(lock.Request{}))
		newest := s.newcomer(s.Context(), lock.Request{})
		elsewhere.goesOn("the turn at another key")
		newest.goesOn("the newest turn")
		s.alive(plain, "a hold that was not announced")
		s.ends(left, context.Canceled) // as before
		s.release(plain)
		newest.leave()
		elsewhere.leave()
		s.free()
	})},

	{"an ended context replaces nobody", having[replacer](func(s *scene) {
		older := s.newcomer(s.Context(), lock.Request{})
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errCause)
		_, _, err := s.locker.(replacer).Replace(ctx, s.own(lock.Request{}))
		s.matches("Replace()", err, errCause)
		older.goesOn("the only turn")
		older.leave()
	})},
}

type replacer interface {
	Replace(ctx context.Context, r lock.Request) (turn context.Context, leave func(), err error)
}

// turn is a call that was announced.
type turn struct {
	s     *scene
	ctx   context.Context
	leave func()
}

func (t *turn) Context() context.Context { return t.ctx }

// newcomer announces a call.
func (s *scene) newcomer(ctx context.Context, r lock.Request) *turn {
	s.Helper()
	r.Wait = cmp.Or(r.Wait, s.suite.patience) // for the service to answer: nobody is waited for
	newest, leave, err := s.locker.(replacer).Replace(ctx, s.own(r))
	if err != nil {
		s.Fatalf("Replace() = %v", err)
	}
	return &turn{s, newest, leave}
}

// replaced waits until t has been.
func (t *turn) replaced() {
	t.s.Helper()
	t.s.ends(t, lock.ErrReplaced)
	t.s.notLost(t)
}

// goesOn checks that t has not ended.
func (t *turn) goesOn(what string) {
	t.s.Helper()
	t.s.pause()
	t.s.alive(t, what)
}

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
				s.matches("Peek()", s.locker.(peeker).Peek(s.Context(), s.rival(lock.Request{Wait: -1})), want)
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

// foretold checks that Peek returns the result of an Acquire of r. It releases the lock that this
// gets.
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

// gathering is the optional method ReleaseAll: a Release of each of many holds.
var gathering = []promise{
	// The holds are of several keys, and two of one stay, in the order in which a call took them.
	{"ReleaseAll releases all", having[gatherer](func(s *scene) {
		s.matches("ReleaseAll() of no holds", s.gathered(), nil)
		outer := s.acquire(s.Context(), s.own(lock.Request{}))
		again := s.acquire(context.WithoutCancel(outer.Context()), s.own(lock.Request{}))
		holds := []lock.Hold{outer, again}
		for n := range 3 {
			holds = append(holds, s.acquire(s.Context(), s.own(s.nth(n, lock.Request{}))))
		}
		next := s.inLine(s.Context(), s.rival(lock.Request{}))
		s.matches("ReleaseAll()", s.gathered(holds...), nil)
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
		err := s.gathered(lost, released, good)
		s.matches("ReleaseAll()", err, lock.ErrLost)
		s.matches("ReleaseAll()", err, lock.ErrNotHeld)
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
