package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Requests for several permits, and for none, beside others of the same client.

// Somebody waits for more permits than are free, or than there are in all. Those who want fewer are served meanwhile, as
// they are in Redisson.
func TestSmallerRequestsPassALargerOne(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, rdb := t.Context(), srv.Client(t)
	s := newSemaphore(t, newClient(t, srv), 3)
	check(t, s.Acquire(ctx, 1))
	large := acquireAsync(s, 3)
	endless, cancel := context.WithCancel(ctx)
	never := make(chan error, 1)
	go func() { never <- s.Acquire(endless, 4) }()
	eventually(t, "the large requests wait", func() bool { return len(subscriptions(t, rdb)) == 1 })
	<-time.After(50 * time.Millisecond)
	for range 3 {
		small, stop := context.WithTimeout(ctx, time.Second)
		if err := s.Acquire(small, 1); err != nil {
			t.Fatalf("Acquire of a permit that is free = %v", err)
		}
		stop()
		must(t, true)(s.TryAcquire(ctx, 1, -1))
		check(t, s.Release(ctx, 2))
	}
	check(t, s.Release(ctx, 1))
	expectDone(t, large)
	cancel()
	if err := <-never; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire of more permits than there are = %v, want canceled", err)
	}
	must(t, 0)(s.AvailablePermits(ctx))
}

// No permits can always be had and given back, without a question.
func TestNoPermits(t *testing.T) {
	srv := redistest.Any(t)
	ctx, s := t.Context(), newClient(t, srv).Semaphore("s")
	for name, err := range map[string]error{
		"Acquire":         s.Acquire(ctx, 0),
		"Release":         s.Release(ctx, 0),
		"TryAcquire":      second(s.TryAcquire(ctx, 0, 0)),
		"ReleaseIfExists": second(s.ReleaseIfExists(ctx, 0)),
	} {
		if err != nil {
			t.Errorf("%s of no permits = %v", name, err)
		}
	}
	if ok, err := s.TryAcquire(ctx, 0, time.Second); !ok || err != nil {
		t.Errorf("TryAcquire of no permits = %v, %v, want true", ok, err)
	}
	if got := keys(t, srv.Client(t)); len(got) != 0 {
		t.Errorf("keys %q", got)
	}
}
