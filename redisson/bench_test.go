package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// One goroutine, one lock, a private server on this machine. PING is the floor: a round trip.
func BenchmarkUncontended(b *testing.B) {
	s := redistest.Start(b)
	rdb := s.Client(b)
	b.Run("ping", func(b *testing.B) {
		for b.Loop() {
			if err := rdb.Ping(context.Background()).Err(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, honour := range []bool{true, false} {
		b.Run(fmt.Sprintf("lock+unlock/ContextTimeoutEnabled=%v", honour), func(b *testing.B) {
			benchmarkUncontended(b, s, func(o *redis.Options) { o.ContextTimeoutEnabled = honour })
		})
	}
	b.Run("lock+unlock/measured", func(b *testing.B) {
		benchmarkUncontended(b, s, func(o *redis.Options) { o.ContextTimeoutEnabled = true }, newMeters().option)
	})
}

func benchmarkUncontended(b *testing.B, s *redistest.Server, change func(*redis.Options), opts ...redisson.Option) {
	rdb := s.Client(b, change)
	l := onClient(b, rdb, opts...).Lock("k")
	mustUnlock(b, l, mustLock(b, l)) // loads the scripts
	before, _ := commands(b, rdb)
	b.ReportAllocs()
	for b.Loop() {
		mustUnlock(b, l, mustLock(b, l))
	}
	after, _ := commands(b, rdb)
	b.ReportMetric(float64(after-before)/float64(b.N), "commands/op")
	if n := len(keys(b, rdb)); n != 0 {
		b.Errorf("%d keys are left", n)
	}
}

// TestAllocations holds what an uncontended pair costs a client as Open makes it. With the race detector, pools forget some of what
// they were given.
func TestAllocations(t *testing.T) {
	s := redistest.Start(t)
	l := onClient(t, s.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })).Lock("k")
	pair := func() { mustUnlock(t, l, mustLock(t, l)) }
	for range 20 { // until its lane is quick, and it has what it keeps
		pair()
	}
	least := math.Inf(1)
	for try := 0; try < 10 && least > pairAllocations; try++ { // until nothing else of the process has allocated meanwhile
		least = min(least, testing.AllocsPerRun(50, pair))
	}
	if least > pairAllocations {
		t.Errorf("%v allocations a pair, want %v at most", least, pairAllocations)
	}
}

// Many goroutines, each with a lock of its own.
func BenchmarkOwnKeys(b *testing.B) {
	for _, goroutines := range []int{4, 32, 256} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			c, err := redisson.Open("redis://" + redistest.Start(b).Addr)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(goroutines)
			b.RunParallel(func(pb *testing.PB) {
				l := c.Lock(fmt.Sprint("k", n.Add(1)))
				for pb.Next() {
					mustUnlock(b, l, mustLock(b, l))
				}
			})
		})
	}
}

// A call under a hold of the lock.
func BenchmarkReentry(b *testing.B) {
	l := newClient(b, redistest.Start(b)).Lock("k")
	outer := mustLock(b, l)
	b.ReportAllocs()
	for b.Loop() {
		inner, err := l.Lock(outer)
		if err != nil {
			b.Fatal(err)
		}
		mustUnlock(b, l, inner)
	}
	mustUnlock(b, l, outer)
}

// Goroutines of one process take turns at one lock.
func BenchmarkHandover(b *testing.B) {
	for _, goroutines := range []int{2, 16, 128} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			s := redistest.Start(b)
			rdb := s.Client(b)
			l := newClient(b, s).Lock("k")
			mustUnlock(b, l, mustLock(b, l))
			before, _ := commands(b, rdb)
			b.SetParallelism(goroutines)
			turns := 0 // guarded by the lock
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					held := mustLock(b, l)
					turns++
					mustUnlock(b, l, held)
				}
			})
			after, _ := commands(b, rdb)
			b.ReportMetric(float64(after-before)/float64(b.N), "commands/op")
			if turns != b.N {
				b.Errorf("%d turns, want %d", turns, b.N)
			}
		})
	}
}

