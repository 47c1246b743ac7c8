package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func inspect(tb testing.TB, c *redisson.Client, name string) redisson.Object {
	tb.Helper()
	o, err := c.Inspect(tb.Context(), name)
	if err != nil {
		tb.Fatalf("Inspect(%.99q): %v", name, err)
	}
	return o
}

func expectType(tb testing.TB, o redisson.Object, want redisson.ObjectType) {
	tb.Helper()
	if o.Type != want {
		tb.Fatalf("%.99q is of type %v, want %v: %+v", o.Key, o.Type, want, o)
	}
}

// expectLease checks what is left of a lease that was given a moment ago.
func expectLease(tb testing.TB, what string, got, given time.Duration) {
	tb.Helper()
	if got > given || got < given-5*time.Second {
		tb.Errorf("%s: %v, want a little less than %v", what, got, given)
	}
}

// expectHolders compares the holders, but for their leases.
func expectHolders(tb testing.TB, o redisson.Object, want ...redisson.Holder) {
	tb.Helper()
	got := slices.Clone(o.Holders)
	for i := range got {
		got[i].Lease = 0
	}
	byID := func(a, b redisson.Holder) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if !slices.Equal(got, want) || o.HolderCount != int64(len(want)) {
		tb.Errorf("%q has %d holders %+v, want %+v", o.Key, o.HolderCount, got, want)
	}
}

func asHolder(c *redisson.Client, h lock.Hold, r lock.Request, count int) redisson.Holder {
	return redisson.Holder{ID: redisson.HolderID(h.Context(), c, r.Key, r.Kind), Client: c.ID(), Count: count, Write: r.Kind == lock.Write}
}

func TestInspectSaysWhoHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, looker := newClient(t, s), newClient(t, s)
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin} {
		r := lock.Request{Key: "order:" + kind.String(), Kind: kind, Lease: time.Minute}
		h := acquire(t.Context(), t, c, r)
		acquire(h.Context(), t, c, r)
		o := inspect(t, looker, r.Key)
		expectType(t, o, redisson.TypeLock)
		expectHolders(t, o, asHolder(c, h, r, 2))
		expectLease(t, "TTL", o.TTL, time.Minute)
		expectLease(t, "the holder's lease", o.Holders[0].Lease, time.Minute)
		if want := int64(0); kind == lock.Fenced && o.Token != 2 || kind != lock.Fenced && o.Token != want {
			t.Errorf("%v: the token is %d", kind, o.Token)
		}
	}
}

func TestInspectFreeLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	o := inspect(t, c, "k")
	if o.Key != "k" || o.Type != redisson.TypeNone || o.TTL != 0 || o.Token != 0 || o.Holders != nil {
		t.Errorf("of nothing there is %+v", o)
	}
	release(t, acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Fenced}))
	if o := inspect(t, c, "k"); o.Type != redisson.TypeNone || o.Token != 1 {
		t.Errorf("of a free fenced lock there is %+v", o)
	}
	if _, err := c.Inspect(t.Context(), ""); err == nil {
		t.Error("an empty name is inspected")
	}
}

func TestInspectReadersAndWriter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := newClient(t, s), newClient(t, s)
	read := lock.Request{Key: "rw", Kind: lock.Read, Lease: time.Minute}
	short := read
	short.Lease = 20 * time.Second
	one, two := acquire(t.Context(), t, a, read), acquire(t.Context(), t, b, short)
	o := inspect(t, a, "rw")
	expectType(t, o, redisson.TypeReadWrite)
	if o.Mode != "read" {
		t.Errorf("the mode is %q", o.Mode)
	}
	expectHolders(t, o, asHolder(a, one, read, 1), asHolder(b, two, read, 1))
	for _, h := range o.Holders {
		expectLease(t, h.Client, h.Lease, map[string]time.Duration{a.ID(): time.Minute, b.ID(): 20 * time.Second}[h.Client])
	}
	release(t, one)
	release(t, two)

	write := lock.Request{Key: "rw", Kind: lock.Write}
	w := acquire(t.Context(), t, a, write)
	r := acquire(w.Context(), t, a, read)
	o = inspect(t, b, "rw")
	expectHolders(t, o, asHolder(a, w, write, 1), asHolder(a, r, read, 1))
	if o.Mode != "write" {
		t.Errorf("the mode is %q", o.Mode)
	}
}

