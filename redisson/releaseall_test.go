package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// batches counts the pipelines that a Redis client sends.
type batches struct{ sizes chan int }

func (batches) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b batches) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			b.sizes <- 1
		}
		return next(ctx, cmd)
	}
}

func (b batches) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		b.sizes <- len(cmds)
		return next(ctx, cmds)
	}
}

// acquireAll takes locks of all kinds, a few of each, and one of them twice.
func acquireAll(t *testing.T, c *redisson.Client) (holds []lock.Hold) {
	t.Helper()
	for _, r := range allKinds() {
		for i := range 3 {
			r.Key = fmt.Sprint(r.Kind, i)
			holds = append(holds, acquire(t.Context(), t, c, r))
		}
	}
	nested := acquire(holds[0].Context(), t, c, lock.Request{Key: "exclusive0"})
	return append([]lock.Hold{nested}, holds...)
}

// The locks of a call go back in one round trip.
func TestReleaseAll(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	behind := s.Client(t)
	sent := batches{make(chan int, 100)}
	c := onClient(t, behind)
	holds := acquireAll(t, c)
	behind.AddHook(sent)
	check(t, c.ReleaseAll(t.Context(), holds))
	close(sent.sizes)
	var sizes []int
	for n := range sent.sizes {
		sizes = append(sizes, n)
	}
	// Others are the greeting of a new connection, and questions about all holds, if the machine stood still until the client began to listen.
	const packs = 5 // for plain and fenced, spin, fair, and read/write locks, and permits
	whole := slices.DeleteFunc(slices.Clone(sizes), func(n int) bool { return n != packs })
	if len(whole) == 0 || len(whole) > 2 { // twice if the server did not know one of the scripts
		t.Errorf("pipelines of %v scripts for %d holds, want one of %d", sizes, len(holds), packs)
	}
	if got := keys(t, rdb); slices.ContainsFunc(got, func(k string) bool { return !strings.HasPrefix(k, "redisson_lock_token:") }) {
		t.Errorf("keys afterwards: %q", got)
	}
	for _, h := range holds {
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("second Release = %v, want ErrNotHeld", err)
		}
	}
}

// One that fails does not keep the others from being given back, and each error is told.
func TestReleaseAllOfSome(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, c := s.Client(t), newClient(t, s)
	hold := func(key string) lock.Hold { return acquire(t.Context(), t, c, lock.Request{Key: key}) }
	gone, released, typed, good := hold("gone"), hold("released"), hold("typed"), hold("good")
	foreign, err := memlock.New().Acquire(t.Context(), lock.Request{Key: "foreign"})
	check(t, err)
	other := acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "other"})
	release(t, released)
	check(t, rdb.Del(t.Context(), "gone").Err())
	check(t, errors.Join(rdb.Del(t.Context(), "typed").Err(), rdb.Set(t.Context(), "typed", "mine", 0).Err()))
	err = c.ReleaseAll(t.Context(), []lock.Hold{gone, released, typed, foreign, other, good})
	if !errors.Is(err, lock.ErrLost) || !errors.Is(err, lock.ErrNotHeld) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("ReleaseAll = %v, want two lost and one not held", err)
	}
	if got := keys(t, rdb); !slices.Equal(got, []string{"typed"}) {
		t.Errorf("keys afterwards: %q", got)
	}
	for name, h := range map[string]lock.Hold{"foreign": foreign, "other": other, "good": good} {
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("%s: second Release = %v, want ErrNotHeld", name, err)
		}
	}
	check(t, c.ReleaseAll(t.Context(), nil))
	all := make([]byte, 16<<20)
	eventually(t, "no goroutine stays", func() bool { // other tests come and go at the same time
		return !strings.Contains(string(all[:runtime.Stack(all, true)]), "redisson.releaseAll")
	})
}

