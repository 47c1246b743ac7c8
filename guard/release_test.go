package guard_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

type contextKey struct{}

// TestReleaseIsDetached holds that locks are given back for callers who are gone, but not with all the time of the world.
func TestReleaseIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		l.release = func(ctx context.Context) {
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != 5*time.Second {
				t.Errorf("deadline in %v, %v, want 5s", time.Until(end), ok)
			}
			if ctx.Err() != nil || ctx.Value(contextKey{}) != "value" {
				t.Errorf("released with %v, %v", ctx, ctx.Err())
			}
			<-ctx.Done() // a service that does not answer
		}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "value"))
		settle, seen := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			cancel()
			<-ctx.Done()
			return "settled", nil
		})
		start := time.Now()
		if got, err := settle(ctx, Order{ID: "7"}); got != "settled" || err != nil {
			t.Errorf("settle = %q, %v", got, err)
		}
		if got := time.Since(start); got != 5*time.Second {
			t.Errorf("release took %v, want 5s", got)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeOK || e.Held != 5*time.Second {
			t.Errorf("event %+v", e)
		}
		l.check(t, "acquire order:7", "release order:7")
	})
}

// TestContextOfReleaseEnds holds that who keeps the context of a release, used or not, keeps nothing alive.
func TestContextOfReleaseEnds(t *testing.T) {
	for name, use := range map[string]func(context.Context){
		"not used": func(context.Context) {}, "asked": func(ctx context.Context) { _ = ctx.Err() }, "waited for": func(ctx context.Context) { _ = ctx.Done() },
	} {
		l := newSpy()
		var kept []context.Context
		l.release = func(ctx context.Context) {
			kept = append(kept, ctx)
			use(ctx)
		}
		settle, _ := guarded(t, l, settled)
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		if len(kept) != 1 || kept[0].Err() != context.Canceled {
			t.Errorf("%s: afterwards %v, want one that is canceled", name, kept)
		}
	}
}

// TestReleaseThatOnlyAsks holds that the time of a release counts from when its locker first asks whether it is over, and nothing else.
func TestReleaseThatOnlyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		l.release = func(ctx context.Context) {
			start := time.Now()
			for ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			if took := time.Since(start); took != 5*time.Second || ctx.Err() != context.DeadlineExceeded {
				t.Errorf("over after %v with %v, want 5s", took, ctx.Err())
			}
			<-ctx.Done()
		}
		settle, _ := guarded(t, l, settled)
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Error(err)
		}
	})
}

func explode(context.Context, Order) (string, error) { panic("boom") }

// TestPanic holds that a panic goes on as it was, with its own stack, and leaves nothing locked.
func TestPanic(t *testing.T) {
	l := newSpy()
	opts := append(record().options, guard.Key("#{req.Items}")) // the SDK's spans would like to recover it
	settle, seen := guarded(t, l, explode, opts...)
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v, want boom", got)
			}
			if stack := string(debug.Stack()); !strings.Contains(stack, "guard_test.explode") {
				t.Errorf("the stack does not show where it began:\n%s", stack)
			}
		}()
		_, _ = settle(t.Context(), Order{Items: []string{"a", "b"}})
	}()
	if e := seen.only(t); e.Outcome != guard.OutcomePanic || e.Err != nil || e.Keys != 2 {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire a", "acquire b", "release b", "release a")
}

