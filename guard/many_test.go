package guard_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestManyKeys(t *testing.T) {
	l := newSpy()
	settle, seen := guarded(t, l, settled, guard.Key("#{req.Items}"))
	if _, err := settle(t.Context(), Order{Items: []string{"c", "a", "b", "a"}}); err != nil {
		t.Fatal(err)
	}
	l.check(t, "acquire a", "acquire b", "acquire c", "release c", "release b", "release a")
	if e := seen.only(t); e.Keys != 3 {
		t.Errorf("event %+v, want 3 keys", e)
	}
}

func TestNoKeysAtAll(t *testing.T) {
	settle, _ := guarded(t, newSpy(), func(context.Context, Order) (string, error) {
		t.Error("ran without a lock")
		return "", nil
	}, guard.Key("#{req.Items}"))
	if _, err := settle(t.Context(), Order{}); !errors.Is(err, guard.ErrKey) {
		t.Errorf("settle: %v, want ErrKey", err)
	}
}

// TestRollBack is a third key that stays busy: the first two are given back, and the whole wait is as long as declared.
func TestRollBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newSpy()
		var holds []lock.Hold
		for _, key := range []string{"b", "c"} {
			hold, err := l.Locker.Acquire(t.Context(), lock.Request{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			holds = append(holds, hold)
		}
		time.AfterFunc(4*time.Second, func() { _ = holds[0].Release(t.Context()) })
		settle, seen := guarded(t, l, func(ctx context.Context, _ Order) (string, error) {
			hold, err := l.Locker.Acquire(ctx, lock.Request{Key: "a"})
			if err != nil {
				t.Errorf("runs before the roll-back: %v", err)
				return "", err
			}
			return "unlocked", hold.Release(ctx)
		}, guard.Key("#{req.Items}"), guard.Wait(10*time.Second), guard.Busy(guard.RunUnlocked))
		start := time.Now()
		if got, err := settle(t.Context(), Order{Items: []string{"a", "b", "c"}}); got != "unlocked" || err != nil {
			t.Errorf("settle = %q, %v", got, err)
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("waited %v, want 10s", got)
		}
		var waits []time.Duration
		for _, r := range l.requests {
			waits = append(waits, r.Wait)
		}
		if want := []time.Duration{10 * time.Second, 10 * time.Second, 6 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		if e := seen.only(t); e.Outcome != guard.OutcomeUnlocked || e.Keys != 3 || e.Held != 0 {
			t.Errorf("event %+v", e)
		}
		if err := holds[1].Release(t.Context()); err != nil {
			t.Error(err)
		}
		l.check(t, "acquire a", "acquire b", "acquire c", "release b", "release a")
	})
}

// TestManyCalls counts under overlapping sets of locks; the race detector and the sums tell whether they exclude.
func TestManyCalls(t *testing.T) {
	var counts [5]int
	keys := []string{"a", "b", "c", "d", "e"}
	settle, seen := guarded(t, memlock.New(), func(_ context.Context, o Order) (string, error) {
		for _, item := range o.Items {
			counts[slices.Index(keys, item)]++
		}
		return "", nil
	}, guard.Key("#{req.Items}"), guard.Wait(guard.Forever))
	var calls sync.WaitGroup
	for i := range 500 {
		calls.Go(func() {
			o := Order{Items: []string{keys[i%5], keys[(i+2)%5]}}
			if _, err := settle(t.Context(), o); err != nil {
				t.Errorf("settle: %v", err)
			}
		})
	}
	calls.Wait()
	if counts != [5]int{200, 200, 200, 200, 200} {
		t.Errorf("counts %v, want 200 each", counts)
	}
	if len(seen.all) != 500 {
		t.Errorf("%d events, want 500", len(seen.all))
	}
}