// An answer that is lost, or a server that has forgotten the scripts, costs another round trip.
func TestReleaseAllIsRepeated(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	for name, fault := range map[string]func(*redistest.Proxy){
		"answer lost":   func(p *redistest.Proxy) { p.CutReply("evalsha", 1) },
		"many lost":     func(p *redistest.Proxy) { p.CutReply("evalsha", 5) },
		"scripts gone":  func(*redistest.Proxy) { check(t, rdb.ScriptFlush(t.Context()).Err()) },
		"frozen a time": func(p *redistest.Proxy) { p.Freeze(); time.AfterFunc(300*time.Millisecond, p.Thaw) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := behind(t, s)
			holds := acquireAll(t, c)
			fault(p)
			check(t, c.ReleaseAll(t.Context(), holds))
			if got := keys(t, rdb); slices.ContainsFunc(got, func(k string) bool { return !strings.HasPrefix(k, "redisson_lock_token:") }) {
				t.Errorf("keys afterwards: %q", got)
			}
		})
	}
}

// All are under the bound of one: the client's timeout, or the end of the context. The locks go as soon as Redis is back.
func TestReleaseAllDuringAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	for name, tt := range map[string]struct{ timeout, deadline, want time.Duration }{
		"timeout": {2 * time.Second, time.Minute, 2 * time.Second},
		"context": {5 * time.Second, 100 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c, p := behind(t, s, redisson.Timeout(tt.timeout))
			holds := acquireAll(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), tt.deadline)
			defer cancel()
			p.Freeze()
			expectSoon(t, "ReleaseAll", tt.want+500*time.Millisecond, func() {
				if err := c.ReleaseAll(ctx, holds); err == nil || errors.Is(err, lock.ErrLost) {
					t.Errorf("ReleaseAll = %v, want the error of an outage", err)
				}
			})
			p.Thaw()
			eventually(t, "the locks are gone", func() bool {
				return !slices.ContainsFunc(keys(t, rdb), func(k string) bool { return !strings.HasPrefix(k, "redisson_lock_token:") })
			})
		})
	}
}

// In a cluster, each master has a part.
func testClusterReleaseAll(t *testing.T, c *redistest.Cluster) {
	m := member(t, c)
	var holds []lock.Hold
	for i := range 20 {
		holds = append(holds, acquire(t.Context(), t, m, lock.Request{Key: fmt.Sprint("together", i)}))
	}
	check(t, m.ReleaseAll(t.Context(), holds))
	for i := range 20 {
		check(t, m.Peek(t.Context(), lock.Request{Key: fmt.Sprint("together", i)}))
	}
}

// Locks that others of this process wait for are passed on in the same round trip.
func TestReleaseAllPassesOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin, c := s.Client(t), newClient(t, s)
	waiter := func(key string) <-chan lock.Hold {
		got := make(chan lock.Hold, 1)
		go func() {
			h, err := c.Acquire(context.Background(), lock.Request{Key: key, Wait: -1})
			if err != nil {
				t.Error(err)
			}
			got <- h
		}()
		return got
	}
	for range 200 { // the first round loads the scripts, and in another one a waiter may just ask, or have come too late
		a, b := acquire(t.Context(), t, c, lock.Request{Key: "a"}), acquire(t.Context(), t, c, lock.Request{Key: "b"})
		nextA, nextB := waiter("a"), waiter("b")
		eventually(t, "they listen", func() bool { return len(subscriptions(t, admin)) == 2 })
		before := -1
		for n, _ := commands(t, admin); n != before; n, _ = commands(t, admin) { // until they have asked for the last time
			before = n
			time.Sleep(10 * time.Millisecond)
		}
		check(t, c.ReleaseAll(t.Context(), []lock.Hold{b, a}))
		heirs := []lock.Hold{<-nextA, <-nextB}
		after, _ := commands(t, admin)
		for _, h := range heirs {
			release(t, h)
		}
		if after-before == 2 {
			return
		}
	}
	t.Error("two locks were never passed on by two commands")
}