// TestPanicInside recovers within the work: the guard sees a function that returns.
func TestPanicInside(t *testing.T) {
	l := newSpy()
	settle, seen := guarded(t, l, func(ctx context.Context, o Order) (got string, err error) {
		defer func() { got = recover().(string) }()
		return explode(ctx, o)
	})
	if got, err := settle(t.Context(), Order{ID: "7"}); got != "boom" || err != nil {
		t.Errorf("settle = %q, %v", got, err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeOK {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire order:7", "release order:7")
}

func TestGoexit(t *testing.T) {
	l := newSpy()
	settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
		runtime.Goexit()
		return "", nil
	})
	var gone sync.WaitGroup
	gone.Go(func() {
		_, _ = settle(t.Context(), Order{ID: "7"})
		t.Error("came back")
	})
	gone.Wait()
	if e := seen.only(t); e.Outcome != guard.OutcomePanic {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire order:7", "release order:7")
}

// TestPanicOfLocker holds that what was locked is given back, though a locker panics on the way in or out.
func TestPanicOfLocker(t *testing.T) {
	panicOnce := func(l *spy) {
		var once atomic.Bool
		l.release = func(context.Context) {
			if once.CompareAndSwap(false, true) {
				panic("release")
			}
		}
	}
	all := []string{"acquire a", "acquire b", "acquire c", "release c", "release b", "release a"}
	tests := []struct {
		name string
		work work
		set  func(*spy)
		want []string
	}{
		{"acquire", settled, func(l *spy) {
			l.after = func(r lock.Request) {
				if r.Key == "b" {
					_ = l.ForceUnlock("b") // the hold that nobody gets to see
					panic("acquire")
				}
			}
		}, []string{"acquire a", "acquire b", "release a"}},
		{"release", settled, panicOnce, all},
		{"release", explode, panicOnce, all},
	}
	for _, tt := range tests {
		l := newSpy()
		tt.set(l)
		settle, seen := guarded(t, l, tt.work, guard.Key("#{req.Items}"))
		func() {
			defer func() {
				if got := recover(); got != tt.name {
					t.Errorf("%s: recovered %v", tt.name, got)
				}
			}()
			_, _ = settle(t.Context(), Order{Items: []string{"a", "b", "c"}})
		}()
		if e := seen.only(t); e.Outcome != guard.OutcomePanic {
			t.Errorf("%s: event %+v", tt.name, e)
		}
		l.check(t, tt.want...)
	}
}

func TestPanicOfObserver(t *testing.T) {
	l := newSpy()
	settle, seen := guarded(t, l, settled, guard.Observe(func(context.Context, guard.Event) { panic("observer") }))
	func() {
		defer func() {
			if got := recover(); got != "observer" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = settle(t.Context(), Order{ID: "7"})
	}()
	if e := seen.only(t); e.Outcome != guard.OutcomeOK {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire order:7", "release order:7")
}

func TestCanceledWhileWaiting(t *testing.T) {
	own := errors.New("client hung up")
	tests := []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want []error
	}{
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		}, []error{context.DeadlineExceeded}},
		{"canceled", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, []error{context.Canceled}},
		{"canceled with a cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Second, func() { cancel(own) })
			return ctx, func() { cancel(nil) }
		}, []error{context.Canceled, own}},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			l := newSpy()
			hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "order:7"})
			if err != nil {
				t.Fatal(err)
			}
			settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
				t.Errorf("%s: ran for a caller who has gone", tt.name)
				return "", nil
			}, guard.Wait(time.Minute), guard.Busy(guard.RunUnlocked), guard.Outage(guard.RunUnlocked))
			ctx, cancel := tt.end(t.Context())
			defer cancel()
			start := time.Now()
			_, err = settle(ctx, Order{ID: "7"})
			if got := time.Since(start); got != time.Second {
				t.Errorf("%s: waited %v, want 1s", tt.name, got)
			}
			for _, want := range tt.want {
				if !errors.Is(err, want) {
					t.Errorf("%s: settle: %v, want %v", tt.name, err, want)
				}
			}
			if _, ok := errors.AsType[*guard.Error](err); ok || !strings.Contains(err.Error(), `guard "order.settle"`) {
				t.Errorf("%s: settle: %#v, want no *Error, but the guard's name", tt.name, err)
			}
			if e := seen.only(t); e.Outcome != guard.OutcomeCanceled || e.Err != err || e.Wait != time.Second {
				t.Errorf("%s: event %+v", tt.name, e)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Error(err)
			}
			l.check(t, "acquire order:7") // and nobody is left in the queue
		})
	}
}

// TestCanceledWhenGranted is a caller who goes in the moment in which the lock comes.
func TestCanceledWhenGranted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := newSpy()
	l.after = func(lock.Request) { cancel() }
	settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
		t.Error("ran for a caller who has gone")
		return "", nil
	})
	if _, err := settle(ctx, Order{ID: "7"}); !errors.Is(err, context.Canceled) {
		t.Errorf("settle: %v, want canceled", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeCanceled || e.Held != 0 {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire order:7", "release order:7")
}
