package redisson_test

import (
	"context"
	"errors"
	"fmt"
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

// scriptsRun is how many scripts a server has run.
func scriptsRun(t *testing.T, rdb redis.UniversalClient) (n int) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(context.Background(), "commandstats").Val()) {
		var calls int
		if _, rest, ok := strings.Cut(line, "cmdstat_evalsha:calls="); ok {
			_, _ = fmt.Sscanf(rest, "%d", &calls)
			n += calls
		}
	}
	return n
}

// herdLimit is how many of a herd may have a permit.
const herdLimit = 4

// herd has clients take a lock in turns for a while, each for a millisecond and away for a time in between, of which the last is that of the first
// client. It returns how often each had it, the longest wait, and how many holds were lost.
func herd(t *testing.T, clients []*redisson.Client, kind lock.Kind, d time.Duration, away ...time.Duration) (turns []int, longest time.Duration, lost int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var inside atomic.Int32
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns = make([]int, len(clients))
	for i, c := range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				h, err := c.Acquire(ctx, lock.Request{Key: "hot", Kind: kind, Wait: -1, Limit: herdLimit})
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				waited := time.Since(began)
				if n := inside.Add(1); n > 1 && kind != lock.Permit || n > herdLimit {
					t.Errorf("%d hold the lock", n)
				}
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				err = h.Release(context.Background())
				mu.Lock()
				if errors.Is(err, lock.ErrLost) {
					lost++
				} else if err != nil {
					t.Error(err)
				}
				turns[i]++
				longest = max(longest, waited)
				mu.Unlock()
				if i > 0 {
					time.Sleep(away[0])
				} else {
					time.Sleep(away[len(away)-1])
				}
			}
		})
	}
	wg.Wait()
	return turns, longest, lost
}

func sum(turns []int) (n int) {
	for _, k := range turns {
		n += k
	}
	return n
}

// A release wakes one of many clients, so an acquisition costs as much as with few: the question that finds the lock held and gets in line, the one that
// takes it, and the release.
func TestReleaseWakesOne(t *testing.T) {
	s := redistest.Start(t)
	clients := make([]*redisson.Client, 40)
	for i := range clients {
		clients[i] = newClient(t, s)
	}
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fenced, lock.Permit} {
		t.Run(kind.String(), func(t *testing.T) {
			before := scriptsRun(t, s.Client(t))
			turns, longest, lost := herd(t, clients, kind, 2*time.Second, 2*time.Millisecond)
			n := sum(turns)
			each := float64(scriptsRun(t, s.Client(t))-before) / float64(n)
			t.Logf("%d acquisitions, %.2f scripts each, longest wait %v", n, each, longest)
			if each > 6 || each > 3.6 && n > 500 || lost > 0 { // on a busy machine, some ask once more
				t.Errorf("an acquisition took %.2f scripts, and %d were lost", each, lost)
			}
			for i, k := range turns {
				if k == 0 {
					t.Errorf("client %d was never served", i)
				}
			}
		})
	}
}

// listed is how many stand in the wake list of the lock "hot".
func listed(t *testing.T, rdb redis.UniversalClient) int64 {
	t.Helper()
	return rdb.ZCount(t.Context(), "latchkey_wake:{hot}", "(0", "+inf").Val()
}

// Half of those in line stand still, one behind the other: their connections are alive, and they hear nothing. The free lock waits for them once, and
// the others then get it one after the other.
func TestStoppedClientsStandInLine(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	first := newClient(t, s).Lock("hot")
	held := mustLock(t, first)
	var proxies []*redistest.Proxy
	served := make(chan time.Time, 40)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 40 {
		var c *redisson.Client
		if i >= 20 {
			c = newClient(t, s)
		} else {
			p := s.Front(t)
			proxies = append(proxies, p)
			c = onClient(t, redis.NewClient(&redis.Options{Addr: p.Addr}))
		}
		wg.Go(func() {
			h, err := c.Acquire(ctx, lock.Request{Key: "hot", Wait: -1})
			if err != nil {
				return
			}
			served <- time.Now()
			_ = h.Release(context.Background())
		})
		eventually(t, "it is in line", func() bool { return listed(t, rdb) == int64(i+1) })
	}
	for _, p := range proxies {
		p.Freeze()
	}
	var long []time.Duration
	last := time.Now()
	mustUnlock(t, first, held)
	for range 20 {
		select {
		case at := <-served:
			if gap := at.Sub(last); gap > 400*time.Millisecond {
				long = append(long, gap)
			}
			last = at
		case <-time.After(5 * time.Second):
			t.Fatal("a free lock waits for those who stand still")
		}
	}
	t.Log("long gaps:", long)
	if len(long) > 1 || len(long) == 1 && long[0] > 1500*time.Millisecond {
		t.Errorf("the free lock waited %v", long)
	}
	cancel()
	for _, p := range proxies {
		p.Thaw()
	}
}

