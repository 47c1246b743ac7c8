package guard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A job runs once per interval, whoever starts it how often; if it fails, the next one may try at once.
func TestHoldAtLeast(t *testing.T) {
	own := errors.New("own")
	tests := []struct {
		name string
		job  func() error
		free time.Duration // from the start of the job on
	}{
		{"done", func() error { return nil }, 30 * time.Second},
		{"done after a while", func() error { time.Sleep(10 * time.Second); return nil }, 30 * time.Second},
		{"done after more than the interval", func() error { time.Sleep(40 * time.Second); return nil }, 40 * time.Second},
		{"failed", func() error { time.Sleep(10 * time.Second); return own }, 10 * time.Second},
		{"panicked", func() error { time.Sleep(10 * time.Second); panic("boom") }, 10 * time.Second},
	}
	for _, tt := range tests {
		for _, keys := range [][]string{{"a"}, {"a", "b"}} {
			synctest.Test(t, func(t *testing.T) {
				l := memlock.New()
				run, _ := guarded(t, l, func(context.Context, Order) (string, error) { return "", tt.job() },
					guard.Key("#{req.Items}"), guard.HoldAtLeast(30*time.Second))
				start := time.Now()
				func() {
					defer func() { _ = recover() }()
					_, _ = run(t.Context(), Order{Items: keys})
				}()
				for _, key := range keys {
					hold, err := l.Acquire(t.Context(), lock.Request{Key: key, Wait: -1})
					if err != nil {
						t.Fatal(err)
					}
					if got := time.Since(start); got != tt.free {
						t.Errorf("%s, %v: %s is free after %v, want %v", tt.name, keys, key, got, tt.free)
					}
					_ = hold.Release(t.Context())
				}
			})
		}
	}
}

// What is declared and can't be had is refused before the work runs.
func TestHoldAtLeastNeedsKeep(t *testing.T) {
	l := newSpy() // whose holds have no Keep
	run, seen := guarded(t, l, func(context.Context, Order) (string, error) {
		t.Error("ran")
		return "", nil
	}, guard.HoldAtLeast(time.Second))
	if _, err := run(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrUnsupported) {
		t.Errorf("run: %v, want ErrUnsupported", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeUnsupported || e.Held != 0 {
		t.Errorf("event %+v", e)
	}
	l.check(t, "acquire order:7", "release order:7")
}

// Two wait, and the others are told at once that it is no use.
func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settle, seen := guarded(t, memlock.New(), func(context.Context, Order) (string, error) {
			time.Sleep(time.Minute)
			return "settled", nil
		}, guard.Wait(guard.Forever), guard.Waiters(2))
		start := time.Now()
		var calls sync.WaitGroup
		for range 6 {
			calls.Go(func() {
				_, err := settle(t.Context(), Order{ID: "7"})
				if err != nil && (!errors.Is(err, guard.ErrBusy) || time.Since(start) != 0) {
					t.Errorf("settle: %v after %v, want busy at once", err, time.Since(start))
				}
			})
		}
		calls.Go(func() {
			if _, err := settle(t.Context(), Order{ID: "another"}); err != nil {
				t.Errorf("another key: %v", err)
			}
		})
		calls.Wait()
		got := seen.outcomes()
		slices.Sort(got)
		if want := []string{"busy", "busy", "busy", "ok", "ok", "ok", "ok"}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
		if got := time.Since(start); got != 3*time.Minute {
			t.Errorf("all done after %v, want 3m", got)
		}
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// The wait is as long as declared, although it begins with a try.
func TestWaitersWaitAsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "order:7"})
		if err != nil {
			t.Fatal(err)
		}
		settle, _ := guarded(t, l, settled, guard.Wait(time.Second), guard.Waiters(1))
		start := time.Now()
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrBusy) || time.Since(start) != time.Second {
			t.Errorf("settle: %v after %v, want busy after 1s", err, time.Since(start))
		}
		_ = hold.Release(t.Context())
		l.check(t, "acquire order:7", "acquire order:7")
	})
}

