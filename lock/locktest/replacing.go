package locktest

import (
	"cmp"
	"context"
	"errors"

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
		next := s.start(newer.ctx, s.rival(lock.Request{Wait: -1}))
		s.pause()
		s.busy(s.Context())
		s.release(h)
		older.leave()
		last := next.held()
		s.alive(last, "the newer hold")
		s.release(last)
		newer.leave()
		newer.leave() // as a deferred one may
		if cause := context.Cause(newer.ctx); errors.Is(cause, lock.ErrReplaced) {
			s.Errorf("a turn that nobody came after ends with cause %v", cause)
		}
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
		if cause := context.Cause(left.ctx); !errors.Is(cause, context.Canceled) {
			s.Errorf("a turn that was left ends with cause %v, want canceled", cause)
		}
		plain := s.acquire(s.Context(), s.own(lock.Request{}))
		newest := s.newcomer(s.Context(), lock.Request{})
		elsewhere.goesOn("the turn at another key")
		newest.goesOn("the newest turn")
		s.alive(plain, "a hold that was not announced")
		if cause := context.Cause(left.ctx); errors.Is(cause, lock.ErrReplaced) {
			s.Errorf("a turn that was left ends with cause %v", cause)
		}
		s.release(plain)
		newest.leave()
		elsewhere.leave()
		s.free()
	})},

	{"an ended context replaces nobody", having[replacer](func(s *scene) {
		older := s.newcomer(s.Context(), lock.Request{})
		ctx, cancel := context.WithCancelCause(s.Context())
		cancel(errCause)
		if _, _, err := s.locker.(replacer).Replace(ctx, s.own(lock.Request{})); !errors.Is(err, errCause) {
			s.Errorf("Replace() = %v, want the cause of its context", err)
		}
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
	if !t.s.happens(t.ctx.Done(), 0) {
		t.s.Fatal("a newer call came, and the turn of the older one does not end")
	}
	if cause := context.Cause(t.ctx); !errors.Is(cause, lock.ErrReplaced) || errors.Is(cause, lock.ErrLost) {
		t.s.Errorf("the turn of the older call ends with cause %v, want ErrReplaced", cause)
	}
}

// goesOn checks that t has not ended.
func (t *turn) goesOn(what string) {
	t.s.Helper()
	t.s.pause()
	if t.ctx.Err() != nil {
		t.s.Errorf("%s has ended: %v", what, context.Cause(t.ctx))
	}
}
