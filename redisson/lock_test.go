package redisson_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// observe subscribes to the lock's channel as a Redisson process does and returns what arrives there.
func observe(t *testing.T, rdb *redis.Client, channel string) <-chan *redis.Message {
	t.Helper()
	ps := rdb.Subscribe(t.Context(), channel)
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ps.Channel()
}

func expectMessage(t *testing.T, messages <-chan *redis.Message, payload string) {
	t.Helper()
	select {
	case m := <-messages:
		if m.Payload != payload {
			t.Errorf("published %q, want %q", m.Payload, payload)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("nothing published, want %q", payload)
	}
}

// expectSilence publishes a mark behind whatever was published so far and expects it to come first.
func expectSilence(t *testing.T, rdb *redis.Client, channel string, messages <-chan *redis.Message) {
	t.Helper()
	rdb.Publish(t.Context(), channel, "mark")
	expectMessage(t, messages, "mark")
}

// expectTTL checks the lock's remaining lease, which is at most full and was set within the last two seconds.
func expectTTL(t *testing.T, rdb *redis.Client, key string, full time.Duration) {
	t.Helper()
	got, err := rdb.PTTL(t.Context(), key).Result()
	if err != nil || got > full || got < full-2*time.Second {
		t.Errorf("PTTL %s = %v, %v; want just under %v", key, got, err, full)
	}
}

func hash(t *testing.T, rdb *redis.Client, key string) (holder, count string) {
	t.Helper()
	all, err := rdb.HGetAll(t.Context(), key).Result()
	if err != nil || len(all) > 1 {
		t.Fatalf("HGETALL %s = %v, %v; want one field at most", key, all, err)
	}
	for holder, count = range all {
	}
	return holder, count
}

// The life of a lock as a Redisson process sees it: section 3 of Redisson's data.
func TestLockData(t *testing.T) {
	s := redistest.Any(t)
	rdb, c := s.Client(t), newClient(t, s)
	const channel = "redisson_lock__channel:{order:1}"
	messages := observe(t, rdb, channel)
	l := c.Lock("order:1")

	outer := mustLock(t, l)
	holder, count := hash(t, rdb, "order:1")
	if !regexp.MustCompile(`^`+c.ID()+`:[0-9]+$`).MatchString(holder) || count != "1" {
		t.Errorf("field %q = %q, want <id>:<number> = 1", holder, count)
	}
	expectTTL(t, rdb, "order:1", redisson.DefaultWatchdogTimeout)

	inner, err := l.Lock(outer)
	if err != nil {
		t.Fatal(err)
	}
	if h, count := hash(t, rdb, "order:1"); h != holder || count != "2" {
		t.Errorf("after re-entry: %q = %q, want the same holder with 2", h, count)
	}
	if n := l.HoldCount(inner); n != 2 {
		t.Errorf("HoldCount = %d, want 2", n)
	}
	mustUnlock(t, l, inner)
	if _, count := hash(t, rdb, "order:1"); count != "2" {
		t.Errorf("after a partial unlock: %q, want 2 until the next renewal", count)
	}
	expectSilence(t, rdb, channel, messages)

	mustUnlock(t, l, outer)
	expectMessage(t, messages, "0")
	if n := l.HoldCount(context.WithoutCancel(outer)); n != 0 {
		t.Errorf("HoldCount after Unlock = %d, want 0", n)
	}
	if got := keys(t, rdb); len(got) != 0 {
		t.Errorf("keys after Unlock: %q", got)
	}
	expectSilence(t, rdb, channel, messages)
}

func TestLeases(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s).Lock("k")
	take := func(ctx context.Context, lease time.Duration) context.Context {
		t.Helper()
		held, ok, err := l.TryLock(ctx, 0, lease)
		if !ok || err != nil {
			t.Fatalf("TryLock = %v, %v", ok, err)
		}
		return held
	}
	outer := take(t.Context(), 20*time.Second)
	expectTTL(t, rdb, "k", 20*time.Second)
	inner := take(outer, 5*time.Second) // a re-entry with a shorter lease does not shorten it
	expectTTL(t, rdb, "k", 20*time.Second)
	mustUnlock(t, l, inner)
	expectTTL(t, rdb, "k", 20*time.Second)
	renewed := take(outer, 0)
	expectTTL(t, rdb, "k", redisson.DefaultWatchdogTimeout)
	mustUnlock(t, l, renewed)
	if d := rdb.PTTL(t.Context(), "k").Val(); d < 18*time.Second || d > redisson.DefaultWatchdogTimeout {
		t.Errorf("PTTL = %v, want at least the rest of the outer hold's 20s", d)
	}
	mustUnlock(t, l, outer)
}

func TestUnlockOfWhatIsNotHeld(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	mine, theirs := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	if err := mine.Unlock(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Unlock of a free lock = %v, want ErrNotHeld", err)
	}
	held := mustLock(t, theirs)
	messages := observe(t, rdb, "redisson_lock__channel:{k}")
	if err := mine.Unlock(held); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Unlock with another client's context = %v, want ErrNotHeld", err)
	}
	if err := theirs.Unlock(lock.NewOwner(t.Context())); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Unlock by another owner = %v, want ErrNotHeld", err)
	}
	expectSilence(t, rdb, "redisson_lock__channel:{k}", messages)
	if _, count := hash(t, rdb, "k"); count != "1" {
		t.Errorf("count = %q, want the hold untouched", count)
	}
	mustUnlock(t, theirs, held)
	if err := theirs.Unlock(held); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Unlock = %v, want ErrNotHeld", err)
	}
}