// The newest call wins: the one that runs is told to end, those that wait give up, and nobody runs beside another.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0
		settle, seen := guarded(t, memlock.New(), func(ctx context.Context, o Order) (string, error) {
			if running++; running != 1 {
				t.Errorf("%d at once", running)
			}
			defer func() { running-- }()
			select {
			case <-ctx.Done():
				if cause := context.Cause(ctx); !errors.Is(cause, guard.ErrReplaced) || errors.Is(cause, guard.ErrLost) {
					t.Errorf("ended for %v, want ErrReplaced", cause)
				}
				time.Sleep(time.Second) // to tidy up, still under the lock
				return "", ctx.Err()
			case <-time.After(time.Minute):
				return "settled", nil
			}
		}, guard.Busy(guard.Replace))
		start := time.Now()
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				got, err := settle(t.Context(), Order{ID: "7"})
				switch {
				case i == 3 && (got != "settled" || err != nil):
					t.Errorf("the newest call = %q, %v", got, err)
				case i < 3 && (!errors.Is(err, guard.ErrReplaced) || errors.Is(err, guard.ErrLost)):
					t.Errorf("call %d: %v, want ErrReplaced", i, err)
				}
			})
		}
		calls.Wait()
		// The first is told after 0.1s and ends after 1.1s; only then the newest runs.
		if got := time.Since(start); got != 61100*time.Millisecond {
			t.Errorf("all done after %v, want 61.1s", got)
		}
		got := seen.outcomes()
		slices.Sort(got)
		if want := []string{"ok", "replaced", "replaced", "replaced"}; !slices.Equal(got, want) {
			t.Errorf("outcomes %v, want %v", got, want)
		}
	})
}

func TestReplaceLeavesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := errors.New("own")
		var settle work
		settle, seen := guarded(t, memlock.New(), func(ctx context.Context, o Order) (string, error) {
			if o.Free { // the same call comes again
				return settle(ctx, Order{ID: o.ID})
			}
			time.Sleep(time.Minute)
			switch {
			case o.Items == nil && ctx.Err() != nil:
				t.Errorf("%s: ended for %v", o.ID, context.Cause(ctx))
			case o.Items != nil && ctx.Err() == nil:
				t.Errorf("%s: was not told", o.ID)
			}
			switch o.ID {
			case "done":
				return "settled", nil
			case "fails":
				return "", own
			}
			return "", ctx.Err()
		}, guard.Busy(guard.Replace))
		call := func(o Order, want error) func() {
			return func() {
				if _, err := settle(t.Context(), o); err != want {
					t.Errorf("%+v: %v, want %v", o, err, want)
				}
			}
		}
		var calls sync.WaitGroup
		calls.Go(call(Order{ID: "a", Free: true}, nil))
		calls.Go(call(Order{ID: "b"}, nil))
		// Work that is told to end, and comes to its own end, keeps its result.
		calls.Go(call(Order{ID: "done", Items: []string{"told"}}, nil))
		calls.Go(call(Order{ID: "fails", Items: []string{"told"}}, own))
		time.Sleep(time.Second)
		calls.Go(call(Order{ID: "done"}, nil))
		calls.Go(call(Order{ID: "fails"}, own))
		calls.Wait()
		for _, outcome := range seen.outcomes() {
			if outcome == guard.OutcomeReplaced {
				t.Errorf("outcomes %v", seen.outcomes())
			}
		}
	})
}

// A holder that was not announced can't be told: it is waited for as declared, and without a Wait as long as the caller.
func TestReplaceOfAStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		at := func(wait time.Duration, want error, after time.Duration) {
			t.Helper()
			settle, _ := guarded(t, l, settled, guard.Busy(guard.Replace), guard.Wait(wait))
			hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:7", Lease: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = hold.Release(t.Context()) }()
			start := time.Now()
			if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, want) || time.Since(start) != after {
				t.Errorf("wait %v: %v after %v, want %v after %v", wait, err, time.Since(start), want, after)
			}
		}
		at(time.Second, guard.ErrBusy, time.Second)
		at(0, nil, 3*time.Second) // its lease
		at(time.Minute, nil, 3*time.Second)
	})
}

// Calls of all guards at one locker are replaced, not only those of the same guard.
func TestReplaceAcrossGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		patient := func(ctx context.Context, _ Order) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		older, _ := guarded(t, l, patient, guard.Busy(guard.Replace), guard.Name("older"))
		newer, _ := guarded(t, l, settled, guard.Busy(guard.Replace), guard.Name("newer"))
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := older(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrReplaced) {
				t.Errorf("the older call: %v, want ErrReplaced", err)
			}
		})
		synctest.Wait()
		if got, err := newer(t.Context(), Order{ID: "7"}); got != "settled" || err != nil {
			t.Errorf("the newer call = %q, %v", got, err)
		}
		calls.Wait()
	})
}

