package redisson_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Two processes out of one memory image have one client id and the same counters. They exclude each other as any others do.
func TestTwinsExcludeEachOther(t *testing.T) {
	s := redistest.Start(t)
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fenced, lock.Spin, lock.Fair, lock.Write, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			twins := newTwins(t, s)
			for i := range 50 {
				r := lock.Request{Key: "twin:" + kind.String(), Kind: kind, Limit: 1, Wait: -1}
				first := acquire(t.Context(), t, twins[i%2], r)
				r.Wait = 0
				if h, err := twins[1-i%2].Acquire(t.Context(), r); !errors.Is(err, lock.ErrBusy) {
					t.Fatalf("hold %d: the other process got %v, %v, want busy", i, h, err)
				}
				if err := first.Release(t.Context()); err != nil {
					t.Errorf("hold %d: %v", i, err)
				}
			}
		})
	}
}

// What they change is counted once for each of them.
func TestTwinsShareNoReceipt(t *testing.T) {
	s := redistest.Start(t)
	twins := newTwins(t, s)
	plain := func(c *redisson.Client) (bool, error) { return c.Semaphore("s").TryAcquire(t.Context(), 1, 0) }
	expirable := func(c *redisson.Client) (bool, error) {
		_, got, err := c.PermitExpirableSemaphore("e").TryAcquire(t.Context(), 0, 0)
		return got, err
	}
	other := newClient(t, s) // so that the twins have made no request yet
	if _, err := other.Semaphore("s").TrySetPermits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := other.PermitExpirableSemaphore("e").TrySetPermits(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for name, take := range map[string]func(*redisson.Client) (bool, error){"semaphore": plain, "expirable": expirable} {
		var mu sync.Mutex
		var all sync.WaitGroup
		taken := 0
		for range 8 { // at once, and one after the other
			for _, c := range twins {
				all.Go(func() {
					got, err := take(c)
					mu.Lock()
					defer mu.Unlock()
					if got {
						taken++
					}
					if err != nil && !errors.Is(err, lock.ErrBusy) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
		}
		if taken != 1 {
			t.Errorf("%s: one permit was taken %d times", name, taken)
		}
	}
}

// A holder's number is decimal, no larger than Java's long, and longer than any of Java's threads.
func TestHolderNumbers(t *testing.T) {
	s := redistest.Start(t)
	c, seen := newClient(t, s), map[int64]bool{}
	for range 100 {
		h := acquire(context.Background(), t, c, lock.Request{Key: "n"})
		id := redisson.HolderID(h.Context(), c, "n", lock.Exclusive)
		n, err := strconv.ParseInt(strings.TrimPrefix(id, c.ID()+":"), 10, 64)
		if err != nil || n < 1<<61 || n >= 1<<62 || seen[n] {
			t.Errorf("holder %q: %v", id, err)
		}
		seen[n] = true
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// newTwins returns the clients of two processes that go on from one memory image.
func newTwins(t *testing.T, s *redistest.Server) []*redisson.Client {
	twins := []*redisson.Client{newClient(t, s), newClient(t, s)}
	redisson.Twin(twins[1], twins[0])
	return twins
}
