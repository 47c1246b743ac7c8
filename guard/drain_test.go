package guard_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// TestDrain has one call that holds its lock, one in line, and one that comes later. The first makes a nested call.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newSpy(), newRegistry(t)
		inner, _ := guarded(t, l, settled, guard.In(reg), guard.Name("inner"), guard.Wait(time.Hour))
		var left context.Context // of a call that has ended
		settle, seen := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
			time.Sleep(time.Minute)
			left = context.WithoutCancel(ctx)
			return inner(ctx, Order{ID: "8"})
		}, guard.In(reg), guard.Wait(guard.Forever), guard.Busy(guard.RunUnlocked))
		errs := make(chan error, 2)
		for range 2 {
			go func() { _, err := settle(t.Context(), Order{ID: "7"}); errs <- err }()
			synctest.Wait()
		}
		type result struct {
			guard.DrainReport
			err error
		}
		drained := make(chan result)
		go func() {
			report, err := reg.Drain(t.Context())
			drained <- result{report, err}
		}()
		synctest.Wait()
		if err := <-errs; !errors.Is(err, guard.ErrDraining) || !errors.Is(err, guard.ErrOutage) {
			t.Errorf("who was in line = %v, want ErrDraining", err)
		}
		if _, err := settle(t.Context(), Order{ID: "9"}); !errors.Is(err, guard.ErrDraining) {
			t.Errorf("who comes later = %v, want ErrDraining", err)
		}
		got := <-drained
		if err := <-errs; err != nil {
			t.Errorf("who held the lock = %v", err)
		}
		if got.err != nil || got.Took != time.Minute || got.Ended != 2 || got.Refused != 2 || len(got.Running) != 0 {
			t.Errorf("Drain = %+v", got)
		}
		want := map[string]int64{"ok": 1, "draining": 2}
		if outcomes := infos(reg)["order.settle"].Outcomes; !maps.Equal(outcomes, want) || len(seen.outcomes()) != 3 {
			t.Errorf("outcomes %v, want %v", outcomes, want)
		}
		for _, ctx := range []context.Context{context.Background(), left} {
			if _, err := inner(ctx, Order{ID: "8"}); !errors.Is(err, guard.ErrDraining) {
				t.Errorf("afterwards = %v, want ErrDraining", err)
			}
		}
		l.check(t, "acquire order:7", "acquire order:7", "acquire order:8", "release order:8", "release order:7")
	})
}

func TestDrainReportsWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := newRegistry(t)
		settle, _ := guarded(t, newSpy(), func(context.Context, Order) (string, error) {
			time.Sleep(time.Hour)
			return "", nil
		}, guard.In(reg))
		done := make(chan error, 1)
		go func() { _, err := settle(t.Context(), Order{ID: "7"}); done <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		report, err := reg.Drain(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "order.settle (1)") ||
			!maps.Equal(report.Running, map[string]int{"order.settle": 1}) {
			t.Errorf("Drain = %+v, %v", report, err)
		}
		if report, err = reg.Drain(t.Context()); err != nil || report.Took != 59*time.Minute || report.Ended != 1 {
			t.Errorf("second Drain = %+v, %v", report, err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDrainLeavesWorkAlone holds that Drain ends the wait for a lock, and never the context of work.
func TestDrainLeavesWorkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := newRegistry(t)
		for _, opts := range [][]guard.Option{{}, {guard.When("req.Free")}} {
			work := func(ctx context.Context, _ Order) (string, error) {
				time.Sleep(time.Minute)
				return "", ctx.Err()
			}
			name := guard.Name([]string{"a", "b"}[len(opts)])
			settle, _ := guarded(t, newSpy(), work, append(opts, name, guard.In(reg), guard.Wait(time.Second))...)
			go func() {
				if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
					t.Errorf("settle = %v", err)
				}
			}()
		}
		synctest.Wait()
		if report, err := reg.Drain(t.Context()); err != nil || report.Ended != 2 {
			t.Errorf("Drain = %+v, %v", report, err)
		}
	})
}

// TestDrainBetweenLockAndWork begins to drain at the moment in which a locker without an ear for its context gives out the
// lock.
func TestDrainBetweenLockAndWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := newSpy(), newRegistry(t)
		drained := make(chan error, 1)
		l.after = func(lock.Request) {
			go func() { _, err := reg.Drain(t.Context()); drained <- err }()
			time.Sleep(time.Second)
		}
		settle, seen := guarded(t, l, func(context.Context, Order) (string, error) {
			t.Error("the work ran")
			return "", nil
		}, guard.In(reg), guard.Wait(time.Hour))
		if _, err := settle(t.Context(), Order{ID: "7"}); !errors.Is(err, guard.ErrDraining) {
			t.Errorf("settle = %v, want ErrDraining", err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if got := seen.only(t).Outcome; got != guard.OutcomeDraining {
			t.Errorf("outcome %q", got)
		}
		l.check(t, "acquire order:7", "release order:7")
	})
}

