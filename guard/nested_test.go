package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A guard around a handler does not switch off a guard that the handler's calls share.
func TestCallsUnderOneGuardTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memlock.New()
		running := 0
		reserve, _ := guarded(t, l, func(context.Context, Order) (string, error) {
			running++
			if running != 1 {
				t.Errorf("%d reserve at once", running)
			}
			time.Sleep(time.Minute)
			running--
			return "reserved", nil
		}, guard.Name("stock"), guard.Key("stock:#{req.ID}"), guard.WaitForever())
		settle, _ := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			var lines sync.WaitGroup
			for range 4 {
				lines.Go(func() {
					if _, err := reserve(ctx, Order{ID: "sku1"}); err != nil {
						t.Errorf("reserve: %v", err)
					}
				})
			}
			lines.Wait()
			return "settled", nil
		})
		start := time.Now()
		if _, err := settle(t.Context(), Order{ID: "7"}); err != nil {
			t.Errorf("settle: %v", err)
		}
		if got := time.Since(start); got != 4*time.Minute {
			t.Errorf("settled after %v, want 4m", got)
		}
	})
}

// All keys of the outer guard are re-entered, whichever of them the inner one takes.
func TestNestedGuardReenters(t *testing.T) {
	l := memlock.New()
	inner, _ := guarded(t, l, settled, guard.Key("#{req.Items}"))
	outer, _ := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
		for _, item := range o.Items {
			if _, err := inner(ctx, Order{Items: []string{item}}); err != nil {
				t.Errorf("inner of %s: %v", item, err)
			}
		}
		return inner(context.WithoutCancel(ctx), o)
	}, guard.Key("#{req.Items}"))
	if _, err := outer(t.Context(), Order{Items: []string{"a", "b", "c"}}); err != nil {
		t.Errorf("outer: %v", err)
	}
}

// The work that calls a guard without the context that it was given waits for itself, and is told why.
func TestDroppedContextIsNamed(t *testing.T) {
	l := memlock.New()
	var outermost context.Context
	inner, _ := guarded(t, l, settled)
	middle, _ := guarded(t, l, func(_ context.Context, o Order) (string, error) { return inner(outermost, o) })
	outer, _ := guarded(t, l, func(ctx context.Context, o Order) (string, error) {
		outermost = ctx
		return middle(ctx, o)
	}, guard.Key("request:#{req.ID}"))
	_, err := outer(t.Context(), Order{ID: "7"})
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !errors.Is(err, guard.ErrBusy) || !ok || !busy.Related {
		t.Errorf("outer: %v, want busy with a relative", err)
	}
}

// A reader that calls a writer of its own key would wait for itself: a fault of the declarations, not of the moment.
func TestReaderCallsWriter(t *testing.T) {
	l := memlock.New()
	write, seen := guarded(t, l, settled, guard.Write(), guard.WaitForever(), guard.Busy(guard.RunUnlocked))
	read, _ := guarded(t, l, write, guard.Read())
	_, err := read(t.Context(), Order{ID: "7"})
	kinds, ok := errors.AsType[*lock.KindError](err)
	if !errors.Is(err, guard.ErrUnsupported) || !ok || kinds.Held != lock.Read || kinds.Wanted != lock.Write {
		t.Errorf("read: %v, want ErrUnsupported that names both kinds", err)
	}
	if e := seen.only(t); e.Outcome != guard.OutcomeUnsupported {
		t.Errorf("event of the writer %+v, want unsupported", e)
	}
}
