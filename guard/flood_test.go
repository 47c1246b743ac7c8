package guard_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Many calls for one key, as a hostile client can make them, come to a client with a bound: as many as may wait, and the others are
// busy at once, with the reason.
func TestFloodIsBusyAtOnce(t *testing.T) {
	const calls, bound = 40, 5
	rdb := redis.NewClient(&redis.Options{Addr: redistest.Any(t).Addr})
	t.Cleanup(func() { _ = rdb.Close() })
	client, err := redisson.New(rdb, redisson.MaxWaiters(bound, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	hold, err := client.Acquire(t.Context(), lock.Request{Key: "order:7", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	settle, _ := guarded(t, client, settled, guard.Wait(guard.Forever))
	results := make(chan error, calls)
	ctx, hangUp := context.WithTimeout(t.Context(), 20*time.Second)
	defer hangUp()
	var callers sync.WaitGroup
	for range calls {
		callers.Go(func() {
			_, err := settle(ctx, Order{ID: "7"})
			results <- err
		})
	}
	for range calls - bound {
		err := <-results
		refused, _ := errors.AsType[*guard.Error](err)
		if refused == nil || !errors.Is(refused.Err, guard.ErrBusy) || !errors.Is(err, redisson.ErrTooManyWaiters) {
			t.Fatalf("settle: %v, want ErrBusy by ErrTooManyWaiters", err)
		}
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers.Wait()
	for range bound {
		if err := <-results; err != nil {
			t.Errorf("one who waited: %v", err)
		}
	}
}
