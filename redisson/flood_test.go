package redisson_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// flood is what a server sends without an end, to whatever script it is asked for or to whoever subscribes.
type flood struct{ name, first, then string }

var floods = []flood{
	{"a line", "+", strings.Repeat("x", 1<<16)},
	{"an error", "-ERR ", strings.Repeat("x", 1<<16)},
	{"a text of a petabyte", "$1125899906842624\r\n", strings.Repeat("x", 1<<16)},
	{"a text of 16 MB", "$16000000\r\n", strings.Repeat("x", 1<<16)},
	{"a list of two billion", "*2147483647\r\n", strings.Repeat(":1\r\n", 1<<14)},
	{"a list of a million", "*1000000\r\n", strings.Repeat(":1\r\n", 1<<14)},
	{"lists in lists", "", strings.Repeat("*1\r\n", 1<<14)},
	{"attributes", "", strings.Repeat("|0\r\n", 1<<14)},
	{"pushes", "", strings.Repeat(">2\r\n+invalidate\r\n*1\r\n+k\r\n", 1<<12)},
	{"answers", "", strings.Repeat("*3\r\n:0\r\n:5000\r\n:0\r\n", 1<<12)},
	{"messages", "", strings.Repeat("*3\r\n$7\r\nmessage\r\n$1\r\nk\r\n$1\r\n0\r\n", 1<<11)},
	{"nothing", "", ""},
}

// serveFlood answers all else as a Redis does where a lock is busy.
func serveFlood(conn net.Conn, at string, f flood) {
	for r := bufio.NewReader(conn); ; {
		name, err := request(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		if name == "evalsha" || name == "eval" {
			answer = integers("0", "5000", "0")
		}
		if name != at {
			_, err = io.WriteString(conn, answer)
		} else if _, err = io.WriteString(conn, f.first); f.then != "" {
			for err == nil {
				_, err = io.WriteString(conn, f.then)
			}
		}
		if err != nil {
			return
		}
	}
}

// Nobody waits longer for a server that sends without an end, memory does not grow, and nothing passes for success. The test is not
// parallel, because it looks at the memory of all.
func TestFloods(t *testing.T) {
	for _, at := range []string{"evalsha", "subscribe"} {
		for _, f := range floods {
			t.Run(at+"/"+f.name, func(t *testing.T) { testFlood(t, at, f) })
		}
	}
}

func testFlood(t *testing.T, at string, f flood) {
	const patience, most = 150 * time.Millisecond, 400 << 20
	addr := startServing(t, func(conn net.Conn) { serveFlood(conn, at, f) })
	c, err := redisson.Open("redis://"+addr, redisson.WatchdogTimeout(time.Second), redisson.Timeout(patience))
	check(t, err)
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var calls sync.WaitGroup
	for _, ask := range floodCalls(c) {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			start := time.Now()
			if ask(ctx) {
				t.Error("a call succeeded")
			}
			if took := ran(start); took > 2*patience+time.Second {
				t.Errorf("a call took %v", took)
			}
		})
	}
	done := make(chan struct{})
	go func() { calls.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(10 * time.Millisecond):
		}
		var now runtime.MemStats
		if runtime.ReadMemStats(&now); now.HeapAlloc > before.HeapAlloc+most {
			t.Fatalf("the heap has grown by %d MiB", (now.HeapAlloc-before.HeapAlloc)>>20)
		}
	}
	check(t, c.Close())
}

// floodCalls report whether they got what they asked for.
func floodCalls(c *redisson.Client) (calls []func(context.Context) bool) {
	for _, r := range allKinds() {
		calls = append(calls, func(ctx context.Context) bool {
			_, err := c.Acquire(ctx, r)
			return err == nil
		})
	}
	return append(calls,
		func(ctx context.Context) bool { return c.Semaphore("k").Acquire(ctx, 1) == nil },
		func(ctx context.Context) bool {
			_, err := c.PermitExpirableSemaphore("k").Acquire(ctx, time.Second)
			return err == nil
		},
		func(ctx context.Context) bool { return c.RateLimiter("k").Acquire(ctx, 1) == nil },
		func(ctx context.Context) bool {
			ok, err := c.Semaphore("k").TrySetPermits(ctx, 1)
			return ok && err == nil
		},
		func(ctx context.Context) bool {
			_, ok, err := c.Lock("k").TryLock(ctx, 50*time.Millisecond, 0)
			return ok || err != nil && errors.Is(err, lock.ErrBusy)
		},
	)
}
