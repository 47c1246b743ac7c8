package guard_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Guards of two processes read their limits from requests, and these change while two calls with another limit are inside: never are more
// inside than the limit of those who come in, and calls of which as many are inside already are busy.
func TestLimitsOfRequestsOnRedis(t *testing.T) {
	s := redistest.Any(t)
	var inside, most, came atomic.Int64
	work := func(ctx context.Context, r Report) (string, error) {
		now := inside.Add(1)
		defer inside.Add(-1)
		for top := most.Load(); now > top && !most.CompareAndSwap(top, now); top = most.Load() {
		}
		came.Add(1)
		if r.Name == "stays" {
			<-ctx.Value(leaveKey{}).(chan struct{})
		} else {
			<-time.After(5 * time.Millisecond)
		}
		return "", ctx.Err()
	}
	var processes []func(context.Context, Report) (string, error)
	for range 2 {
		client, _ := openRedis(t, s)
		processes = append(processes, reporting(t, client, work, slots, timeout, guard.Wait(10*time.Second)))
	}
	leave := make(chan struct{})
	staying := context.WithValue(t.Context(), leaveKey{}, leave)
	var stay sync.WaitGroup
	for _, f := range processes {
		stay.Go(func() {
			if _, err := f(staying, Report{Customer: "a", Name: "stays", Slots: 2, Timeout: time.Minute}); err != nil {
				t.Error(err)
			}
		})
	}
	for start := time.Now(); inside.Load() < 2; <-time.After(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("two calls do not come in")
		}
	}
	for _, limit := range []int{4, 2, 3, 1, 6} {
		most.Store(2)
		before := came.Load()
		var calls sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{true: time.Minute, false: 300 * time.Millisecond}[limit > 2])
		for i := range 8 {
			calls.Go(func() {
				_, err := processes[i%2](ctx, Report{Customer: "a", Slots: limit, Timeout: 20 * time.Second})
				if (err == nil) != (limit > 2) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("with a limit of %d: %v", limit, err)
				}
			})
		}
		calls.Wait()
		cancel()
		if n := came.Load() - before; n != map[bool]int64{true: 8, false: 0}[limit > 2] || most.Load() > int64(max(limit, 2)) {
			t.Errorf("with a limit of %d, %d came in, at most %d at once", limit, n, most.Load())
		}
	}
	close(leave)
	stay.Wait()
	if left := s.Client(t).Keys(t.Context(), "*report:a*").Val(); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

type leaveKey struct{}