// A client that comes back at once has no more turns than it waits for.
func TestGreedyClientWaits(t *testing.T) {
	s := redistest.Start(t)
	clients := make([]*redisson.Client, 20)
	for i := range clients {
		clients[i] = newClient(t, s)
	}
	turns, longest, lost := herd(t, clients, lock.Exclusive, 2*time.Second, 2*time.Millisecond, 0)
	n := sum(turns)
	turn := 2 * time.Second / time.Duration(n)
	t.Logf("%d turns, the greedy one has %d, longest wait %v, that is %.1f times all turns", n, turns[0], longest, float64(longest)/float64(turn*20))
	for i, k := range turns {
		if k < n/20/3 {
			t.Errorf("client %d had %d of %d turns", i, k, n)
		}
	}
	if turns[0] > n/4 || lost > 0 {
		t.Errorf("the greedy client had %d of %d turns, %d were lost", turns[0], n, lost)
	}
}

// standIn has a client of its own wait for the lock "hot", until it stands in the wake list behind others.
func standIn(t *testing.T, ctx context.Context, c *redisson.Client, rdb redis.UniversalClient, place int64) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := c.Acquire(ctx, lock.Request{Key: "hot", Wait: -1})
		done <- err
	}()
	eventually(t, "it is in line", func() bool { return listed(t, rdb) == place })
	return done
}

// Who gives up passes on: to the next in line, and to Redisson's channel if there is none.
func TestWhoGivesUpPassesOn(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	rdb.HSet(t.Context(), "hot", "11111111-1111-4111-8111-111111111111:2305843009213693952", 1)
	rdb.PExpire(t.Context(), "hot", time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	first := standIn(t, ctx, newClient(t, s), rdb, 1)
	ctx2, cancel2 := context.WithCancel(t.Context())
	defer cancel2()
	second := standIn(t, ctx2, newClient(t, s), rdb, 2)
	rdb.Del(t.Context(), "hot") // and nobody is told
	cancel()
	over(first)
	select {
	case err := <-second:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Second):
		t.Fatal("the first has passed nothing on")
	}

	ctx, cancel = context.WithCancel(t.Context())
	third := standIn(t, ctx, newClient(t, s), rdb, 1)
	java := rdb.Subscribe(t.Context(), "redisson_lock__channel:{hot}")
	defer java.Close()
	if _, err := java.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb.Del(t.Context(), "hot")
	cancel()
	over(third)
	select {
	case m := <-java.Channel():
		if m.Payload != "0" {
			t.Errorf("Redisson's channel was told %q", m.Payload)
		}
	case <-time.After(time.Second):
		t.Error("Redisson's channel was told nothing")
	}
	eventually(t, "nobody is in the list", func() bool { return rdb.Exists(t.Context(), "latchkey_wake:{hot}").Val() == 0 })

	rdb.HSet(t.Context(), "hot", "11111111-1111-4111-8111-111111111111:1", 1) // a thread of Java, whose release leaves the list alone
	ctx, cancel = context.WithCancel(t.Context())
	fourth := standIn(t, ctx, newClient(t, s), rdb, 1)
	rdb.ZAdd(t.Context(), "latchkey_wake:{hot}", redis.Z{Score: -float64(time.Now().UnixMicro()), Member: ""}) // somebody was told
	cancel()
	over(fourth)
	eventually(t, "no note is left behind", func() bool { return rdb.Exists(t.Context(), "latchkey_wake:{hot}").Val() == 0 })
}

