package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A Keep of an inner hold is answered so late that the client counts the lock as lost by then. The release of the outer hold, which says so,
// leaves the lock to what is kept.
func TestLossOfTheOuterHoldEndsNoKeep(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fenced, lock.Fair, lock.Spin, lock.Read, lock.Write} {
		for _, closed := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, ", client closed ", closed), func(t *testing.T) {
				t.Parallel()
				for try := 0; !lossOfTheOuter(t, s, kind, closed, fmt.Sprint(kind, closed, try)); try++ {
					if try == 5 {
						t.Fatal("the Keep is never asked in time")
					}
				}
			})
		}
	}
}

func lossOfTheOuter(t *testing.T, s *redistest.Server, kind lock.Kind, closed bool, key string) (ok bool) {
	t.Helper()
	c, p := behind(t, s, redisson.WatchdogTimeout(2*time.Second), redisson.Timeout(2*time.Second))
	other := newClient(t, s)
	outer := acquire(t.Context(), t, c, lock.Request{Key: key, Kind: kind})
	inner := acquire(outer.Context(), t, c, lock.Request{Key: key, Kind: kind})
	p.Freeze()
	for inner.(interface{ Remaining() time.Duration }).Remaining() > 1200*time.Millisecond { // or the Keep would not be waited for as long
		<-time.After(10 * time.Millisecond)
	}
	kept := make(chan error, 1)
	go func() {
		kept <- inner.(interface {
			Keep(context.Context, time.Duration) error
		}).Keep(t.Context(), 3*time.Second)
	}()
	<-outer.Context().Done()
	p.Thaw()
	err := <-kept
	if errors.Is(err, lock.ErrLost) {
		return false // the machine stood still until then
	}
	check(t, err)
	if closed {
		check(t, c.Close())
	}
	if err := outer.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release of the outer hold = %v, want ErrLost", err)
	}
	taken := kind
	if taken == lock.Read {
		taken = lock.Write
	}
	for range 20 { // until the watchdog has seen to it
		expectHeldByOthers(t.Context(), t, "while the lock is kept", other, lock.Request{Key: key, Kind: taken})
		<-time.After(20 * time.Millisecond)
	}
	release(t, acquire(t.Context(), t, other, lock.Request{Key: key, Kind: taken}))
	return true
}
