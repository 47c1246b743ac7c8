package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// Locks that are wanted together.

// questions notes the scripts that a client sends, and the most keys that one of them names.
type questions struct {
	mu      sync.Mutex
	scripts int
	most    int
	sent    int // pipelines, or single scripts
}

func (a *questions) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *questions) note(cmds ...redis.Cmder) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.scripts
	for _, cmd := range cmds {
		if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") {
			a.scripts++
			a.most = max(a.most, args[2].(int))
		}
	}
	a.sent += min(1, a.scripts-before)
}

func (a *questions) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.note(cmd)
		return next(ctx, cmd)
	}
}

func (a *questions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a.note(cmds...)
		return next(ctx, cmds)
	}
}

// since returns how many scripts there were, how often some were sent, and the most keys of one.
func (a *questions) since(f func()) (scripts, sent, most int) {
	a.mu.Lock()
	a.scripts, a.sent, a.most = 0, 0, 0
	a.mu.Unlock()
	f()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.scripts, a.sent, a.most
}

// list returns n requests with names of their own.
func list(prefix string, n int, r lock.Request) (rs []lock.Request) {
	for i := range n {
		r.Key = fmt.Sprintf("%s%04d", prefix, i)
		rs = append(rs, r)
	}
	return rs
}

// takeList takes the locks of rs, as a guard does that has them reserved.
func takeList(ctx context.Context, t *testing.T, c *redisson.Client, rs []lock.Request) []lock.Hold {
	t.Helper()
	ctx, n, leave, err := c.Reserve(ctx, rs)
	defer leave()
	if n != len(rs) || err != nil {
		t.Fatalf("Reserve = %d of %d, %v", n, len(rs), err)
	}
	return claimAll(ctx, t, c, rs)
}

func claimAll(ctx context.Context, t *testing.T, c *redisson.Client, rs []lock.Request) (holds []lock.Hold) {
	t.Helper()
	for _, r := range rs {
		h, err := c.Acquire(ctx, r)
		if err != nil {
			t.Fatalf("Acquire of %q: %v", r.Key, err)
		}
		holds, ctx = append(holds, h), h.Context()
	}
	return holds
}

// A list costs as many round trips as one lock, and a script for fifty keys; so does a MultiLock.
func TestListIsOneQuestion(t *testing.T) {
	s := redistest.Start(t)
	a, rdb := new(questions), s.Client(t)
	rdb.AddHook(a)
	c := onClient(t, rdb, redisson.WatchdogTimeout(time.Hour), redisson.Timeout(time.Minute)) // nothing is renewed or repeated meanwhile
	acquire(t.Context(), t, c, lock.Request{Key: "held"})                                     // so it has begun to listen, and asked about all holds
	eventually(t, "listens", func() bool { return len(rdb.PubSubChannels(t.Context(), "latchkey_client:*").Val()) > 0 })
	multi := multiLock(t, namedLocks(c, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")...)
	ways := map[string]struct {
		scripts int
		do      func()
	}{
		"list of 10": {2, func() {
			check(t, c.ReleaseAll(t.Context(), takeList(t.Context(), t, c, list("k", 10, lock.Request{}))))
		}},
		"list of 1000": {40, func() {
			check(t, c.ReleaseAll(t.Context(), takeList(t.Context(), t, c, list("k", 1000, lock.Request{}))))
		}},
		"multilock":     {2, func() { mustGive(t, mustTake(t, multi), multi) }},
		"list of kinds": {5, func() { check(t, c.ReleaseAll(t.Context(), takeList(t.Context(), t, c, kinds("k")))) }},
	}
	for range 4 { // loads the scripts, and proves where keys are
		for _, way := range ways {
			way.do()
		}
	}
	for name, way := range ways {
		scripts, sent, most := a.since(way.do)
		if scripts > way.scripts || sent > 2 || most > 100 {
			t.Errorf("%s: %d scripts, want %d, sent %d times, want 2, with up to %d keys", name, scripts, way.scripts, sent, most)
		}
	}
}

// kinds returns a request of each kind, but for Spin.
func kinds(prefix string) (rs []lock.Request) {
	for _, r := range allKinds() {
		if r.Key = prefix + r.Kind.String(); r.Kind != lock.Spin {
			r.Wait = 0
			rs = append(rs, r)
		}
	}
	return rs
}

// Random locks, some of which others hold or something else is at: a caller who does not wait gets all or none, another one those before the first that
// can't be had, as if each had been asked for alone. What is given back leaves everything as it was.
func TestReserveAtRandom(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, c, others := s.Client(t), newClient(t, s), newClient(t, s)
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		check(t, rdb.FlushDB(t.Context()).Err())
		check(t, rdb.Set(t.Context(), "wrong", "text", 0).Err())
		check(t, rdb.RPush(t.Context(), "worse", "text").Err())
		for i := range 8 {
			if rnd.IntN(6) == 0 {
				acquire(t.Context(), t, others, randomRequest(rnd, fmt.Sprint("k", i)))
			}
		}
		var rs []lock.Request
		for _, i := range rnd.Perm(10)[:1+rnd.IntN(9)] {
			rs = append(rs, randomRequest(rnd, []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "wrong", "worse"}[i%(8+2*rnd.IntN(2))]))
		}
		rs = distinct(rs)
		wait := time.Duration(rnd.IntN(2)) * 10 * time.Millisecond
		want := len(rs)
		var why error
		for i := range rs {
			rs[i].Wait = wait
			if err := c.Peek(t.Context(), rs[i]); err != nil && i < want {
				want, why = i, err
			}
		}
		if wait == 0 && want < len(rs) {
			want = 0
		}
		before := dump(t, rdb)
		ctx, n, leave, err := c.Reserve(t.Context(), rs)
		if n != want || err != nil && !errors.Is(err, lock.ErrBusy) || wait == 0 && errors.Is(why, lock.ErrBusy) != (err != nil) {
			t.Fatalf("seed %d: Reserve of %v = %d, %v, want %d and %v", seed, rs, n, err, want, why)
		}
		if n == 0 && !slices.Equal(dump(t, rdb), before) {
			t.Fatalf("seed %d: %q, where %q was", seed, dump(t, rdb), before)
		}
		got := rnd.IntN(n + 1)
		holds := claimAll(ctx, t, c, rs[:got])
		leave()
		if got > 0 {
			check(t, c.ReleaseAll(t.Context(), holds))
		}
		eventually(t, fmt.Sprintf("seed %d: nothing is left of %v", seed, rs), func() bool { return slices.Equal(dump(t, rdb), before) })
	}
}

