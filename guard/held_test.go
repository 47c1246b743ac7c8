package guard_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestHoldFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			h, ok := guard.HoldFrom(ctx)
			if !ok || h.Name() != "order.settle" || h.Token() == 0 || h.Remaining() != 3*time.Second {
				t.Errorf("HoldFrom = %q, %v, %v, %v", h.Name(), h.Token(), h.Remaining(), ok)
			}
			if err := h.Check(ctx); err != nil {
				t.Errorf("Check: %v", err)
			}
			time.Sleep(2 * time.Second)
			if err := h.Extend(ctx, 5*time.Second); err != nil || h.Remaining() != 5*time.Second {
				t.Errorf("Extend: %v, %v left", err, h.Remaining())
			}
			if err := h.Extend(ctx, 0); !errors.Is(err, guard.ErrFault) {
				t.Errorf("Extend for nothing: %v, want ErrFault", err)
			}
			time.Sleep(4 * time.Second)
			return "settled", h.Check(ctx)
		}, guard.Fenced(), guard.Lease(3*time.Second))
		if got, err := settle(t.Context(), Order{ID: "7"}); got != "settled" || err != nil {
			t.Errorf("settle = %q, %v", got, err)
		}
	})
}

// Check and RequireHeld tell a loss before anything is committed.
func TestCheckTellsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			h, _ := guard.HoldFrom(ctx)
			l.ForceUnlock("b")
			for name, err := range map[string]error{
				"Check": h.Check(ctx), "Check of another's context": h.Check(t.Context()), "Extend": h.Extend(ctx, time.Second),
				"RequireHeld": guard.RequireHeld(ctx, "order.settle"), "any": guard.RequireHeld(ctx, ""),
			} {
				e, ok := errors.AsType[*guard.Error](err)
				if !ok || e.Err != guard.ErrLost || e.Guard != "order.settle" {
					t.Errorf("%s: %v, want ErrLost", name, err)
				}
			}
			return "", nil
		}, guard.Key("#{req.Items}"))
		if _, err := settle(t.Context(), Order{Items: []string{"a", "b"}}); !errors.Is(err, guard.ErrLost) {
			t.Errorf("settle: %v, want ErrLost", err)
		}
	})
}

// asking is a locker whose holds answer what they are told to.
type asking struct {
	*memlock.Locker
	answer error
}

type askedHold struct {
	lock.Hold
	answer error
}

func (a asking) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	hold, err := a.Locker.Acquire(ctx, r)
	return askedHold{hold, a.answer}, err
}

func (h askedHold) Extend(context.Context, time.Duration) error { return h.answer }

func TestCheckAsksTheService(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		answer error
		ctx    context.Context
		want   error
	}{
		{nil, t.Context(), nil},
		{lock.ErrNotHeld, t.Context(), guard.ErrLost},
		{&lock.LostError{}, t.Context(), guard.ErrLost},
		{errors.New("connection reset"), t.Context(), guard.ErrOutage},
		{lock.ErrRefused, t.Context(), guard.ErrFault},
		{context.Canceled, ended, context.Canceled},
	} {
		settle, _ := guarded(t, asking{memlock.New(), tt.answer}, func(ctx context.Context, _ Order) (string, error) {
			h, _ := guard.HoldFrom(ctx)
			for _, err := range []error{h.Check(tt.ctx), h.Extend(tt.ctx, time.Second)} {
				if !errors.Is(err, tt.want) {
					t.Errorf("the service answers %v: %v, want %v", tt.answer, err, tt.want)
				}
			}
			return "", nil
		})
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Error(err)
		}
	}
	settle, _ := guarded(t, newSpy(), func(ctx context.Context, _ Order) (string, error) {
		h, _ := guard.HoldFrom(ctx)
		if err := h.Check(ctx); err != nil {
			t.Errorf("Check without a way to ask: %v", err)
		}
		if err := h.Extend(ctx, time.Second); !errors.Is(err, guard.ErrUnsupported) {
			t.Errorf("Extend without a way to: %v, want ErrUnsupported", err)
		}
		return "", nil
	})
	if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
		t.Error(err)
	}
}

// slow is a locker whose holds take a second to answer, each by its key.
type slow struct {
	*memlock.Locker
	answers map[string]func() error
}

type slowHold struct {
	lock.Hold
	answer func() error
}

