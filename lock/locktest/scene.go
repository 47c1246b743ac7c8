package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// lease is short, because tests wait for its end, but nothing has to be done before.
const lease = 300 * time.Millisecond

// scene is where one promise is checked: a Locker and a key that nobody else uses.
type scene struct {
	*testing.T
	suite  *suite
	locker lock.Locker
	kind   lock.Kind
	key    string
}

// request completes r to a request for a lock of the given kind, on the scene's key unless r names another.
func (s *scene) request(kind lock.Kind, r lock.Request) lock.Request {
	if r.Key == "" {
		r.Key = s.key
	}
	r.Kind = kind
	if kind == lock.Permit && r.Limit == 0 {
		r.Limit = 1
	}
	return r
}

// own is a request for the scene's kind.
func (s *scene) own(r lock.Request) lock.Request { return s.request(s.kind, r) }

// rival is a request that an own one excludes, if it comes from a stranger.
func (s *scene) rival(r lock.Request) lock.Request {
	if s.kind == lock.Read {
		return s.request(lock.Write, r)
	}
	return s.own(r)
}

// attempt is an Acquire that goes on in a goroutine, so that a Locker that hangs fails its test and not the test run.
type attempt struct {
	s    *scene
	r    lock.Request
	done chan struct{} // closed once the rest is set
	hold lock.Hold
	err  error
}

func (s *scene) start(ctx context.Context, r lock.Request) *attempt {
	a := &attempt{s: s, r: r, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.hold, a.err = s.locker.Acquire(ctx, r)
	}()
	return a
}

// result waits for the answer, for as long as r may wait and then some.
func (a *attempt) result() (lock.Hold, error) {
	a.s.Helper()
	if !a.s.happens(a.done, max(0, a.r.Wait)) {
		a.s.Fatalf("Acquire of a %v lock with Wait %v does not return", a.r.Kind, a.r.Wait)
	}
	if (a.hold == nil) == (a.err == nil) {
		a.s.Fatalf("Acquire() = %v, %v, want a hold or an error", a.hold, a.err)
	}
	return a.hold, a.err
}

// held waits for the lock.
func (a *attempt) held() lock.Hold {
	a.s.Helper()
	h, err := a.result()
	if err != nil {
		a.s.Fatalf("Acquire() = %v, want a hold", err)
	}
	return h
}

// fails waits for an error that matches want.
func (a *attempt) fails(want error) {
	a.s.Helper()
	_, err := a.result()
	a.s.matches("Acquire()", err, want)
}

// busy waits for a refusal with details.
func (a *attempt) busy() *lock.BusyError {
	a.s.Helper()
	_, err := a.result()
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok {
		a.s.Fatalf("Acquire(%+v) = %v, want a BusyError", a.r, err)
	}
	return busy
}

// acquire takes the lock, which is free or about to be.
func (s *scene) acquire(ctx context.Context, r lock.Request) lock.Hold {
	s.Helper()
	return s.start(ctx, r).held()
}

// busy checks that an owner who comes with ctx is refused the lock at once.
func (s *scene) busy(ctx context.Context) {
	s.Helper()
	s.start(ctx, s.rival(lock.Request{})).fails(lock.ErrBusy)
}

// refused checks that r is refused beside the scene's kind, however long it would wait, and that the error names both
// kinds. Services that can't distinguish the kinds of a family name any of it.
func (s *scene) refused(ctx context.Context, r lock.Request) {
	s.Helper()
	a := s.start(ctx, r)
	a.r.Wait = 0 // the answer must come as soon as if it did not wait
	_, err := a.result()
	e, ok := errors.AsType[*lock.KindError](err)
	if !ok || !errors.Is(err, lock.ErrUnsupported) {
		s.Errorf("Acquire(%+v) = %v, want a KindError", r, err)
		return
	}
	if e.Wanted != r.Kind || e.Held.Family() != s.kind.Family() {
		s.Errorf("Acquire(%+v) = %+v, want held as %v and wanted as %v", r, *e, s.kind, r.Kind)
	}
}

// free releases holds and checks that the lock can be taken then. It may come free with some delay, as after the end of an Acquire in
// doubt.
func (s *scene) free(holds ...lock.Hold) {
	s.Helper()
	s.release(holds...)
	s.release(s.acquire(s.Context(), s.rival(lock.Request{Wait: s.suite.patience})))
}

func (s *scene) release(holds ...lock.Hold) {
	s.Helper()
	for _, h := range holds {
		s.releases(h, nil)
	}
}

// releases checks that releasing h gives an error that matches want.
func (s *scene) releases(h lock.Hold, want error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.suite.patience)
	defer cancel()
	s.matches("Release()", h.Release(ctx), want)
}

// matches checks what a call has returned. Nothing but nil matches nil.
func (s *scene) matches(call string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Errorf("%s = %v, want %v", call, err, want)
	}
}

// contextual is a hold, or a turn at one.
type contextual interface{ Context() context.Context }

// ends waits for the context of c to end and checks the cause.
func (s *scene) ends(c contextual, causes ...error) {
	s.Helper()
	if !s.happens(c.Context().Done(), 0) {
		s.Fatalf("the context does not end, want cause %v", causes)
	}
	for _, want := range causes {
		s.matches("the cause of the end", context.Cause(c.Context()), want)
	}
}

// notLost checks that the context of c did not end with a loss.
func (s *scene) notLost(c contextual) {
	s.Helper()
	if cause := context.Cause(c.Context()); errors.Is(cause, lock.ErrLost) {
		s.Errorf("the context ends with cause %v, and nothing was lost", cause)
	}
}

// alive checks that the context of c has not ended.
func (s *scene) alive(c contextual, what string) {
	s.Helper()
	if c.Context().Err() != nil {
		s.Errorf("%s has ended: %v", what, context.Cause(c.Context()))
	}
}

// together calls f in n goroutines at once and waits for all. An error of f fails the test.
func (s *scene) together(n int, f func(i int) error) {
	s.Helper()
	results := make(chan error, n)
	for i := range n {
		go func() { results <- f(i) }()
	}
	tooLate := time.After(2 * s.suite.patience) // each of them may be the last one in line
	for range n {
		select {
		case err := <-results:
			if err != nil {
				s.Error(err)
			}
		case <-tooLate:
			s.Fatal("somebody does not get the lock")
		}
	}
}

// visit takes the lock, calls f, and releases the lock.
func (s *scene) visit(ctx context.Context, r lock.Request, f func() error) error {
	h, err := s.locker.Acquire(ctx, r)
	if err != nil {
		return err
	}
	return errors.Join(f(), h.Release(s.Context()))
}

// happens reports whether c is closed after d, or not much later.
func (s *scene) happens(c <-chan struct{}, d time.Duration) bool {
	select {
	case <-c:
		return true
	case <-time.After(d + s.suite.patience):
		return false
	}
}

// inLine starts an attempt that waits for as long as it has to, and pauses.
func (s *scene) inLine(ctx context.Context, r lock.Request) *attempt {
	r.Wait = -1
	a := s.start(ctx, r)
	s.pause()
	return a
}

// pause gives an attempt the time to get in line. Nothing shows that it has, but a good Locker passes in either case.
func (s *scene) pause() { <-time.After(50 * time.Millisecond) }
