package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// A million keys of somebody else in Redis with LATCHKEY_TEST_KEYS=1000000, and a part of that otherwise: ls takes less than a second for
// 100,000 of them, little memory, and never long of Redis at a time.
func TestLsAmongManyOthers(t *testing.T) {
	n := 200_000
	if given, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_KEYS")); err == nil {
		n = given
	}
	n -= n % 3
	ls := func(t *testing.T, url string, rdb redis.UniversalClient, servers ...*redistest.Server) {
		for i := range 100 {
			rdb.HSet(t.Context(), fmt.Sprint("order:", i), goClient+":1", "1")
		}
		var p *program
		var took time.Duration
		var found int
		slow := redistest.Slow(t, func() {
			begun := time.Now()
			found = 0
			p = start(t, url, "ls", "--fast")
			for line := range p.out.all {
				found += strings.Count(line, "order:")
			}
			if status := p.status(); status != 0 {
				t.Errorf("status %d: %s", status, p.err.rest())
			}
			took = time.Since(begun)
		}, servers...)
		cpu := p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
		memory := p.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
		t.Logf("%d keys took %v, %v of it at work itself, and %d MiB", n, took, cpu, memory)
		if found != 100 {
			t.Errorf("%d locks, want 100", found)
		}
		if limit := time.Duration(n) * (time.Second / 100_000); cpu > limit || took > 5*limit+5*time.Second { // other tests may have the machine, too
			t.Errorf("%d keys take %v, %v of it at work", n, took, cpu)
		}
		if memory > 200 { // most of which the race detector takes
			t.Errorf("it takes %d MiB", memory)
		}
		if len(slow) > 0 {
			t.Errorf("%d commands were slow: %.2000q", len(slow), slow)
		}
	}
	t.Run("one server", func(t *testing.T) {
		s := redistest.Start(t)
		s.Fill(t, n)
		ls(t, at(s), s.Client(t), s)
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.StartCluster(t, 0)
		c.Fill(t, n)
		ls(t, "redis://"+c.Masters[0].Addr+"?addr="+c.Masters[1].Addr, c.Client(t), c.Masters[0].Server, c.Masters[1].Server, c.Masters[2].Server)
	})
}

// TestWatchSaysWhatItLeavesOut holds that locks above the limit are not left out in silence, once.
func TestWatchSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	for i := range 5 {
		rdb.HSet(t.Context(), fmt.Sprint("order:", i), goClient+":1", "1")
	}
	p := start(t, at(s), "watch", "--interval", "50ms", "--limit", "3")
	p.err.await(t, "there are more than the 3 locks that are followed")
	time.Sleep(300 * time.Millisecond)
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 128+15 || strings.Count(p.err.rest(), "more than") > 1 {
		t.Errorf("status %d, and it says so again", status)
	}
}