// Unlock(ctx) with the context that was given to Lock is the habit from other libraries. The error says what to write.
func TestUnlockUnderAnotherContextSaysWhatToDo(t *testing.T) {
	s := redistest.Any(t)
	c := newClient(t, s)
	red, err := redisson.NewRedLock(c.Lock("r"), newClient(t, s).Lock("r2"), newClient(t, s).Lock("r3"))
	check(t, err)
	for name, l := range map[string]locker{
		"Lock": c.Lock("k"), "FairLock": c.FairLock("fair"), "ReadLock": c.ReadWriteLock("rw").ReadLock(),
		"FencedLock": c.FencedLock("fenced"), "MultiLock": multiLock(t, c.Lock("m1"), c.Lock("m2")), "RedLock": red,
	} {
		ctx := t.Context()
		held, err := l.Lock(ctx)
		check(t, err)
		err = l.Unlock(ctx)
		if !errors.Is(err, lock.ErrNotHeld) || !strings.Contains(err.Error(), "context") || !strings.Contains(err.Error(), "Lock returned") {
			t.Errorf("%s: Unlock = %v, want ErrNotHeld that asks for the context that Lock returned", name, err)
		}
		mustUnlock(t, l, held)
	}
}

// A context that was released twice must not take the outer hold with it.
func TestDoubleUnlockLeavesTheOuterHold(t *testing.T) {
	s := redistest.Any(t)
	l := newClient(t, s).Lock("k")
	outer := mustLock(t, l)
	inner, err := l.Lock(outer)
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, l, inner)
	if err := l.Unlock(inner); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("second Unlock = %v, want ErrNotHeld", err)
	}
	if n := l.HoldCount(outer); n != 1 || outer.Err() != nil {
		t.Errorf("outer hold: count %d, context %v; want 1 and alive", n, outer.Err())
	}
	mustUnlock(t, l, outer)
}

func TestForceUnlock(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	holder, operator := newClient(t, s, redisson.WatchdogTimeout(600*time.Millisecond)).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	messages := observe(t, rdb, "redisson_lock__channel:{k}")
	if freed, err := operator.ForceUnlock(t.Context()); !freed || err != nil {
		t.Errorf("ForceUnlock = %v, %v; want true", freed, err)
	}
	expectMessage(t, messages, "0")
	if freed, err := operator.ForceUnlock(t.Context()); freed || err != nil {
		t.Errorf("second ForceUnlock = %v, %v; want false", freed, err)
	}
	expectSilence(t, rdb, "redisson_lock__channel:{k}", messages)
	if cause := awaitEnd(t, held, 10*time.Second); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("the hold ended with %v, want ErrLost", cause)
	}
	if err := holder.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys = %q, want the lock not made again", got)
	}

	held = mustLock(t, operator) // a holder in the same client knows at once
	if freed, err := operator.ForceUnlock(t.Context()); !freed || err != nil {
		t.Errorf("ForceUnlock = %v, %v; want true", freed, err)
	}
	if cause := context.Cause(held); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("the hold's context ended with %v, want ErrLost", cause)
	}
}

func TestQueries(t *testing.T) {
	s := redistest.Any(t)
	l, other := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	check := func(locked bool, ttl time.Duration) {
		t.Helper()
		if got, err := other.IsLocked(t.Context()); got != locked || err != nil {
			t.Errorf("IsLocked = %v, %v; want %v", got, err, locked)
		}
		if got, err := other.TTL(t.Context()); got > ttl || got < ttl-2*time.Second || err != nil {
			t.Errorf("TTL = %v, %v; want about %v", got, err, ttl)
		}
	}
	check(false, 0)
	held := mustLock(t, l)
	check(true, redisson.DefaultWatchdogTimeout)
	if n := other.HoldCount(held); n != 0 {
		t.Errorf("HoldCount in another client = %d, want 0", n)
	}
	mustUnlock(t, l, held)
	check(false, 0)
	for _, err := range []error{second(l.IsLocked(canceled())), second(l.TTL(canceled())), second(newClient(t, s).Lock("").IsLocked(t.Context()))} {
		if err == nil {
			t.Error("a query that can't be answered gave no error")
		}
	}
}

func second[T any](_ T, err error) error { return err }

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// Foreign data under the lock's name is an error that says so, and stays as it is.
func TestWrongType(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.Set(t.Context(), "k", "mine", 0)
	l := newClient(t, s).Lock("k")
	if _, err := l.Lock(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Lock = %v, want WRONGTYPE", err)
	}
	if got := rdb.Get(t.Context(), "k").Val(); got != "mine" {
		t.Errorf("the value is now %q", got)
	}
}

// nosyContext asks about a lock whenever it is asked whether it has ended.
type nosyContext struct {
	context.Context
	hold interface{ Remaining() time.Duration }
}

func (c nosyContext) Err() error {
	_ = c.hold.Remaining()
	return c.Context.Err()
}

// A caller's context may be code of the user's own, and that may ask the client.
func TestContextsMayAskTheClient(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Any(t))
	for range 2 {
		h := acquire(t.Context(), t, c, lock.Request{Key: "outer"})
		ctx := nosyContext{lock.NewOwner(t.Context()), h.(interface{ Remaining() time.Duration })}
		done := make(chan struct{})
		go func() {
			defer close(done)
			inner := acquire(ctx, t, c, lock.Request{Key: "inner"})
			if inner.Context().Err() != nil || context.Cause(inner.Context()) != nil {
				t.Errorf("ended with %v", context.Cause(inner.Context()))
			}
			release(t, inner)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the client waits for itself")
		}
		release(t, h)
	}
}