func TestInspectSaysWhoWaits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Write, lock.Permit} {
		r := lock.Request{Key: "k" + kind.String(), Kind: kind, Limit: 1}
		h := acquire(t.Context(), t, c, r)
		for n := int64(1); n <= 2; n++ {
			other := newClient(t, s)
			go func() {
				_ = second(other.Acquire(t.Context(), lock.Request{Key: r.Key, Kind: kind, Limit: 1, Wait: -1}))
			}()
			eventually(t, "it listens", func() bool { return inspect(t, c, r.Key).Listeners == n })
		}
		release(t, h)
	}
}

func TestInspectFairQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	r := lock.Request{Key: "fair", Kind: lock.Fair, Wait: -1}
	h := acquire(t.Context(), t, c, r)
	var ids []string
	for i := range 3 {
		other := newClient(t, s)
		ids = append(ids, other.ID())
		go func() { _ = second(other.Acquire(t.Context(), r)) }()
		eventually(t, "it waits", func() bool { return inspect(t, c, "fair").QueueLength == int64(i+1) })
	}
	o := inspect(t, c, "fair")
	expectHolders(t, o, asHolder(c, h, r, 1))
	for i, w := range o.Queue {
		if w.Client != ids[i] || !strings.HasPrefix(w.ID, ids[i]+":") || time.Until(w.Until) < time.Second || time.Until(w.Until) > 10*time.Minute {
			t.Errorf("waiter %d is %+v, want one of %s", i, w, ids[i])
		}
	}
	if len(o.Queue) != 3 {
		t.Errorf("%d wait, want 3", len(o.Queue))
	}
}

// A dead waiter keeps a free lock shut, and that can be seen.
func TestInspectFreeFairLockWithQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := newClient(t, s), s.Client(t)
	id := c.ID() + ":7"
	check(t, rdb.RPush(t.Context(), "redisson_lock_queue:{fair}", id, "ghost").Err())
	check(t, rdb.ZAdd(t.Context(), "redisson_lock_timeout:{fair}", redis.Z{Score: 1764000000000, Member: id}).Err())
	o := inspect(t, c, "fair")
	expectType(t, o, redisson.TypeLock)
	want := []redisson.Waiter{{ID: id, Client: c.ID(), Until: time.UnixMilli(1764000000000)}, {ID: "ghost"}}
	if !slices.Equal(o.Queue, want) || len(o.Holders) > 0 {
		t.Errorf("the queue is %+v, want %+v", o.Queue, want)
	}
	expectObjects(t, objects(t, c, ""), "fair")
}

func TestInspectSynchronizers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, ctx := newClient(t, s), t.Context()
	must(t, true)(c.Semaphore("sem").TrySetPermits(ctx, 5))
	if o := inspect(t, c, "sem"); o.Type != redisson.TypeSemaphore || o.Permits != 5 || o.TTL >= 0 {
		t.Errorf("of a semaphore there is %+v", o)
	}
	must(t, true)(c.PermitExpirableSemaphore("exp").TrySetPermits(ctx, 3))
	id, err := c.PermitExpirableSemaphore("exp").Acquire(ctx, time.Minute)
	check(t, err)
	forever, err := c.PermitExpirableSemaphore("exp").Acquire(ctx, 0)
	check(t, err)
	o := inspect(t, c, "exp")
	expectType(t, o, redisson.TypeExpirableSemaphore)
	expectHolders(t, o, redisson.Holder{ID: id, Count: 1}, redisson.Holder{ID: forever, Count: 1})
	for _, h := range o.Holders {
		if h.ID == id {
			expectLease(t, "a permit", h.Lease, time.Minute)
		} else if h.Lease >= 0 {
			t.Errorf("a permit without an end has a lease of %v", h.Lease)
		}
	}
	if o.Permits != 1 {
		t.Errorf("%d permits are free, want 1", o.Permits)
	}
	must(t, true)(c.RateLimiter("rate").TrySetRate(ctx, redisson.Rate{Permits: 3, Interval: time.Second}))
	expectType(t, inspect(t, c, "rate"), redisson.TypeRateLimiter)
	must(t, true)(c.CountDownLatch("latch").TrySetCount(ctx, 2))
	go func() { _ = c.CountDownLatch("latch").Await(ctx) }()
	eventually(t, "somebody waits", func() bool { return inspect(t, c, "latch").Type == redisson.TypeCountDownLatch })
	if o := inspect(t, c, "latch"); o.Permits != 2 || o.Listeners != 1 {
		t.Errorf("of a latch there is %+v", o)
	}
	expectObjects(t, objects(t, c, ""), "exp", "latch", "rate")
	h := acquire(ctx, t, c, lock.Request{Key: "permit", Kind: lock.Permit, Limit: 2})
	if o := inspect(t, c, "permit"); o.Type != redisson.TypeExpirableSemaphore || o.Permits != 1 || len(o.Holders) != 1 {
		t.Errorf("of a permit there is %+v", o)
	}
	release(t, h)
}