// deaf is a locker whose announcements take a second, and fail for some keys.
type deaf struct {
	*memlock.Locker
	answer map[string]error
}

func (d deaf) Replace(ctx context.Context, r lock.Request) (context.Context, func(), error) {
	time.Sleep(time.Second)
	if err := d.answer[r.Key]; err != nil {
		return nil, nil, err
	}
	return d.Locker.Replace(ctx, r)
}

// The policy for an outage is that of an announcement, too. Those that were announced before it failed are not anymore.
func TestReplaceWithoutAnAnswer(t *testing.T) {
	for _, tt := range []struct {
		answer error
		opt    guard.Option
		ran    bool
		want   error
	}{
		{errors.New("connection reset"), guard.Outage(guard.Fail), false, guard.ErrOutage},
		{errors.New("connection reset"), guard.Outage(guard.RunUnlocked), true, nil},
		{lock.ErrRefused, guard.Outage(guard.RunUnlocked), false, guard.ErrFault},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, ran := deaf{memlock.New(), map[string]error{"b": tt.answer}}, false
			settle, _ := guarded(t, l, func(context.Context, Order) (string, error) {
				ran = true
				return "", nil
			}, guard.Busy(guard.Replace), guard.Key("#{req.Items}"), tt.opt)
			if _, err := settle(t.Context(), Order{Items: []string{"a", "b"}}); ran != tt.ran || !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%v: ran = %v, %v, want %v, %v", tt.answer, ran, err, tt.ran, tt.want)
			}
			turn, leave, err := l.Locker.Replace(t.Context(), lock.Request{Key: "a"})
			if err != nil || turn.Err() != nil {
				t.Errorf("afterwards: %v, %v", turn, err)
			}
			leave()
		})
	}
}

// An announcement is a part of the wait.
func TestReplaceWaitsAsDeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := deaf{Locker: memlock.New()}
		hold, err := l.Acquire(t.Context(), lock.Request{Key: "order:7"})
		if err != nil {
			t.Fatal(err)
		}
		settle, _ := guarded(t, l, settled, guard.Busy(guard.Replace), guard.Wait(3*time.Second))
		start := time.Now()
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrBusy) || time.Since(start) != 3*time.Second {
			t.Errorf("settle: %v after %v, want busy after 3s", err, time.Since(start))
		}
		_ = hold.Release(t.Context())
	})
}

// A locker that can't tell a call of a newer one is refused at the start, wherever the policy is declared.
func TestReplaceNeedsALocker(t *testing.T) {
	bare := struct{ lock.Locker }{memlock.New()}
	_, fault := guard.New(bare, guard.Name("g"), guard.Busy(guard.Replace))
	var api struct {
		Pay func(context.Context, Order) (string, error) `guard:"order:#{req.ID}; busy=replace"`
	}
	api.Pay = settled
	for what, err := range map[string]error{"New": fault, "Bind": guard.Bind(guard.Must(guard.New(bare)), &api)} {
		if err == nil || !strings.Contains(err.Error(), "has no method Replace") {
			t.Errorf("%s: %v, want that the locker has no method Replace", what, err)
		}
	}
}

// Where several hold at once, a newer call has no reason to end an older one.
func TestReplaceNeedsOneHolder(t *testing.T) {
	for _, opt := range []guard.Option{guard.Read(), guard.Limit(3)} {
		if _, err := guard.New(memlock.New(), guard.Name("g"), guard.Busy(guard.Replace), opt); err == nil {
			t.Error("busy=replace of a shared lock is no error")
		}
	}
}

// Observers, fallbacks and work without the lock have the caller's context, which goes on, also in a Registry that takes its calls out of
// the line.
func TestContextOfObserversGoesOn(t *testing.T) {
	reg := newRegistry(t)
	for _, opts := range [][]guard.Option{
		{guard.Name("alone"), guard.Wait(time.Second)},
		{guard.Name("registered"), guard.In(reg)},
		{guard.Name("registered, with a wait"), guard.In(reg), guard.Wait(time.Second)},
	} {
		kept := make(map[string]context.Context)
		opts = append(opts, guard.Key("k:#{req.ID}"),
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