func randomRequest(rnd *rand.Rand, key string) lock.Request {
	return lock.Request{Key: key, Kind: lock.Kind(rnd.IntN(int(lock.Permit) + 1)), Limit: 1 + rnd.IntN(2)}
}

func distinct(rs []lock.Request) []lock.Request {
	seen := map[string]bool{}
	return slices.DeleteFunc(rs, func(r lock.Request) bool {
		again := seen[r.Key]
		seen[r.Key] = true
		return again
	})
}

// dump is what there is in Redis, but for counters of tokens, which only grow, and the ends of permits, which are renewed.
func dump(t *testing.T, rdb *redis.Client) (all []string) {
	t.Helper()
	for _, key := range keys(t, rdb) {
		if strings.HasPrefix(key, "redisson_lock_token:") {
			continue
		}
		if strings.HasSuffix(key, ":timeout") {
			all = append(all, fmt.Sprint(key, rdb.ZRange(t.Context(), key, 0, -1).Val()))
			continue
		}
		text, err := rdb.Dump(t.Context(), key).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			t.Fatal(err)
		}
		all = append(all, key+" "+text)
	}
	slices.Sort(all)
	return all
}

// An answer that is lost is asked for again, of what has run as well; and of a question that fails nothing is left.
func TestReserveWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	for name, n := range map[string]int{"one": 4, "many": 120} {
		t.Run(name, func(t *testing.T) {
			c, p := behind(t, s, redisson.Timeout(time.Second))
			rs := list(name, n, lock.Request{})
			check(t, c.ReleaseAll(t.Context(), takeList(t.Context(), t, c, rs)))
			p.CutReply("evalsha", 1)
			check(t, c.ReleaseAll(t.Context(), takeList(t.Context(), t, c, rs)))
			p.CutReply("evalsha", 1000)
			_, got, leave, err := c.Reserve(t.Context(), rs)
			if got != 0 || err == nil {
				t.Errorf("Reserve without an answer = %d, %v", got, err)
			}
			p.CutReply("evalsha", 0)
			leave()
			eventually(t, "nothing is left", func() bool { return len(keys(t, rdb)) == 0 })
		})
	}
}

// A reserved lock whose lease is over before it is acquired is asked for like any other.
func TestReservedLeaseEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	rs := list("k", 2, lock.Request{Lease: 200 * time.Millisecond, Wait: time.Second})
	ctx, n, leave, err := c.Reserve(t.Context(), rs)
	defer leave()
	if n != 2 || err != nil {
		t.Fatalf("Reserve = %d, %v", n, err)
	}
	time.Sleep(250 * time.Millisecond)
	other := acquire(t.Context(), t, newClient(t, s), lock.Request{Key: "k0000"})
	expectHeldByOthers(ctx, t, "beside another holder", c, lock.Request{Key: "k0000", Lease: 200 * time.Millisecond})
	release(t, other)
	release(t, acquire(ctx, t, c, rs[1]))
}

// parted sends each script to one of several servers, by the first of its keys, as some proxies do.
type parted []*redis.Client

func (p parted) of(cmd redis.Cmder) *redis.Client {
	if key, ok := cmd.Args()[min(3, len(cmd.Args())-1)].(string); ok {
		return p[crc32.ChecksumIEEE([]byte(key))%uint32(len(p))]
	}
	return p[0]
}

func (p parted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (p parted) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return p.of(cmd).Process(ctx, cmd) }
}

func (p parted) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) (err error) {
		for _, cmd := range cmds {
			err = errors.Join(err, p.of(cmd).Process(ctx, cmd))
		}
		return err
	}
}

// A proxy may send a script where the first of its keys is. Locks that are taken there exclude nobody who asks for one alone, so they are not
// relied on.
func TestReserveThroughAProxyThatParts(t *testing.T) {
	t.Parallel()
	servers := parted{redistest.Start(t).Client(t), redistest.Start(t).Client(t)}
	open := func() *redisson.Client {
		rdb := redistest.Start(t).Client(t)
		rdb.AddHook(servers)
		return onClient(t, rdb)
	}
	for i := range 20 {
		c, other := open(), open()
		rs := list(fmt.Sprint("list", i, "-"), 6, lock.Request{Wait: 5 * time.Second})
		ctx, _, leave, err := c.Reserve(t.Context(), rs)
		check(t, err)
		holds := claimAll(ctx, t, c, rs)
		leave()
		for _, r := range rs {
			r.Wait = 0
			expectHeldByOthers(t.Context(), t, r.Key, other, r)
		}
		check(t, c.ReleaseAll(t.Context(), holds))
	}
}
