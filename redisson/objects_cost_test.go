package redisson_test

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// What a search costs.

// strangersKeys is how many keys of others there are beside the locks: LATCHKEY_TEST_KEYS=1000000 makes it a million.
func strangersKeys() int {
	if n, err := strconv.Atoi(os.Getenv("LATCHKEY_TEST_KEYS")); err == nil {
		return n
	}
	return 200_000
}

// scanPause is how long what was found waits for more, at least.
const scanPause = 250 * time.Millisecond

func processCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	check(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serverCPU is how much time of a processor the server has used.
func serverCPU(tb testing.TB, s *redistest.Server) (total time.Duration) {
	tb.Helper()
	for line := range strings.Lines(s.Client(tb).Info(tb.Context(), "cpu").Val()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			check(tb, err)
			total += time.Duration(seconds * float64(time.Second))
		}
	}
	return total
}

// searched is a search among many keys of others.
type searched struct {
	objects []redisson.Object
	last    redisson.Progress
	took    time.Duration
	cpu     time.Duration // of the servers and of this process
	heap    uint64        // the most that was in use beyond what was before
}

func searchAmong(t *testing.T, c *redisson.Client, servers []*redistest.Server) (s searched) {
	t.Helper()
	cpu := func() time.Duration {
		total := processCPU(t)
		for _, s := range servers {
			total += serverCPU(t, s)
		}
		return total
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	before, steps := mem.HeapAlloc, 0
	used, start := cpu(), time.Now()
	watch := func(p redisson.Progress) {
		if p.Keys < s.last.Keys || p.Keys > p.Total || p.Questions < s.last.Questions {
			t.Errorf("after %+v it has come to %+v", s.last, p)
		}
		s.last = p
		if steps++; steps%100 == 0 {
			runtime.ReadMemStats(&mem)
			s.heap = max(s.heap, mem.HeapAlloc-min(before, mem.HeapAlloc))
		}
	}
	for o, err := range c.Objects(t.Context(), "", redisson.OnProgress(watch)) {
		check(t, err)
		s.objects = append(s.objects, o)
	}
	s.took, s.cpu = time.Since(start), cpu()-used
	return s
}

// expectCheap fails if a search among n keys of others takes more than a second for 100,000 of them, much memory, or long of Redis at a time.
func expectCheap(t *testing.T, c *redisson.Client, n int, want []string, servers ...*redistest.Server) {
	t.Helper()
	var got searched
	slow := redistest.Slow(t, func() { got = searchAmong(t, c, servers) }, servers...)
	expectObjects(t, got.objects, want...)
	limit := time.Duration(n) * (time.Second / 100_000) * slower
	t.Logf("%d keys took %v, %v of it at work; heap %d KiB; %+v", n, got.took, got.cpu, got.heap>>10, got.last)
	if got.cpu > limit || got.took > 10*limit { // other tests may have the machine, too
		t.Errorf("%d keys take %v, %v of it at work", n, got.took, got.cpu)
	}
	if len(slow) > 0 {
		t.Errorf("%d commands were slow: %.2000q", len(slow), slow)
	}
	if got.heap > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", got.heap>>20)
	}
	if most := 30 + 4*int(got.took/scanPause); got.last.Questions > most { // one for what was found meanwhile, and others for its clients
		t.Errorf("%d questions, want %d at most", got.last.Questions, most)
	}
	if total := int64(n + len(want)); got.last.Total != total || got.last.Keys != total {
		t.Errorf("the search ends with %+v, want %d keys", got.last, total)
	}
}

func TestObjectsAmongManyOthers(t *testing.T) {
	n := strangersKeys()
	t.Run("one server", func(t *testing.T) {
		s := redistest.Start(t)
		s.Fill(t, n)
		want := manyLocks(t, s.Client(t), 100)
		expectCheap(t, newClient(t, s), n, want, s)
	})
	t.Run("cluster", func(t *testing.T) {
		cl := redistest.StartCluster(t, 0)
		n -= n % len(cl.Masters)
		cl.Fill(t, n)
		want := manyLocks(t, cl.Client(t), 100)
		expectCheap(t, onClient(t, cl.Client(t)), n, want, servers(cl)...)
	})
}

func servers(cl *redistest.Cluster) (all []*redistest.Server) {
	for _, m := range cl.Masters {
		all = append(all, m.Server)
	}
	return all
}

// manyLocks makes locks of 50 clients that ask nothing.
func manyLocks(tb testing.TB, rdb redis.UniversalClient, n int) (keys []string) {
	tb.Helper()
	pipe := rdb.Pipeline()
	for i := range n {
		keys = append(keys, fmt.Sprint("order:", i))
		pipe.HSet(tb.Context(), keys[i], holderNumber(i%50), 1)
		pipe.Expire(tb.Context(), keys[i], time.Hour)
	}
	check(tb, second(pipe.Exec(tb.Context())))
	return keys
}

func holderNumber(i int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i) }

// A search asks few questions, however many locks there are, and says how many. The count is that of the servers.
func TestObjectsAsksLittle(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	manyLocks(t, s.Client(t), 200)
	expectQuestions(t, newClient(t, s), 6, 200, s) // two for all locks, and one each for their clients' names, twice, the channels and the size
	cl := redistest.StartCluster(t, 0)
	manyLocks(t, cl.Client(t), 200)
	expectQuestions(t, onClient(t, cl.Client(t)), 18, 200, servers(cl)...)
}

