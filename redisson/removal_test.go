package redisson

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// removals counts the scripts that take holders away, and that a server has answered: what was sent before a connection broke is sent once more.
type removals struct{ sent atomic.Int64 }

func (r *removals) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *removals) count(cmds ...redis.Cmder) {
	for _, s := range []*script{lockRelease, fairRelease, rwRelease, permitRelease} {
		for _, cmd := range cmds {
			if args := cmd.Args(); (cmd.Err() == nil || reply.IsReply(cmd.Err())) && len(args) > 1 && (args[1] == s.SHA || many[s] != nil && args[1] == many[s].SHA) {
				r.sent.Add(1)
			}
		}
	}
}

func (r *removals) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.count(cmd)
		return err
	}
}

func (r *removals) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		r.count(cmds...)
		return err
	}
}

// What calls that failed in an outage may have left behind is looked for until no copy of their questions can arrive any more, together.
func TestRemovalsTravelTogether(t *testing.T) {
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Write, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s, sent := redistest.Start(t), new(removals)
			p := s.Front(t)
			rdb := s.Client(t, func(o *redis.Options) {
				o.Addr, o.PoolSize = p.Addr, 500
				o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // connections that ask for it at once are a race in go-redis
			})
			rdb.AddHook(sent)
			c, err := New(rdb, Timeout(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p.Freeze()
			var calls sync.WaitGroup
			const failed = 400
			for i := range failed {
				calls.Go(func() {
					if _, err := c.Acquire(t.Context(), lock.Request{Key: fmt.Sprint("k", i), Kind: kind, Limit: 1}); err == nil {
						t.Errorf("k%d was taken of a server that is out of reach", i)
					}
				})
			}
			calls.Wait()
			p.Drop()
			p.Thaw()
			for settled := false; !settled; time.Sleep(10 * time.Millisecond) {
				c.registry.mu.Lock()
				settled = len(c.registry.schedule) == 0
				c.registry.mu.Unlock()
			}
			if n := sent.sent.Load(); n > failed*3 { // each for itself, they are some ten
				t.Errorf("%.2f removals for each of %d failed calls, want 3 at most", float64(n)/failed, failed)
			}
			if n := s.Client(t).DBSize(t.Context()).Val(); n > failed/100 { // a server that was stopped may read a question later than that
				t.Errorf("%d keys are left", n)
			}
		})
	}
}

// A removal that is answered before the question whose answer was lost arrives is repeated soon: the lock is not shut for long.
func TestRemovalFollowsALateQuestion(t *testing.T) {
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Write, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := s.Front(t)
			c, err := New(s.Client(t, func(o *redis.Options) { o.Addr = p.Addr }))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			other, err := New(s.Client(t))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			r := lock.Request{Key: "k", Kind: kind, Limit: 1, Wait: -1}
			for _, known := range []*Client{c, other} { // the scripts are there
				if err := mustAcquire(t.Context(), t, known, r).Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			late, exit := p.KeepBackSilently(c.familyOf(kind).enter(&holder{keys: [1]string{"k"}, kind: kind, limit: 1}, time.Second).Script.SHA, 0), p.KeepBackReply(plainExit(c, kind), 0)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			r.Wait = 0
			if _, err := c.Acquire(ctx, r); err == nil {
				t.Fatal("the question was kept back, and answered")
			}
			exit.Await(t)
			late.Deliver(t)
			exit.Deliver(t)
			start := time.Now()
			r.Wait = 10 * time.Second
			if err := mustAcquire(t.Context(), t, other, r).Release(t.Context()); err != nil {
				t.Error(err)
			}
			if shut := time.Since(start); shut > 600*time.Millisecond {
				t.Errorf("the lock that nobody holds was shut for %v", shut)
			}
		})
	}
}

// plainExit is the digest of the script that removes a holder of that kind.
func plainExit(c *Client, kind lock.Kind) string {
	return c.familyOf(kind).exit(&holder{keys: [1]string{"k"}, limit: 1}, "", 0).Script.SHA
}
