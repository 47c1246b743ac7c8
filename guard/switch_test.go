package guard_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// mute is a locker without more methods than it must have.
type mute struct{ l lock.Locker }

func (p *mute) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	return p.l.Acquire(ctx, r)
}

// bare is a locker whose holds have no more methods than they must have.
func bare(l lock.Locker) lock.Locker {
	return lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		h, err := l.Acquire(ctx, r)
		if err != nil {
			return nil, err
		}
		return struct{ lock.Hold }{h}, nil
	})
}

func TestSwitchOff(t *testing.T) {
	l, reg := newSpy(), newRegistry(t)
	settle, seen := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
		if guard.Held(ctx, "") {
			return "", errors.New("held")
		}
		return "", nil
	}, guard.In(reg), guard.Switchable())
	if err := reg.Switch("order.settle", guard.Off); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"7", ""} { // without a key, too
		if _, err := settle(t.Context(), Order{ID: id}); err != nil {
			t.Errorf("switched off: %v", err)
		}
	}
	if err := reg.Switch("order.settle", guard.On); err != nil {
		t.Fatal(err)
	}
	if _, err := settle(t.Context(), Order{ID: "7"}); err == nil {
		t.Error("switched on again, the guard did not hold its lock")
	}
	l.check(t, "acquire order:7", "release order:7")
	if got, want := infos(reg)["order.settle"].Outcomes, map[string]int64{"off": 2, "error": 1}; !maps.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if got := seen.outcomes(); len(got) != 3 || got[0] != guard.OutcomeOff {
		t.Errorf("events %q", got)
	}
}

func TestSwitchMistakes(t *testing.T) {
	reg := newRegistry(t)
	guarded(t, newSpy(), settled, guard.In(reg))
	for _, tt := range []struct {
		name string
		mode guard.Mode
		want string
	}{
		{"order.settle", guard.Off, "does not say switchable"},
		{"order.setle", guard.Off, "did you mean order.settle?"},
		{"order.settle", 7, "unknown mode 7"},
	} {
		if err := reg.Switch(tt.name, tt.mode); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Switch(%q, %v) = %v, want %q in it", tt.name, tt.mode, err, tt.want)
		}
	}
	for mode, text := range map[guard.Mode]string{guard.On: "on", guard.Off: "off", guard.Shadow: "shadow"} {
		var m guard.Mode
		if err := m.UnmarshalText([]byte(text)); err != nil || m != mode || mode.String() != text {
			t.Errorf("mode %q: %v, %v", text, m, err)
		}
	}
}

// shadowed returns a guarded function in shadow mode whose work takes a second.
func shadowed(t *testing.T, l lock.Locker, fn work, opts ...guard.Option) (work, *events) {
	t.Helper()
	reg := newRegistry(t)
	settle, seen := guarded(t, l, fn, append(opts, guard.In(reg), guard.Switchable(), guard.Wait(time.Hour))...)
	if err := reg.Switch("order.settle", guard.Shadow); err != nil {
		t.Fatal(err)
	}
	return settle, seen
}

func aSecond(context.Context, Order) (string, error) {
	time.Sleep(time.Second)
	return "settled", nil
}

// TestShadowMeasuresAndNeverWaits runs two calls for one key at once, and beside a real holder of it.
func TestShadowMeasuresAndNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		if _, err := l.Locker.Acquire(t.Context(), lock.Request{Key: "order:7"}); err != nil {
			t.Fatal(err)
		}
		settle, seen := shadowed(t, l, aSecond)
		start := time.Now()
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				if res, err := settle(t.Context(), Order{ID: "7"}); err != nil || res != "settled" {
					t.Errorf("settle = %q, %v", res, err)
				}
			})
			synctest.Wait()
		}
		callers.Wait()
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
		if err := settleAgain(t, settle); err != nil {
			t.Error(err)
		}
		free, busy := 0, 0
		for _, e := range seen.all {
			switch {
			case e.Outcome != guard.OutcomeShadow:
				t.Errorf("outcome %q", e.Outcome)
			case e.Refused == nil:
				free++
			case errors.Is(e.Refused, guard.ErrBusy):
				busy++
			}
		}
		if free != 2 || busy != 1 {
			t.Errorf("%d were free and %d busy, want 2 and 1", free, busy)
		}
		synctest.Wait()
		for _, r := range l.requests {
			if r.Key != "latchkey-shadow:order:7" || r.Wait != 0 {
				t.Errorf("asked for %+v", r)
			}
			if h, err := l.Locker.Acquire(t.Context(), lock.Request{Key: r.Key}); err != nil {
				t.Errorf("afterwards: %v", err)
			} else {
				_ = h.Release(t.Context())
			}
		}
	})
}

func settleAgain(t *testing.T, settle work) error {
	synctest.Wait() // the shadows of earlier calls are given back
	_, err := settle(t.Context(), Order{ID: "7"})
	return err
}

