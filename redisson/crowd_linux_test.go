package redisson_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A crowd that leaves a line together is gone within half a second of two processors, and holds up a caller of another key for a part of
// that at most. The best of a few tries counts.
func TestCrowdLeavesTogether(t *testing.T) {
	const soon, delay = time.Second, time.Second / 4 // a search takes two of each
	s := redistest.Start(t)
	mustLock(t, newClient(t, s).Lock("k"))
	c := newClient(t, s, redisson.MaxWaiters(crowdSize, 0))
	other := func() time.Duration {
		start := worked()
		release(t, acquire(t.Context(), t, c, lock.Request{Key: "other"}))
		return worked() - start
	}
	for range 5 {
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range crowdSize {
			all.Go(func() {
				if _, err := c.Acquire(ctx, lock.Request{Key: "k", Wait: -1}); !errors.Is(err, context.Canceled) {
					t.Errorf("Acquire = %v, want Canceled", err)
				}
			})
		}
		within(t, time.Minute, "all wait", func() bool { n, _ := redisson.Waiting(c); return n == crowdSize })
		usual := other()
		var left, held time.Duration
		start, gone := worked(), make(chan struct{})
		leave()
		go func() { all.Wait(); left = worked() - start; close(gone) }()
		for here := true; here; {
			held = max(held, other()-usual)
			select {
			case <-gone:
				here = false
			default:
			}
		}
		t.Logf("left in %v, another key held up for %v", left, held)
		if left < soon && held < delay {
			return
		}
	}
	t.Errorf("want them to leave in %v, and another key held up for less than %v", soon, delay)
}

// worked is the time for which processors have worked for this process: what others make of the machine does not count.
func worked() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