// strangers are keys that look a little like locks.
func strangers(tb testing.TB, rdb redis.UniversalClient) (all []string) {
	tb.Helper()
	const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c8:1"
	for key, fields := range map[string][]any{
		"user:1": {"name", "x"}, "user:2": {"mode", "read"}, "user:3": {"mode", "dark", id, 1}, "user:4": {id, 1, "name", "x"},
		"user:5": {id, "one"}, "user:6": {"rate", 1}, "user:7": {"rate", 1, "interval", 1, "type", 0, "name", "x"},
		"user:8": {"rate", 1, "interval", 1, "type", 0, id, 1}, "user:9": {"6ba7b810-9dad-41d1-80b4-00c04fd430c8", 1},
	} {
		check(tb, rdb.HSet(tb.Context(), key, fields...).Err())
		all = append(all, key)
	}
	check(tb, rdb.Set(tb.Context(), "text", "a text", 0).Err())
	check(tb, rdb.RPush(tb.Context(), "list", 1).Err())
	check(tb, rdb.ZAdd(tb.Context(), "session:timeout", redis.Z{Score: 1, Member: "m"}).Err())
	check(tb, rdb.ZAdd(tb.Context(), "{session}:timeout", redis.Z{Score: 1, Member: "m"}).Err())
	return append(all, "text", "list", "session:timeout")
}

func TestInspectStrangers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s)
	for _, key := range strangers(t, s.Client(t)) {
		if o := inspect(t, c, key); o.Type != redisson.TypeOther || o.Holders != nil || o.Key != key {
			t.Errorf("of somebody else's key there is %+v", o)
		}
	}
	expectObjects(t, objects(t, c, ""))
}

// A lock has very many readers: the answer is bounded, and says so.
func TestInspectIsBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb, ctx := newClient(t, s), s.Client(t), t.Context()
	fields := []any{"mode", "read"}
	for i := range 30_000 {
		fields = append(fields, fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", i), 1)
	}
	check(t, rdb.HSet(ctx, "rw", fields...).Err())
	for i := range 3 {
		ids := make([]any, 10_000)
		for j := range ids {
			ids[j] = fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d:1", 10_000*i+j)
		}
		check(t, rdb.RPush(ctx, "redisson_lock_queue:{rw}", ids...).Err())
	}
	check(t, rdb.SlowLogReset(ctx).Err())
	o := inspect(t, c, "rw")
	expectType(t, o, redisson.TypeReadWrite)
	if o.Mode != "read" || o.HolderCount != 30_000 || o.QueueLength != 30_000 || len(o.Queue) != 1000 || len(o.Holders) < 900 || len(o.Holders) > 1100 {
		t.Errorf("of 30,000 readers and waiters there are %d in mode %q and %d", len(o.Holders), o.Mode, len(o.Queue))
	}
	expectObjects(t, objects(t, c, ""), "rw")
}

func TestInspectSilentRedis(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s, redisson.Timeout(time.Second))
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for _, o := range callAll(t, 3*time.Second, p.Thaw, map[string]func() error{
		"Inspect": func() error { return second(c.Inspect(ctx, "k")) },
		"Objects": func() error {
			for _, err := range c.Objects(ctx, "") {
				return err
			}
			return errors.New("nothing, and no error")
		},
	}) {
		if o.tooLong(100*time.Millisecond) || !errors.Is(o.err, context.DeadlineExceeded) {
			t.Errorf("%s left after %v with %v", o.name, o.took(), o.err)
		}
	}
}