// The scripts for a hundred objects are one round trip, and one more for the names of their clients.
func TestInspectKeysTravelTogether(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	keys, rdb := manyLocks(t, s.Client(t), 200), s.Client(t)
	c, sent := onClient(t, rdb), batches{make(chan int, 1000)}
	look := func() {
		for _, err := range c.InspectKeys(t.Context(), keys) {
			check(t, err)
		}
	}
	look() // loads the scripts
	rdb.AddHook(sent)
	look()
	close(sent.sizes)
	var sizes []int
	scripts := 0
	for n := range sent.sizes {
		sizes, scripts = append(sizes, n), scripts+n
	}
	if len(sizes) > 4 || scripts < len(keys) {
		t.Errorf("%d locks were looked at in pipelines of %v scripts, want 4 at most", len(keys), sizes)
	}
}

func expectQuestions(t *testing.T, c *redisson.Client, most, locks int, servers ...*redistest.Server) {
	t.Helper()
	asked := func() (n int) {
		for _, s := range servers {
			total, _ := commands(t, s.Client(t))
			n += total - scans(t, s)
		}
		return n
	}
	expect := func(what string, look func(redisson.SearchOption) int) {
		t.Helper()
		look(redisson.OnProgress(func(redisson.Progress) {})) // loads the scripts
		var p redisson.Progress
		before := asked()
		if n := look(redisson.OnProgress(func(now redisson.Progress) { p = now })); n != locks {
			t.Errorf("%s: %d locks, want %d", what, n, locks)
		}
		if n := asked() - before; p.Questions > most || n > p.Questions+locks {
			t.Errorf("%s: %d questions and %d commands for %d locks, want %d questions at most", what, p.Questions, n, locks, most)
		}
		if p.Keys != int64(locks) || p.Total != int64(locks) {
			t.Errorf("%s: %+v", what, p)
		}
	}
	var keys []string
	expect("Objects", func(o redisson.SearchOption) int {
		keys = keys[:0]
		for o, err := range c.Objects(t.Context(), "", o) {
			check(t, err)
			keys = append(keys, o.Key)
		}
		return len(keys)
	})
	expect("InspectKeys", func(o redisson.SearchOption) (n int) {
		for o, err := range c.InspectKeys(t.Context(), keys, o) {
			if check(t, err); len(o.Holders) == 1 {
				n++
			}
		}
		return n
	})
}

// scans is how often the server was asked for a part of its keys.
func scans(tb testing.TB, s *redistest.Server) (n int) {
	tb.Helper()
	return commandCalls(tb, s.Client(tb))["scan"]
}

// Each object is looked at by itself, and a part of a large one, so that none of them keeps Redis from others for long.
func TestLargeObjectsAreShort(t *testing.T) {
	s := redistest.Start(t)
	rdb, ctx := s.Client(t), t.Context()
	want := largeObjects(t, rdb)
	c := newClient(t, s)
	objects(t, c, "") // loads the scripts
	var got []redisson.Object
	slow := redistest.Slow(t, func() {
		got = got[:0]
		for o, err := range c.Objects(ctx, "") {
			check(t, err)
			got = append(got, o)
		}
	}, s)
	if expectObjects(t, got, slices.Collect(maps.Keys(want))...); len(slow) > 0 {
		t.Errorf("%d commands were slow: %.2000q", len(slow), slow)
	}
	for _, o := range got {
		if n := want[o.Key]; len(o.Holders)+len(o.Queue) < n || o.HolderCount+o.QueueLength < int64(n) {
			t.Errorf("%s has %d holders and %d waiters, want %d", o.Key, len(o.Holders), len(o.Queue), n)
		}
	}
}

// largeObjects makes some, and returns how many holders and waiters are listed of each at least.
func largeObjects(tb testing.TB, rdb redis.UniversalClient) map[string]int {
	tb.Helper()
	ctx, pipe, want := tb.Context(), rdb.Pipeline(), map[string]int{}
	for i := range 10 {
		rw, again, fair, sem := fmt.Sprint("rw", i), fmt.Sprint("again", i), fmt.Sprint("fair", i), fmt.Sprint("sem", i)
		pipe.HSet(ctx, rw, "mode", "read")
		pipe.HSet(ctx, again, "mode", "read")
		pipe.HSet(ctx, fair, holderNumber(0), 1)
		pipe.Set(ctx, sem, 1, 0)
		for j := range 1000 {
			id := holderNumber(j)
			pipe.HSet(ctx, rw, id, 1)
			pipe.HSet(ctx, again, id, 16)
			pipe.RPush(ctx, "redisson_lock_queue:{"+fair+"}", id)
			pipe.ZAdd(ctx, "redisson_lock_timeout:{"+fair+"}", redis.Z{Score: float64(j), Member: id})
			pipe.ZAdd(ctx, "{"+sem+"}:timeout", redis.Z{Score: 1e15, Member: id})
		}
		want[rw], want[again], want[fair], want[sem] = 990, 100, 1001, 1000
		check(tb, second(pipe.Exec(ctx)))
	}
	return want
}