// Two clients take strict turns at one lock, as two processes do: each of them waits when the other one releases.
func BenchmarkTurns(b *testing.B) {
	s := redistest.Start(b)
	rdb := s.Client(b)
	here, there := newClient(b, s).Lock("k"), newClient(b, s).Lock("k")
	held := mustLock(b, here)
	type turn struct {
		held context.Context
		err  error
		at   time.Time
	}
	next := make(chan turn)
	var gaps []time.Duration
	before, _ := commands(b, rdb)
	for b.Loop() {
		go func() {
			held, err := there.Lock(b.Context())
			next <- turn{held, err, time.Now()}
		}()
		time.Sleep(2 * time.Millisecond) // so that it waits
		released := time.Now()
		mustUnlock(b, here, held)
		t := <-next
		if t.err != nil {
			b.Fatal(t.err)
		}
		gaps = append(gaps, t.at.Sub(released))
		here, there, held = there, here, t.held
	}
	after, _ := commands(b, rdb)
	mustUnlock(b, here, held)
	slices.Sort(gaps)
	b.ReportMetric(float64(gaps[len(gaps)/2].Nanoseconds()), "ns/turn")
	b.ReportMetric(float64(after-before)/float64(b.N), "commands/op")
}

// 200 goroutines wait for a lock that is held for a second each time: what that costs Redis.
func BenchmarkWaiting(b *testing.B) {
	s := redistest.Start(b)
	rdb := s.Client(b)
	holder, c := newClient(b, s).Lock("k"), newClient(b, s)
	var before, after int
	for b.Loop() {
		held := mustLock(b, holder)
		start, _ := commands(b, rdb)
		var waiters sync.WaitGroup
		for range 200 {
			waiters.Go(func() {
				if _, err := c.Acquire(context.Background(), lock.Request{Key: "k", Wait: time.Second}); !errors.Is(err, lock.ErrBusy) {
					b.Errorf("Acquire = %v, want ErrBusy", err)
				}
			})
		}
		waiters.Wait()
		end, _ := commands(b, rdb)
		before, after = before+start, after+end
		mustUnlock(b, holder, held)
	}
	b.ReportMetric(float64(after-before)/float64(b.N), "commands/op")
}

// What it costs to keep many locks: the time between a renewal and the next one is the watchdog's third.
func BenchmarkRenewal(b *testing.B) {
	s := redistest.Start(b)
	rdb := s.Client(b)
	const locks = 10_000
	c := newClient(b, s, redisson.WatchdogTimeout(9*time.Second))
	held := make([]context.Context, locks)
	hold := func(from, to int) {
		var all sync.WaitGroup
		for w := range 32 {
			all.Go(func() {
				for i := from + w; i < to; i += 32 {
					held[i] = mustLock(b, c.Lock(fmt.Sprint("k", i)))
				}
			})
		}
		all.Wait()
	}
	hold(0, locks/10) // the client has its connections then
	before := inUse()
	hold(locks/10, locks)
	perLock := (inUse() - before) / (locks - locks/10)
	if err := rdb.ConfigResetStat(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		<-time.After(6 * time.Second)
	}
	calls, busy := commandTime(b, rdb, "evalsha")
	renewals, _ := commandTime(b, rdb, "hget") // one each, in whatever script
	b.ReportMetric(float64(busy.Nanoseconds())/float64(renewals), "redis-ns/renewal")
	b.ReportMetric(float64(calls)/float64(renewals), "commands/renewal")
	for i, ctx := range held {
		if ctx.Err() != nil {
			b.Fatalf("lock %d was lost: %v", i, context.Cause(ctx))
		}
	}
	if n := len(keys(b, rdb)); n != locks {
		b.Errorf("%d keys, want %d", n, locks)
	}
	b.ReportMetric(perLock, "B/lock")
}

// inUse returns the memory of the program, after a garbage collection.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // pools forget at the second one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// commandTime says how often a command was run, and how long Redis was busy with it.
func commandTime(b *testing.B, rdb *redis.Client, name string) (calls int64, busy time.Duration) {
	b.Helper()
	for line := range strings.Lines(rdb.Info(b.Context(), "commandstats").Val()) {
		var usec int64
		if n, _ := fmt.Sscanf(line, "cmdstat_"+name+":calls=%d,usec=%d", &calls, &usec); n == 2 {
			return calls, time.Duration(usec) * time.Microsecond
		}
	}
	b.Fatalf("no statistics of %s", name)
	return 0, 0
}
