package redisson_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// A lone caller sends its questions itself: no other goroutine has to wake for it.
func TestLoneCallerAsksDirectly(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	direct, all := 0, 0
	rdb.AddHook(hook{func(redis.Cmder) {
		all++
		if strings.Contains(string(debug.Stack()), "TestLoneCallerAsksDirectly(") {
			direct++
		}
	}})
	l := onClient(t, rdb).Lock("k")
	for range 50 {
		mustUnlock(t, l, mustLock(t, l))
	}
	if all < 100 || direct < all/2 { // a busy machine takes its lane for slow now and then
		t.Errorf("%d of %d questions were asked directly", direct, all)
	}
}

// The first questions of a new client meet at go-redis, each with a connection of its own to set up. The race detector looks.
func TestFirstQuestionsMeet(t *testing.T) {
	s := redistest.Start(t)
	for range 120 {
		c := onClient(t, s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true }))
		var all sync.WaitGroup
		for i := range 40 {
			l := c.Lock(fmt.Sprint("k", i))
			all.Go(func() {
				time.Sleep(time.Duration(i%20) * 200 * time.Microsecond)
				mustUnlock(t, l, mustLock(t, l))
			})
		}
		all.Wait()
	}
}

// What many callers ask travels together.
func TestManyCallersShareRoundTrips(t *testing.T) {
	s := redistest.Start(t)
	admin, c := s.Client(t), newClient(t, s)
	const callers, pairs = 128, 20
	before := reads(t, admin)
	var all sync.WaitGroup
	for i := range callers {
		l := c.Lock(fmt.Sprint("k", i))
		all.Go(func() {
			for range pairs {
				mustUnlock(t, l, mustLock(t, l))
			}
		})
	}
	all.Wait()
	if n := reads(t, admin) - before; n > callers*pairs {
		t.Errorf("Redis read %d times for %d questions", n, 2*callers*pairs)
	}
}

// reads is how often the server has read from a connection.
func reads(t *testing.T, rdb *redis.Client) (n int) {
	info, err := rdb.InfoMap(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(info["Stats"]["total_reads_processed"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A server that becomes slow is asked a second time for what is on its way, and then no more often than before.
func TestServerBecomesSlow(t *testing.T) {
	for _, tt := range modes[:4] {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p, admin := s.Front(t), s.Client(t)
			l := onClient(t, s.Client(t, tt.change, func(o *redis.Options) { o.Addr = p.Addr })).Lock("k")
			for range 3 {
				mustUnlock(t, l, mustLock(t, l))
			}
			p.Delay(200 * time.Millisecond)
			before, _ := commands(t, admin)
			held := mustLock(t, l)
			if n, _ := commands(t, admin); n-before > 2 {
				t.Errorf("%d commands for a lock, want 2: the first answer came too late", n-before)
			}
			mustUnlock(t, l, held)
			eventually(t, "nothing is left", func() bool { return len(keys(t, admin)) == 0 })
		})
	}
}

// Another user of the pool gets its turn all the time.
func TestOthersGetConnections(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t, func(o *redis.Options) {
		o.PoolSize, o.PoolTimeout, o.ContextTimeoutEnabled = 2, 100*time.Millisecond, true
	})
	c := onClient(t, rdb)
	var all sync.WaitGroup
	for i := range 4 {
		l := c.Lock(fmt.Sprint("k", i))
		all.Go(func() {
			for range 100 {
				mustUnlock(t, l, mustLock(t, l))
			}
		})
	}
	all.Wait()
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("Ping of another user = %v", err)
	}
}