// TestDrainGetsAStackOutOfLine has a call that waits for its second lock, with and without the first one.
func TestDrainGetsAStackOutOfLine(t *testing.T) {
	for _, free := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l, reg := memlock.New(), newRegistry(t)
			if _, err := l.Acquire(t.Context(), lock.Request{Key: "second:7"}); err != nil {
				t.Fatal(err)
			}
			first := guard.Must(guard.New(l, guard.In(reg), guard.Name("first"), guard.Key("first:#{req.ID}"), guard.When("!req.Free")))
			second := guard.Must(guard.New(l, guard.In(reg), guard.Name("second"), guard.Key("second:#{req.ID}"), guard.Wait(time.Hour)))
			settle := guard.Must(guard.Func(guard.Must(guard.Stack(first, second)), settled))
			errs := make(chan error, 1)
			go func() { _, err := settle(t.Context(), Order{ID: "7", Free: free}); errs <- err }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			report, err := reg.Drain(ctx)
			if err != nil || report.Took != 0 || report.Refused != 1 || report.Ended != 0 {
				t.Errorf("Drain = %+v, %v", report, err)
			}
			if err := <-errs; !errors.Is(err, guard.ErrDraining) {
				t.Errorf("settle = %v, want ErrDraining", err)
			}
			if got := infos(reg)["first"].Outcomes; !maps.Equal(got, map[string]int64{"draining": 1}) {
				t.Errorf("outcomes of the first guard: %v", got)
			}
		})
	}
}

// TestDrainLetsAStackEnd holds that a Stack whose work runs is one call to a Drain, and goes on.
func TestDrainLetsAStackEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, reg := memlock.New(), newRegistry(t)
		first := guard.Must(guard.New(l, guard.In(reg), guard.Name("first"), guard.Key("first:#{req.ID}")))
		second := guard.Must(guard.New(l, guard.In(reg), guard.Name("second"), guard.Key("second:#{req.ID}"), guard.Wait(time.Second)))
		settle := guard.Must(guard.Func(guard.Must(guard.Stack(first, second)), aSecond))
		errs := make(chan error, 1)
		go func() { _, err := settle(t.Context(), Order{ID: "7"}); errs <- err }()
		synctest.Wait()
		report, err := reg.Drain(t.Context())
		if err != nil || report.Took != time.Second || report.Ended != 1 || report.Refused != 0 {
			t.Errorf("Drain = %+v, %v", report, err)
		}
		if err := <-errs; err != nil {
			t.Errorf("settle = %v", err)
		}
	})
}

// TestDrainKnowsShadowsByTheirCalls holds that a measurement is a part of its call, also where it outlasts that.
func TestDrainKnowsShadowsByTheirCalls(t *testing.T) {
	for _, tt := range []struct {
		name    string
		takes   time.Duration // the locker
		took    time.Duration // the Drain
		ended   int
		running map[string]int
	}{
		{"quick", 0, time.Second, 1, map[string]int{}},
		{"slow", time.Minute, 5 * time.Second, 0, map[string]int{"order.settle": 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, reg := newSpy(), newRegistry(t)
			l.after = func(lock.Request) { time.Sleep(tt.takes) }
			settle, _ := guarded(t, l, aSecond, guard.In(reg), guard.Switchable())
			if err := reg.Switch("order.settle", guard.Shadow); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = settle(t.Context(), Order{ID: "7"}) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			report, err := reg.Drain(ctx)
			if report.Took != tt.took || report.Ended != tt.ended || !maps.Equal(report.Running, tt.running) {
				t.Errorf("%s: Drain = %+v", tt.name, report)
			}
			if err != nil && !strings.Contains(err.Error(), "order.settle (1)") {
				t.Errorf("%s: Drain = %v", tt.name, err)
			}
			time.Sleep(tt.takes) // for the locker
		})
	}
}

// What a call left behind is no part of a running call to a Drain.
func TestDrainKnowsWhatACallLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, l := newRegistry(t), memlock.New()
		stranger, err := l.Acquire(t.Context(), lock.Request{Key: "inner:7"}) // as of another process
		if err != nil {
			t.Fatal(err)
		}
		inner := guard.Must(guard.Func(guard.Must(guard.New(l, guard.In(reg), guard.Name("inner"), guard.Key("inner:#{req.ID}"), guard.Wait(guard.Forever))), settled))
		var left context.Context
		outer := guard.Must(guard.Func(guard.Must(guard.New(l, guard.In(reg), guard.Name("outer"), guard.Key("outer:#{req.ID}"))),
			func(ctx context.Context, _ Order) (string, error) { left = context.WithoutCancel(ctx); return "", nil }))
		_, _ = outer(t.Context(), Order{ID: "7"})
		errs := make(chan error, 1)
		go func() { _, err := inner(left, Order{ID: "7"}); errs <- err }()
		synctest.Wait() // it is in line
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if report, err := reg.Drain(ctx); err != nil {
			t.Errorf("Drain = %+v, %v", report, err)
		}
		_ = stranger.Release(t.Context())
		if err := <-errs; !errors.Is(err, guard.ErrDraining) {
			t.Errorf("who was in line = %v, want ErrDraining", err)
		}
	})
}
