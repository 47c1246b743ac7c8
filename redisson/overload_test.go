package redisson_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// ends counts how acquires end: "held", "busy", "overload", "refused", or "outage".
func ends(t *testing.T, c *redisson.Client, n int, request func(i int) lock.Request) (counts map[string]int, sample error) {
	t.Helper()
	counts = map[string]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		r := request(i)
		all.Go(func() {
			<-start
			h, err := c.Acquire(t.Context(), r)
			end := "outage"
			switch {
			case err == nil:
				end = "held"
				_ = h.Release(t.Context())
			case errors.Is(err, lock.ErrBusy):
				end = "busy"
			case errors.Is(err, lock.ErrRefused):
				end = "refused"
			case errors.Is(err, lock.ErrOverload):
				end = "overload"
			}
			mu.Lock()
			defer mu.Unlock()
			if counts[end]++; err != nil && sample == nil {
				sample = err
			}
		})
	}
	close(start)
	all.Wait()
	return counts, sample
}

// rush is how many calls come at once.
const rush = min(30_000, crowdSize)

// Redis is idle, and tens of thousands of calls come at once: those that fail do so because they stood in line in this process.
func TestOwnQueueIsOverload(t *testing.T) {
	s := redistest.Start(t)
	for _, tt := range []struct {
		name string
		keys int
		wait time.Duration
		warm bool
	}{
		{"cold", 1 << 20, 0, false},
		{"warm", 1 << 20, 0, true},
		{"waiting", 1 << 20, 100 * time.Millisecond, true},
		{"few keys", 10, 100 * time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var counts map[string]int
			for range 3 { // where the processors are taken away, it can't be told from a silent Redis
				m := newMeters()
				c, err := redisson.Open("redis://"+s.Addr+"?pool_size=2", m.option, redisson.Timeout(200*time.Millisecond))
				check(t, err)
				if tt.warm {
					release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
				}
				var sample error
				counts, sample = ends(t, c, rush, func(i int) lock.Request { return lock.Request{Key: fmt.Sprint(i % tt.keys), Wait: tt.wait} })
				t.Log(counts, sample, m.points(t, "question.duration"))
				check(t, c.Close())
				if counts["outage"] <= rush/3 {
					return
				}
			}
			t.Errorf("%v: want overload", counts)
		})
	}
}

// Redis is silent, whether or not it has ever answered: that is an outage, also for those who stand in line behind the questions that were sent.
func TestSilentRedisIsAnOutage(t *testing.T) {
	t.Parallel()
	for _, warm := range []bool{false, true} {
		t.Run(fmt.Sprintf("warm %v", warm), func(t *testing.T) {
			t.Parallel()
			s, m := redistest.Start(t), newMeters()
			c, err := redisson.Open("redis://"+s.Addr+"?pool_size=2", m.option, redisson.Timeout(8*time.Second))
			check(t, err)
			defer func() { _ = c.Close() }()
			if warm {
				release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
			}
			s.Pause(t)
			var counts map[string]int
			var sample error
			var all sync.WaitGroup
			all.Go(func() {
				counts, sample = ends(t, c, 200, func(i int) lock.Request { return lock.Request{Key: fmt.Sprint(i), Wait: -1} })
			})
			if !warm { // a quick lane sends many of them together
				m.expect(t, "queued", map[string]int64{"": 198})
			}
			all.Wait()
			s.Resume(t)
			m.expect(t, "queued", nil)
			if counts["outage"] != 200 {
				t.Errorf("%v, such as %v: want 200 outages", counts, sample)
			}
			for labels, n := range m.points(t, "question.duration") {
				if n > 0 && strings.Contains(labels, "overload") {
					t.Errorf("%d questions with %s, want none", n, labels)
				}
			}
		})
	}
}

// Others have all connections of a pool that the client shares with them, for longer than anybody waits.
func TestLentOutPoolIsOverload(t *testing.T) {
	t.Parallel()
	for _, patience := range []time.Duration{200 * time.Millisecond, 5 * time.Second} {
		t.Run(fmt.Sprintf("pool timeout %v", patience), func(t *testing.T) {
			t.Parallel()
			s, m := redistest.Start(t), newMeters()
			const connections = 3
			rdb := s.Client(t, func(o *redis.Options) { o.PoolSize, o.PoolTimeout, o.MaxRetries = connections, patience, -1 })
			c := onClient(t, rdb, m.option, redisson.Timeout(time.Second))
			release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
			eventually(t, "the client has given its connections back", func() bool { s := rdb.PoolStats(); return s.IdleConns == s.TotalConns })
			admin := s.Client(t)
			var others sync.WaitGroup
			for range connections {
				others.Go(func() { rdb.BLPop(t.Context(), time.Minute, "list") })
			}
			eventually(t, "others have all connections", func() bool {
				return strings.Contains(admin.Info(t.Context(), "clients").Val(), fmt.Sprintf("blocked_clients:%d\r", connections))
			})
			m.expect(t, "connections", map[string]int64{"": connections})
			counts, sample := ends(t, c, 20, func(i int) lock.Request { return lock.Request{Key: fmt.Sprint(i)} })
			if counts["overload"]+counts["held"] != 20 { // go-redis has one connection more once somebody has waited for one in vain
				t.Errorf("%v, such as %v: want 20 of overload", counts, sample)
			}
			check(t, admin.RPush(t.Context(), "list", 1, 2, 3).Err())
			others.Wait()
			release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
			m.expect(t, "connections", nil)
		})
	}
}
