package guard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A job had nothing to do once. Ever since, it takes half a minute.
func TestRetryAfterOneShortHold(t *testing.T) {
	wrong := 0
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			l, takes := memlock.New(), time.Duration(0)
			g := guard.Must(guard.New(l, guard.Name("job"), guard.Key("job:#{req.ID}"), guard.TracerProvider(tracenoop.NewTracerProvider())))
			f := guard.Must(guard.Func(g, func(context.Context, Order) (string, error) { time.Sleep(takes); return "", nil }))
			_, _ = f(t.Context(), Order{ID: "7"})
			takes = 30 * time.Second
			for range 5 {
				_, _ = f(t.Context(), Order{ID: "7"})
			}
			hold, _ := l.Acquire(t.Context(), lock.Request{Key: "job:7"})
			_, err := f(t.Context(), Order{ID: "7"})
			if e, ok := errors.AsType[*guard.Error](err); !ok || e.RetryAfter < 24*time.Second {
				wrong++
			}
			_ = hold.Release(t.Context())
		})
	}
	if wrong > 0 {
		t.Errorf("after five holds of 30s, %d of 100 are told to come again after a millisecond", wrong)
	}
}

// The list that a KeysFunc returned is the request's own, and its work changes it.
func TestListOfKeysFuncIsTheRequestsOwn(t *testing.T) {
	keys := guard.KeysFunc(func(o Order) ([]string, error) { return o.Items, nil })
	changes := func(_ context.Context, o Order) (string, error) { o.Items[0] = "changed"; return "", nil }

	reg := newRegistry(t)
	shadowed := guard.Must(guard.Func(guard.Must(guard.New(memlock.New(), guard.Name("shadow"), guard.In(reg), guard.Switchable(), keys)), changes))
	if err := reg.Switch("shadow", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		_, _ = shadowed(t.Context(), Order{Items: []string{"a"}}) // a data race
	}

	var out bytes.Buffer
	l := newSpy()
	l.refuse = map[string]error{"secret": errors.New("no connection for secret")}
	logged := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("log"), keys, guard.Outage(guard.RunUnlocked),
		guard.Log(slog.New(slog.NewTextHandler(&out, nil))))), changes))
	_, _ = logged(t.Context(), Order{Items: []string{"secret"}})
	if strings.Contains(out.String(), "secret") {
		t.Errorf("the log has the key: %s", out.String())
	}
}

// Hooks, observers, fallbacks and work without the lock have the caller's context, which goes on, also in a Registry that takes its calls out of
// the line.
func TestContextOfHooksGoesOn(t *testing.T) {
	reg := newRegistry(t)
	for _, opts := range [][]guard.Option{
		{guard.Name("alone"), guard.Wait(time.Second)},
		{guard.Name("registered"), guard.In(reg)},
		{guard.Name("registered, with a wait"), guard.In(reg), guard.Wait(time.Second)},
	} {
		kept := make(map[string]context.Context)
		opts = append(opts, guard.Key("k:#{req.ID}"),
			guard.AfterRelease(func(ctx context.Context, _ guard.Event) { kept["AfterRelease"] = ctx }),
			guard.Observe(func(ctx context.Context, _ guard.Event) { kept["Observe"] = ctx }))
		f := guard.Must(guard.Func(guard.Must(guard.New(memlock.New(), opts...)), settled))
		if _, err := f(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		expectAlive(t, kept)
	}
	down := newSpy()
	down.refuse = map[string]error{"k:7": errors.New("no connection")}
	kept := make(map[string]context.Context)
	for how, opt := range map[string]guard.Option{
		"RunUnlocked": guard.Outage(guard.RunUnlocked),
		"Fallback":    guard.Fallback(func(ctx context.Context, _ Order, _ error) (string, error) { kept["Fallback"] = ctx; return "", nil }),
	} {
		g := guard.Must(guard.New(down, guard.Name(how), guard.In(reg), guard.Wait(time.Second), guard.Key("k:#{req.ID}"), opt))
		work := guard.Must(guard.Func(g, func(ctx context.Context, _ Order) (string, error) { kept[how] = ctx; return "", nil }))
		if _, err := work(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(kept) != 2 {
		t.Fatalf("kept %v", kept)
	}
	expectAlive(t, kept)
}

func expectAlive(t *testing.T, kept map[string]context.Context) {
	t.Helper()
	for what, ctx := range kept {
		if ctx.Err() != nil {
			t.Errorf("the context of %s: %v", what, context.Cause(ctx))
		}
	}
}

// blocking is a context that blocks who derives from it, once it is armed.
type blocking struct {
	context.Context
	armed        atomic.Bool
	inside, free chan struct{}
}

func (c *blocking) Done() <-chan struct{} {
	if c.armed.CompareAndSwap(true, false) {
		close(c.inside)
		<-c.free
	}
	return c.Context.Done()
}

// The context of work ends before its call returns ErrLost.
func TestLossEndsTheContextBeforeTheCallReturns(t *testing.T) {
	l := memlock.New()
	base, stop := context.WithCancel(t.Context())
	defer stop()
	parent := &blocking{Context: base, inside: make(chan struct{}), free: make(chan struct{})}
	defer close(parent.free)
	var work context.Context
	f := guard.Must(guard.Func(guard.Must(guard.New(l, guard.Name("g"), guard.Key("k:#{req.ID}"))), func(ctx context.Context, _ Order) (string, error) {
		work = ctx
		parent.armed.Store(true)
		go l.ForceUnlock("k:7")
		<-parent.inside // the loss is under way
		return "", nil
	}))
	if _, err := f(parent, Order{ID: "7"}); !errors.Is(err, guard.ErrLost) || work.Err() == nil {
		t.Errorf("the call returned %v, and the context of its work %v", err, work.Err())
	}
}

// exits is a locker that ends its goroutine at the second key.
type exits struct{ *memlock.Locker }

func (l exits) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	if r.Key == "latchkey-shadow:b" {
		runtime.Goexit()
	}
	return l.Locker.Acquire(ctx, r)
}

// What a shadow has taken when its locker ends the goroutine is given back.
func TestShadowOfALockerThatExits(t *testing.T) {
	reg, l := newRegistry(t), memlock.New()
	f := guard.Must(guard.Func(guard.Must(guard.New(exits{l}, guard.Name("g"), guard.Key("#{req.Items}"), guard.In(reg), guard.Switchable())), settled))
	if err := reg.Switch("g", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	if _, err := f(t.Context(), Order{Items: []string{"a", "b"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := reg.Drain(t.Context()); err != nil { // the measurement is a part of the call
		t.Fatal(err)
	}
	if err := l.Peek(t.Context(), lock.Request{Key: "latchkey-shadow:a"}); err != nil {
		t.Errorf("the key of the shadow stays held: %v", err)
	}
}
