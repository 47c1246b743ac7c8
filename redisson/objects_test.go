package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func objects(tb testing.TB, c *redisson.Client, pattern string) (all []redisson.Object) {
	tb.Helper()
	for o, err := range c.Objects(tb.Context(), pattern) {
		if err != nil {
			tb.Fatalf("Objects(%q): %v", pattern, err)
		}
		all = append(all, o)
	}
	return all
}

func expectObjects(tb testing.TB, got []redisson.Object, want ...string) {
	tb.Helper()
	var keys []string
	for _, o := range got {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		tb.Errorf("there are %.999q, want %.999q", keys, want)
	}
}

// oddNames are names that are hard to pass on.
var oddNames = []string{"order:\xff\xfe", "order:\x00\n\x1b[31m", "order:{7}", "{order}:8", "order:" + strings.Repeat("x", 10<<10), "order:[a]*?\\", "order:ключ"}

func TestObjects(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, ctx := newClient(t, s), t.Context()
	strangers(t, s.Client(t))
	want := slices.Clone(oddNames)
	for i, name := range oddNames {
		kind := []lock.Kind{lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Permit, lock.Fenced}[i%6]
		acquire(ctx, t, c, lock.Request{Key: name, Kind: kind, Limit: 1})
	}
	for i := range 2000 {
		name := fmt.Sprint("order:", i)
		want = append(want, name)
		acquire(ctx, t, c, lock.Request{Key: name})
	}
	acquire(ctx, t, c, lock.Request{Key: "invoice:1"})
	acquire(ctx, t, c, lock.Request{Key: "invoice:2", Kind: lock.Permit, Limit: 1})
	expectObjects(t, objects(t, c, "*order*"), want...)
	expectObjects(t, objects(t, c, "invoice:[1-2]"), "invoice:1", "invoice:2")
	expectObjects(t, objects(t, c, "invoice:1"), "invoice:1")
	expectObjects(t, objects(t, c, ""), append(want, "invoice:1", "invoice:2")...)
	for _, name := range oddNames {
		if o := inspect(t, c, name); len(o.Holders) != 1 || o.Key != name {
			t.Errorf("%.99q has %d holders", name, len(o.Holders))
		}
	}
}

// What Redisson makes is found like ours: as the reference has it, and an owner of a transaction.
func TestObjectsOfJava(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, c := s.Client(t), newClient(t, s)
	const id = "285475da-9152-4c83-822a-67ee2f116a79:52"
	check(t, rdb.HSet(t.Context(), "java", id, 1).Err())
	check(t, rdb.HSet(t.Context(), "tx", id+":0f8fad5bd9cb469fa165", 1).Err())
	check(t, rdb.HSet(t.Context(), "rw", "mode", "write", id+":write", 1, id, 2).Err())
	check(t, rdb.Set(t.Context(), "{rw}:"+id+":rwlock_timeout:2", 1, time.Minute).Err())
	expectObjects(t, objects(t, c, ""), "java", "tx", "rw")
	if h := inspect(t, c, "tx").Holders[0]; h.About != nil {
		t.Errorf("an owner of a transaction is said to hold the lock by hand: %+v", h.About)
	}
	o := inspect(t, c, "rw")
	client := id[:36]
	expectHolders(t, o, redisson.Holder{ID: id, Client: client, Count: 1, Write: true}, redisson.Holder{ID: id, Client: client, Count: 2})
	for _, h := range o.Holders {
		if !h.Write {
			expectLease(t, "the second read", h.Lease, time.Minute)
		}
	}
}

// The queue and the permits of two names can be the same. They are those of the one that is there.
func TestObjectsOfTwins(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb, ctx := newClient(t, s), s.Client(t), t.Context()
	for _, name := range []string{"{held}", "also held"} {
		check(t, rdb.HSet(ctx, name, holderNumber(1), 1).Err())
	}
	for _, base := range []string{"{held}", "{also held}", "{free}", "free{1}", "stranger", "{number}"} {
		check(t, rdb.RPush(ctx, "redisson_lock_queue:"+base, holderNumber(2)).Err())
	}
	check(t, rdb.MSet(ctx, "number", 1, "stranger", 1, "{sem}", 1, "{s}em", 1).Err())
	for _, base := range []string{"stranger", "{number of nobody}", "{sem}", "{s}em"} {
		check(t, rdb.ZAdd(ctx, base+":timeout", redis.Z{Score: 1e15, Member: "id"}).Err())
	}
	expectObjects(t, objects(t, c, ""), "{held}", "also held", "free", "free{1}", "{sem}", "{s}em")
}

func TestObjectsInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.StartCluster(t, 0)
	for _, mode := range []redisson.ShardedMode{redisson.ShardedAuto, redisson.ShardedOff} {
		c := onClient(t, cl.Client(t), redisson.ShardedPubSub(mode))
		strangers(t, cl.Client(t))
		var want []string
		for i := range 50 {
			name := fmt.Sprint("k", i)
			want = append(want, name)
			acquire(t.Context(), t, c, lock.Request{Key: name, Kind: []lock.Kind{lock.Exclusive, lock.Permit, lock.Read}[i%3], Limit: 1})
		}
		check(t, cl.Client(t).Set(t.Context(), "latch", "3", 0).Err())
		waiter := onClient(t, cl.Client(t), redisson.ShardedPubSub(mode)) // which listens where the key is, as it does to nothing else
		go func() { _ = waiter.CountDownLatch("latch").Await(t.Context()) }()
		eventually(t, "somebody waits", func() bool { return len(objects(t, c, "latch")) == 1 })
		expectObjects(t, objects(t, c, ""), append(want, "latch")...)
		for _, name := range want {
			if o := inspect(t, c, name); len(o.Holders) != 1 {
				t.Errorf("%s has %d holders", name, len(o.Holders))
			}
		}
		check(t, errors.Join(c.Close(), waiter.Close()))
		for _, n := range cl.Masters {
			n.Do(t, "flushall")
		}
	}
}