// TestShadowHurtsNobody holds that no fault of a locker or a request reaches the caller, nor makes it wait.
func TestShadowHurtsNobody(t *testing.T) {
	down := errors.New("down")
	for _, tt := range []struct {
		name    string
		locker  func(context.Context, lock.Request) (lock.Hold, error)
		id      string
		refused error
	}{
		{"outage", func(context.Context, lock.Request) (lock.Hold, error) { return nil, down }, "7", guard.ErrOutage},
		{"unsupported", func(context.Context, lock.Request) (lock.Hold, error) { return nil, lock.ErrUnsupported }, "7", guard.ErrUnsupported},
		{"refused", func(context.Context, lock.Request) (lock.Hold, error) { return nil, lock.ErrRefused }, "7", guard.ErrFault},
		{"panic", func(context.Context, lock.Request) (lock.Hold, error) { panic("bug") }, "7", guard.ErrOutage},
		{"no key", memlock.New().Acquire, "", guard.ErrKey},
		{"deaf", func(ctx context.Context, r lock.Request) (lock.Hold, error) {
			time.Sleep(time.Hour)
			return nil, down
		}, "7", nil}, // too late to say
		{"slow", func(ctx context.Context, r lock.Request) (lock.Hold, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, "7", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			defer time.Sleep(2 * time.Hour) // the deaf locker's goroutine ends
			settle, seen := shadowed(t, lockerFunc(tt.locker), aSecond)
			start := time.Now()
			if res, err := settle(t.Context(), Order{ID: tt.id}); err != nil || res != "settled" || time.Since(start) != time.Second {
				t.Errorf("%s: settle = %q, %v after %v", tt.name, res, err, time.Since(start))
			}
			e := seen.only(t)
			if e.Outcome != guard.OutcomeShadow || e.Err != nil || !errors.Is(e.Refused, tt.refused) || (e.Refused == nil) != (tt.refused == nil) {
				t.Errorf("%s: event %+v, want %v", tt.name, e, tt.refused)
			}
		})
	}
}

type lockerFunc func(context.Context, lock.Request) (lock.Hold, error)

func (f lockerFunc) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) { return f(ctx, r) }

func TestShadowReenters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var settle work
		settle, seen := shadowed(t, newSpy(), func(ctx context.Context, o Order) (string, error) {
			synctest.Wait() // the shadow has its lock
			if o.Free {
				return "", nil
			}
			o.Free = true
			return settle(ctx, o)
		})
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.all {
			if e.Refused != nil {
				t.Errorf("a nested call was told %v", e.Refused)
			}
		}
	})
}

// TestShadowOfAPanic holds that a panic goes on, and leaves no shadow behind.
func TestShadowOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		settle, seen := shadowed(t, l, func(context.Context, Order) (string, error) {
			synctest.Wait()
			panic("bug")
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic ended")
				}
			}()
			_, _ = settle(t.Context(), Order{ID: "7"})
		}()
		synctest.Wait()
		l.check(t, "acquire latchkey-shadow:order:7", "release latchkey-shadow:order:7")
		if got := seen.outcomes(); len(got) != 1 || got[0] != guard.OutcomePanic {
			t.Errorf("outcomes %q", got)
		}
	})
}

// TestShadowAnsweredTooLate holds that a shadow which gets its lock only after the work gives it back.
func TestShadowAnsweredTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		l.after = func(lock.Request) { time.Sleep(time.Minute) }
		settle, seen := shadowed(t, l, aSecond)
		start := time.Now()
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil || time.Since(start) != time.Second {
			t.Errorf("settle = %v after %v", err, time.Since(start))
		}
		if e := seen.only(t); e.Refused != nil {
			t.Errorf("event %+v", e)
		}
		time.Sleep(time.Hour)
		l.check(t, "acquire latchkey-shadow:order:7", "release latchkey-shadow:order:7")
	})
}

// TestShadowKeepsAsDeclared has a second call within the time that hold would keep it out, and one after a failure.
func TestShadowKeepsAsDeclared(t *testing.T) {
	for _, tt := range []struct {
		name    string
		locker  lock.Locker
		fails   bool
		refused []error
	}{
		{"success", memlock.New(), false, []error{nil, guard.ErrBusy}},
		{"failure", memlock.New(), true, []error{nil, nil}},
		{"can't be kept", bare(memlock.New()), false, []error{guard.ErrUnsupported, guard.ErrUnsupported}},
	} {
		synctest.Test(t, func(t *testing.T) {
			reg := newRegistry(t)
			settle, seen := guarded(t, tt.locker, func(context.Context, Order) (string, error) {
				time.Sleep(time.Second)
				if tt.fails {
					return "", errOwn
				}
				return "", nil
			}, guard.In(reg), guard.Switchable(), guard.HoldAtLeast(time.Minute))
			if err := reg.Switch("order.settle", guard.Shadow); err != nil {
				t.Fatal(err)
			}
			for range tt.refused {
				_, _ = settle(t.Context(), Order{ID: "7"})
				synctest.Wait()
			}
			for i, e := range seen.all {
				if !errors.Is(e.Refused, tt.refused[i]) || (e.Refused == nil) != (tt.refused[i] == nil) {
					t.Errorf("%s: call %d was told %v, want %v", tt.name, i, e.Refused, tt.refused[i])
				}
			}
			time.Sleep(time.Minute)
			if _, _ = settle(t.Context(), Order{ID: "7"}); tt.refused[0] == nil && seen.all[len(tt.refused)].Refused != nil {
				t.Errorf("%s: after a minute: %v", tt.name, seen.all[len(tt.refused)].Refused)
			}
			synctest.Wait()
		})
	}
}

// TestShadowGivesBackAllOfItsLocks has a locker that panics when the first of several is given back.
func TestShadowGivesBackAllOfItsLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		var once sync.Once
		l.release = func(context.Context) { once.Do(func() { panic("bug") }) }
		reg := newRegistry(t)
		settle, _ := guarded(t, l, aSecond, guard.In(reg), guard.Switchable(), guard.Key("#{req.Items}"))
		if err := reg.Switch("order.settle", guard.Shadow); err != nil {
			t.Fatal(err)
		}
		if _, err := settle(t.Context(), Order{Items: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.check(t, "acquire latchkey-shadow:a", "acquire latchkey-shadow:b", "release latchkey-shadow:a", "release latchkey-shadow:b")
	})
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