func (s slow) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	hold, err := s.Locker.Acquire(ctx, r)
	return slowHold{hold, s.answers[r.Key]}, err
}

func (h slowHold) Extend(context.Context, time.Duration) error {
	time.Sleep(time.Second)
	if h.answer == nil {
		return nil
	}
	return h.answer()
}

// All keys are asked about at once, and all answers are waited for. A loss that is known says more than what is not known.
func TestCheckOfManyKeys(t *testing.T) {
	reset := func() error { return errors.New("connection reset") }
	gone := func() error { return &lock.LostError{} }
	for _, tt := range []struct {
		name     string
		answers  map[string]func() error
		want     error
		panicked any
	}{
		{"held", nil, nil, nil},
		{"lost", map[string]func() error{"c": gone}, guard.ErrLost, nil},
		{"no answer", map[string]func() error{"b": reset}, guard.ErrOutage, nil},
		{"no answer and lost", map[string]func() error{"a": reset, "c": gone}, guard.ErrLost, nil},
		{"panic", map[string]func() error{"b": func() error { panic("b") }, "c": gone}, nil, "b"},
		{"goroutine ended", map[string]func() error{"b": func() error { runtime.Goexit(); return nil }}, guard.ErrOutage, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			settle, _ := guarded(t, slow{memlock.New(), tt.answers}, func(ctx context.Context, _ Order) (string, error) {
				h, _ := guard.HoldFrom(ctx)
				start := time.Now()
				defer func() {
					if p := recover(); p != tt.panicked {
						t.Errorf("%s: panic %v, want %v", tt.name, p, tt.panicked)
					}
					if took := time.Since(start); took != time.Second {
						t.Errorf("%s: took %v, want 1s", tt.name, took)
					}
				}()
				if err := h.Check(ctx); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("%s: Check = %v, want %v", tt.name, err, tt.want)
				}
				return "", nil
			}, guard.Key("#{req.Items}"))
			if _, err := settle(t.Context(), Order{Items: []string{"a", "b", "c"}}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRequireHeld(t *testing.T) {
	var kept context.Context
	settle, _ := guarded(t, memlock.New(), func(ctx context.Context, o Order) (string, error) {
		kept = ctx
		for _, name := range []string{"", "order.settle"} {
			if err := guard.RequireHeld(ctx, name); err != nil != o.Free {
				t.Errorf("free %v: RequireHeld(%q) = %v", o.Free, name, err)
			}
		}
		err := guard.RequireHeld(ctx, "other")
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Guard != "other" || e.Err != guard.ErrFault || !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("RequireHeld of another guard: %v", err)
		}
		return "", nil
	}, guard.When("!req.Free"))
	for _, free := range []bool{true, false} {
		if _, err := settle(t.Context(), Order{ID: "7", Free: free}); err != nil {
			t.Error(err)
		}
	}
	if err := guard.RequireHeld(kept, "order.settle"); !errors.Is(err, guard.ErrLost) {
		t.Errorf("after the call: %v, want ErrLost", err)
	}
	if _, ok := guard.HoldFrom(t.Context()); ok {
		t.Error("HoldFrom outside of a guard")
	}
	var none guard.Hold
	if none.Name() != "" || none.Token() != 0 || none.Remaining() != 0 || !errors.Is(none.Check(t.Context()), guard.ErrFault) {
		t.Error("the zero Hold holds something")
	}
}

// TestHoldEndsWithItsCall holds that work which is left behind is told so, also if the locker's holds can't say how long they are good.
func TestHoldEndsWithItsCall(t *testing.T) {
	for _, l := range []lock.Locker{memlock.New(), bare(memlock.New())} {
		var kept context.Context
		settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			kept = context.WithoutCancel(ctx)
			return "", guard.RequireHeld(ctx, "order.settle")
		})
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Errorf("%T: %v", l, err)
		}
		if err := guard.RequireHeld(kept, "order.settle"); !errors.Is(err, guard.ErrLost) {
			t.Errorf("%T: RequireHeld after the call = %v, want ErrLost", l, err)
		}
		h, _ := guard.HoldFrom(kept)
		if err := h.Check(t.Context()); !errors.Is(err, guard.ErrLost) || h.Remaining() != 0 {
			t.Errorf("%T: Check after the call = %v, Remaining %v", l, err, h.Remaining())
		}
	}
}
