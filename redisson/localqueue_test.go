package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// The line in which the waiters of one process stand: what fails its head, and what that means for those behind.

// Redis refuses each question, so that lines fail all the time, while more and more callers join them. It runs in a process
// of its own because a mistake there is the end of the process.
func TestFailingLineIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(context.Context, *redis.Client) error
	}{
		{"wrong type", func(ctx context.Context, rdb *redis.Client) error { return rdb.Set(ctx, "k", "x", 0).Err() }},
		{"out of memory", func(ctx context.Context, rdb *redis.Client) error { return rdb.ConfigSet(ctx, "maxmemory", "1").Err() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			check(t, tt.prepare(t.Context(), s.Client(t)))
			child := exec.Command(os.Args[0], "-test.run=^TestFailingLineChild$", "-test.v", "-test.timeout=1m")
			child.Env = append(os.Environ(), stressAddr+"="+s.Addr)
			out, err := child.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "--- PASS: TestFailingLineChild") {
				t.Errorf("the process: %v\n%s", err, firstLines(string(out), 12))
			}
		})
	}
}

// TestFailingLineChild is that process. Alone it has nothing to do.
func TestFailingLineChild(t *testing.T) {
	addr := os.Getenv(stressAddr)
	if addr == "" {
		return
	}
	s := &redistest.Server{Addr: addr}
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.PoolSize = 50 }), redisson.Timeout(500*time.Millisecond))
	var all sync.WaitGroup
	defer all.Wait()
	try := func() {
		_, err := c.Acquire(t.Context(), lock.Request{Key: "k", Wait: 100 * time.Millisecond})
		if err == nil || errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire = %v, want what Redis said", err)
		}
	}
	end := time.Now().Add(1500 * time.Millisecond)
	for range 200 {
		all.Go(func() {
			for time.Now().Before(end) {
				try()
			}
		})
	}
	for ; time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		for range 50 {
			all.Go(try)
		}
	}
}

func firstLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[:min(len(lines), n)], "\n")
}

// The first in each line has a deadline of its own, or a lease that is over when Redis answers. That is no news for the
// second, who waits for as long as it takes.
func TestHeadOfALineFailsAlone(t *testing.T) {
	t.Parallel()
	const silent = 100 * time.Millisecond
	for _, tt := range []struct {
		name  string
		lease time.Duration
		head  func(context.Context, time.Duration) (context.Context, context.CancelFunc)
	}{
		{"deadline", 0, context.WithTimeout},
		{"lease", silent / 5, func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The client's own timeout is not to end these waits. Close may wait for it, as attempts without an answer can arrive until then.
			eachMode(t, 10*time.Second, func(t *testing.T, _ *redistest.Server, c *redisson.Client, p *redistest.Proxy) {
				var all sync.WaitGroup
				p.Freeze()
				for i := range 40 {
					r := lock.Request{Key: fmt.Sprint("k", i), Wait: -1}
					ctx, cancel := tt.head(t.Context(), silent/2)
					defer cancel()
					all.Go(func() {
						h, err := c.Acquire(ctx, lock.Request{Key: r.Key, Wait: -1, Lease: tt.lease})
						if err == nil {
							_ = h.Release(t.Context())
						}
					})
					all.Go(func() {
						<-time.After(silent / 5)
						h, err := c.Acquire(t.Context(), r)
						if err != nil {
							t.Errorf("the second in line: %v", err)
							return
						}
						release(t, h)
					})
				}
				<-time.After(silent)
				p.Thaw()
				all.Wait()
			})
		})
	}
}

// Calls under one hold, which is lost meanwhile or not, wait as long as their contexts if they are ready to.
func TestUnboundedWaitNeverEndsBusy(t *testing.T) {
	t.Parallel()
	const timeout, lease = 800 * time.Millisecond, 700 * time.Millisecond
	for _, tt := range []struct {
		name  string
		lease time.Duration
	}{{"held", time.Minute}, {"lost", lease}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			c, p := behind(t, s, redisson.Timeout(timeout))
			outer := acquire(t.Context(), t, c, lock.Request{Key: "k", Lease: tt.lease})
			ctx, cancel := context.WithTimeout(beneath(outer), 3*timeout)
			defer cancel()
			answer := p.KeepBackReply(naming("k"), 0)
			var all sync.WaitGroup
			for range 5 {
				all.Go(func() {
					h, err := c.Acquire(ctx, lock.Request{Key: "k", Wait: -1})
					if errors.Is(err, lock.ErrBusy) {
						t.Errorf("Acquire = %v, with a wait without end", err)
					} else if err == nil {
						_ = h.Release(t.Context())
					}
				})
			}
			answer.Await(t)
			if tt.lease == lease {
				<-outer.Context().Done()
				acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "k", Wait: -1}) // and keeps it
			} else {
				<-time.After(2 * timeout)
			}
			answer.Deliver(t)
			all.Wait()
		})
	}
}

// Callers who come while the first one asks, without standing in line, ask nothing, and are served after it.
func TestFirstCallerStaysFirst(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	other := newClient(t, s)
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
	held := acquire(t.Context(), t, other, lock.Request{Key: "k"})
	hears(t, other) // and asks nothing more
	before, _ := commands(t, s.Client(t))
	served, answer := make(chan int, 5), p.KeepBackReply(naming("k"), 0)
	var all sync.WaitGroup
	for i := range 5 {
		all.Go(func() {
			h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
			served <- i
			release(t, h)
		})
		eventually(t, "it asks, or waits", func() bool { return redisson.Callers(c, "k") == i+1 })
	}
	if after, byName := commands(t, s.Client(t)); after-before > 4 { // and not one for each of them
		t.Errorf("%d commands before the first answer: %v", after-before, byName)
	}
	answer.Deliver(t)
	time.Sleep(50 * time.Millisecond)
	if after, byName := commands(t, s.Client(t)); after-before > 10 { // with what comes of the first refusal, for one of them
		t.Errorf("%d commands for 5 callers: %v", after-before, byName)
	}
	release(t, held)
	all.Wait()
	close(served)
	want := 0
	for i := range served {
		if i != want {
			t.Errorf("number %d was served where %d came first", i, want)
		}
		want++
	}
}
