package redisson

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
)

// A Close removes the lock from Redis while a release is on its way. That one finds nothing, and nothing was lost.

// overtaken has the question of a release come to Redis after the lock is not there any more, which end brings about. A lost lock was
// removed by somebody else before.
func overtaken(t *testing.T, question *script, lost bool, prepare func(c *Client) (h lock.Hold, end func())) {
	t.Helper()
	s := redistest.Any(t)
	admin, rdb := s.Client(t), s.Client(t)
	var once sync.Once
	asks, goOn, releasing := make(chan struct{}), make(chan struct{}), make(chan struct{})
	rdb.AddHook(slowScript{script: question, before: func() {
		select {
		case <-releasing:
			once.Do(func() { close(asks) })
			<-goOn
		default:
		}
	}})
	c := clientOn(t, rdb)
	h, closing := prepare(c)
	released := make(chan error)
	close(releasing)
	go func() { released <- h.Release(context.Background()) }()
	<-asks
	if lost && admin.Del(t.Context(), "k").Val() != 1 {
		t.Error("there was no lock")
	}
	var closed sync.WaitGroup
	closed.Go(closing)
	for deadline := time.Now().Add(10 * time.Second); admin.Exists(t.Context(), "k").Val() != 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("the lock stays")
			break
		}
	}
	close(goOn)
	if err := <-released; errors.Is(err, lock.ErrLost) != lost || err != nil && !lost {
		t.Errorf("Release = %v, want a loss: %v", err, lost)
	}
	closed.Wait()
	expectUnused(t, c)
}

func TestCloseThatOvertakesAReleaseHidesNoLoss(t *testing.T) {
	t.Parallel()
	overtaken(t, lockUpdate, true, passingAtClose(t))
}

// passingAtClose prepares a hold whose lock passes with the answer to its release.
func passingAtClose(t *testing.T) func(c *Client) (lock.Hold, func()) {
	return func(c *Client) (lock.Hold, func()) {
		r := lock.Request{Key: "k", Lease: time.Minute}
		h := mustAcquire(t.Context(), t, c, r)
		var next hold // wants a lease that is longer than what is left, so that Redis is asked
		var first place
		next.prepare(t.Context(), c, h.(*hold).holder, r)
		c.queues.join(&first, next.holder.queueID(), &next, false)
		return h, func() {
			_ = c.Close()
			c.queues.leave(&first, false)
		}
	}
}

func TestReleaseAfterCloseOvertakesThatOfAnInnerHold(t *testing.T) {
	t.Parallel()
	overtaken(t, rwUpdate, false, func(c *Client) (lock.Hold, func()) {
		r := lock.Request{Key: "k", Kind: lock.Write}
		outer := mustAcquire(t.Context(), t, c, r)
		inner := mustAcquire(outer.Context(), t, c, r)
		return inner, func() {
			ended := context.AfterFunc(outer.Context(), func() {
				if err := outer.Release(context.Background()); !errors.Is(err, ErrClosed) {
					t.Errorf("Release of the outer hold = %v, want ErrClosed", err)
				}
			})
			defer ended()
			_ = c.Close()
		}
	})
}