// The loop's body ends it, and one that goes on gets an error of each master that fails.
func TestObjectsEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	for i := range 10 {
		acquire(t.Context(), t, c, lock.Request{Key: fmt.Sprint("k", i)})
	}
	n := 0
	for _, err := range c.Objects(t.Context(), "") {
		if n++; err != nil || n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d objects before the end, want 3", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var err error
	for _, err = range c.Objects(ctx, "") {
		cancel()
	}
	for _, err = range c.Objects(ctx, "") {
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the search of a canceled context ends with %v", err)
	}
	s.Kill(t)
	errs := 0
	for o, err := range c.Objects(t.Context(), "") {
		if errs++; err == nil || o.Key != "" {
			t.Errorf("a server that is gone has %+v, %v", o, err)
		}
	}
	if errs != 1 {
		t.Errorf("%d errors of one server", errs)
	}
}

// One of three masters is gone: there is an error, and what the others have.
func TestObjectsWithoutAMaster(t *testing.T) {
	t.Parallel()
	cl := redistest.StartCluster(t, 0, "--cluster-require-full-coverage", "no")
	c := onClient(t, cl.Client(t, func(o *redis.ClusterOptions) { o.DialerRetries = 1 }), redisson.Timeout(time.Second))
	var want []string
	for i := range 30 {
		name := fmt.Sprint("k", i)
		acquire(t.Context(), t, c, lock.Request{Key: name})
		if at, _ := cl.Owner(t, name); at != 1 {
			want = append(want, name)
		}
	}
	cl.Masters[1].Kill(t)
	var got []redisson.Object
	var errs []error
	for o, err := range c.Objects(t.Context(), "") {
		if err != nil {
			errs = append(errs, err)
		} else {
			got = append(got, o)
		}
	}
	if expectObjects(t, got, want...); len(errs) != 1 {
		t.Errorf("one master is down, and there are the errors %q", errs)
	}
}

// Patterns mean here what they mean to Redis.
func TestObjectsPatterns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	random := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, n int) string {
		text := make([]byte, random.IntN(n))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		return string(text)
	}
	for range 20_000 {
		pattern, text := word("aab/*?[]^\\{", 9), "a"+word("aabc/*]^-\\[\xff", 6)
		if _, err := path.Match(pattern, ""); err != nil {
			continue
		}
		check(t, rdb.FlushAll(t.Context()).Err())
		check(t, rdb.Set(t.Context(), text, 1, 0).Err())
		found, err := rdb.Keys(t.Context(), pattern).Result()
		check(t, err)
		if got := redisson.Matches(pattern, text); got != (len(found) == 1) {
			t.Fatalf("matches(%q, %q) = %v", pattern, text, got)
		}
	}
	start := time.Now()
	redisson.Matches(strings.Repeat("a*", 1000)+"b", strings.Repeat("a", 10_000))
	if took := ran(start); took > 10*time.Second {
		t.Errorf("a hostile pattern takes %v", took)
	}
}

// A lock whose slot is on the move can't be looked at together with others, and perhaps not at all for now: the others can.
func TestObjectsWhileASlotMoves(t *testing.T) {
	t.Parallel()
	cl := redistest.StartCluster(t, 0)
	c := onClient(t, cl.Client(t), redisson.Timeout(time.Second))
	keys := manyLocks(t, cl.Client(t), 100)
	at, slot := cl.Owner(t, keys[7])
	cl.OpenSlot(t, slot, cl.Masters[at], cl.Masters[(at+1)%3])
	for what, look := range map[string]func() iter.Seq2[redisson.Object, error]{
		"Objects":     func() iter.Seq2[redisson.Object, error] { return c.Objects(t.Context(), "") },
		"InspectKeys": func() iter.Seq2[redisson.Object, error] { return c.InspectKeys(t.Context(), keys) },
	} {
		var got []string
		for o, err := range look() {
			if (err != nil) != (o.Key == keys[7]) || len(o.Holders) != 1 && err == nil {
				t.Errorf("%s: of %q there is %+v, %v", what, o.Key, o, err)
			}
			got = append(got, o.Key)
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	cl.CloseSlot(t, slot, cl.Masters[at], cl.Masters[(at+1)%3])
	expectObjects(t, objects(t, c, ""), keys...)
}

// Keys that are none, or that the user may not look at, take nothing from the others.
func TestInspectKeysHasAnErrorForEach(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	admin := s.Client(t)
	keys := manyLocks(t, admin, 250)
	check(t, admin.Do(t.Context(), "acl", "setuser", "u", "on", ">secret", "+@all", "~*:*", "&*").Err())
	check(t, admin.HSet(t.Context(), "secret", holderNumber(1), 1).Err())
	c := onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "u", "secret" }))
	for o, err := range c.InspectKeys(t.Context(), append([]string{"", "secret", "none:1"}, append(keys, "secret")...)) {
		switch {
		case o.Key == "", o.Key == "secret":
			if err == nil || o.Holders != nil {
				t.Errorf("of %q there is %+v", o.Key, o)
			}
		case err != nil, len(o.Holders) != 1 && o.Key != "none:1":
			t.Errorf("of %q there is %+v, %v", o.Key, o, err)
		}
	}
	s.Kill(t)
	errs := 0
	for o, err := range c.InspectKeys(t.Context(), keys) {
		if errs++; err == nil || o.Key != "" {
			t.Errorf("a server that is gone has %+v, %v", o, err)
		}
	}
	if errs != 1 {
		t.Errorf("%d errors of one server", errs)
	}
}
