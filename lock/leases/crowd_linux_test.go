package leases_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A crowd that leaves a line together is gone within half a second of two processors, and holds up a caller of another key for a tenth of that
// at most. The best of a few tries counts.
func TestCrowdLeavesTogether(t *testing.T) {
	const soon, delay = time.Second, time.Second / 10
	m, l := newMemory(), memlock.New()
	for _, tt := range []struct {
		name          string
		holder, crowd lock.Locker
	}{{"leases", newLocker(t, m), newLocker(t, m)}, {"memlock", l, l}} {
		t.Run(tt.name, func(t *testing.T) {
			pair := func(ctx context.Context, l lock.Locker, r lock.Request) error {
				h, err := l.Acquire(ctx, r)
				if err != nil {
					return err
				}
				return h.Release(ctx)
			}
			h, err := tt.holder.Acquire(t.Context(), lock.Request{Key: "k"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Release(t.Context()) }()
			for range 5 {
				ctx, leave := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range crowdSize {
					all.Go(func() {
						if err := pair(ctx, tt.crowd, lock.Request{Key: "k", Wait: -1}); !errors.Is(err, context.Canceled) {
							t.Errorf("Acquire = %v, want Canceled", err)
						}
					})
				}
				for before := worked() - time.Second; worked()-before > 20*time.Millisecond; time.Sleep(50 * time.Millisecond) {
					before = worked()
				}
				var left, held time.Duration
				start, gone := worked(), make(chan struct{})
				leave()
				go func() { all.Wait(); left = worked() - start; close(gone) }()
				for here := true; here; {
					start := worked()
					if err := pair(t.Context(), tt.crowd, lock.Request{Key: "other"}); err != nil {
						t.Fatal(err)
					}
					held = max(held, worked()-start)
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
		})
	}
}

// worked is the time for which processors have worked for this process: what others make of the machine does not count.
func worked() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