// The second in line has a lock soon that the first does not come for.
func TestSecondInLineLooks(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	holder := newClient(t, s).Lock("hot")
	held := mustLock(t, holder)
	p := s.Front(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := standIn(t, ctx, onClient(t, redis.NewClient(&redis.Options{Addr: p.Addr})), rdb, 1)
	second := standIn(t, ctx, newClient(t, s), rdb, 2)
	p.Freeze()
	began := time.Now()
	mustUnlock(t, holder, held)
	select {
	case err := <-second:
		if took := time.Since(began); err != nil || took < 20*time.Millisecond {
			t.Errorf("the second in line got the lock after %v, %v", took, err)
		}
	case <-time.After(time.Second):
		t.Error("the second in line does not look")
	}
	cancel()
	p.Thaw()
	over(first)
}

// Redisson's channel hears of releases as long as somebody of Redisson listens: not of each where many are in line, but of one in 17 at least.
func TestRedissonHearsOfReleases(t *testing.T) {
	s := redistest.Start(t)
	java := s.Client(t).Subscribe(t.Context(), "redisson_lock__channel:{hot}")
	defer java.Close()
	if _, err := java.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := java.Channel(redis.WithChannelSize(10_000))
	clients := make([]*redisson.Client, 12)
	for i := range clients {
		clients[i] = newClient(t, s)
	}
	turns, _, _ := herd(t, clients, lock.Exclusive, time.Second, 2*time.Millisecond)
	n, told := sum(turns), len(messages)
	t.Logf("%d of %d releases were heard", told, n)
	if told < n/17 || told > n/2 {
		t.Errorf("%d of %d releases were heard", told, n)
	}
	for range told {
		if m := <-messages; m.Payload != "0" && m.Payload != "00" {
			t.Fatalf("Redisson's channel was told %q", m.Payload)
		}
	}
}

// playFailover has a herd of clients take turns before a failover, while it comes, and after it.
func playFailover(t *testing.T, open func() *redisson.Client, servers []*redis.Client, failover func()) {
	t.Helper()
	clients := make([]*redisson.Client, 16)
	for i := range clients {
		clients[i] = open()
	}
	count := func() (n int) {
		for _, s := range servers {
			n += scriptsRun(t, s)
		}
		return n
	}
	before := count()
	turns, longest, lost := herd(t, clients, lock.Exclusive, 2*time.Second, 2*time.Millisecond)
	each := float64(count()-before) / float64(sum(turns))
	t.Logf("%d acquisitions, %.2f scripts each, longest wait %v", sum(turns), each, longest)
	if each > 4 && sum(turns) > 100 || lost > 0 { // of fewer, most is what waiters ask by the clock
		t.Errorf("an acquisition took %.2f scripts, and %d were lost", each, lost)
	}
	changed := make(chan struct{})
	time.AfterFunc(time.Second, func() { defer close(changed); failover() })
	turns, longest, lost = herd(t, clients, lock.Exclusive, 8*time.Second, 2*time.Millisecond)
	<-changed
	t.Logf("%d acquisitions in 8s with a failover, longest wait %v, %d were lost", sum(turns), longest, lost)
	for range 3 { // on a busy machine, few have had their turn
		if slices.Contains(turns, 0) {
			more, _, _ := herd(t, clients, lock.Exclusive, 4*time.Second, 2*time.Millisecond)
			for i, k := range more {
				turns[i] += k
			}
		}
	}
	for i, k := range turns {
		if k == 0 {
			t.Errorf("client %d was never served", i)
		}
	}
	few := min(20, sum(turns)/32) // a quarter of what they had in a second with the failover, on a busy machine
	for try := 1; ; try++ {       // of which one comes while others leave the machine alone
		turns, longest, lost = herd(t, clients, lock.Exclusive, time.Second, 2*time.Millisecond)
		if longest > 2*time.Second || lost > 0 || sum(turns) < few && try == 5 {
			t.Errorf("%d acquisitions a second after it, longest wait %v", sum(turns), longest)
		}
		if sum(turns) >= few || try == 5 {
			return
		}
	}
}

// Where messages reach their listeners in another way, and a failover comes in between, a release still wakes one, and everybody is served.
func TestHerdsElsewhere(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]redisson.ShardedMode{"sharded": redisson.ShardedAuto, "classic": redisson.ShardedOff} {
		t.Run(name, func(t *testing.T) {
			c := redistest.StartCluster(t, 1)
			i, _ := c.Owner(t, "hot")
			var servers []*redis.Client
			for _, n := range append(c.Masters, c.Replicas...) {
				servers = append(servers, n.Admin)
			}
			open := func() *redisson.Client { return member(t, c, redisson.Timeout(patience), redisson.ShardedPubSub(mode)) }
			playFailover(t, open, servers, func() { c.Failover(t, i) })
		})
	}
	// A failover of Sentinel may lose the last release, and with it the lock for as long as it lasts. A master that an operator replaces would take
	// locks for a while that nobody confirms, but for min-replicas-to-write.
	t.Run("sentinel", func(t *testing.T) {
		s := redistest.StartSentinels(t)
		playFailover(t, func() *redisson.Client {
			return onClient(t, s.Client(t), redisson.Timeout(4*time.Second), redisson.WatchdogTimeout(4*time.Second))
		}, []*redis.Client{s.Master.Client(t)}, func() {
			if err := s.Master.Client(t).ConfigSet(t.Context(), "min-replicas-to-write", "1").Err(); err != nil {
				t.Error(err)
			}
			s.Failover(t)
		})
	})
}

// The message that it is its turn comes before the answer that somebody has the lock: the client asks again.
func TestTurnThatComesDuringAQuestion(t *testing.T) {
	s := redistest.Start(t)
	p := s.Front(t)
	holder := newClient(t, s).Lock("hot")
	held := mustLock(t, holder)
	answer := p.KeepBackReply(naming("latchkey_wake:{hot}"), 1) // the server does not know the script at first
	waiter := onClient(t, redis.NewClient(&redis.Options{Addr: p.Addr}))
	_ = waiter.Ping(t.Context())
	got := lockAsync(t, waiter.Lock("hot"))
	answer.Await(t)
	mustUnlock(t, holder, held)
	time.Sleep(15 * time.Millisecond) // for the message, on another connection; who waits for an answer for 50 ms asks again
	answer.Deliver(t)
	expectHeldWithin(t, waiter.Lock("hot"), got, time.Second)
}
