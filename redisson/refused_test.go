package redisson_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// allKinds are requests for the key k that would wait.
func allKinds() (requests []lock.Request) {
	for k := lock.Exclusive; k <= lock.Permit; k++ {
		requests = append(requests, lock.Request{Key: "k", Kind: k, Wait: time.Minute, Limit: 1})
	}
	return requests
}

// checkRefused expects a refusal at once, also by a call that would wait.
func checkRefused(t *testing.T, what string, ask func() error) {
	t.Helper()
	start := time.Now()
	if err := ask(); !errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrBusy) {
		t.Errorf("%s: %v, want ErrRefused", what, err)
	}
	if took := ran(start); took > 5*time.Second {
		t.Errorf("%s: refused after %v", what, took)
	}
}

func checkAllRefused(t *testing.T, c *redisson.Client) {
	t.Helper()
	for _, r := range allKinds() {
		checkRefused(t, r.Kind.String(), func() error { return second(c.Acquire(t.Context(), r)) })
	}
	checkRefused(t, "Semaphore.Acquire", func() error { return second(c.Semaphore("k").TryAcquire(t.Context(), 1, time.Minute)) })
	checkRefused(t, "Semaphore.Release", func() error { return c.Semaphore("k").Release(t.Context(), 1) })
	checkRefused(t, "CountDownLatch.Await", func() error { return c.CountDownLatch("k").Await(t.Context()) })
}

// A key that holds something else is no outage.
func TestWrongTypeIsRefused(t *testing.T) {
	s := redistest.Start(t)
	s.Client(t).RPush(t.Context(), "k", "mine")
	checkAllRefused(t, newClient(t, s))
}

// Nobody writes over a text that is no number of permits.
func TestTextIsKept(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	rdb.Set(t.Context(), "k", "mine", 0)
	checkAllRefused(t, newClient(t, s))
	if got := rdb.Get(t.Context(), "k").Val(); got != "mine" {
		t.Errorf("the text is %q now", got)
	}
}

// Waiters of a fair lock fail when Redis refuses them for something that an operator can cure. Once it is cured they leave the
// queue, and do not keep the next one waiting until the last of their deadlines, which add up.
func TestRefusedWaitersLeaveTheQueue(t *testing.T) {
	for _, tt := range []struct {
		name       string
		spoil, set []any
	}{
		{"no permission", []any{"acl", "setuser", "worker", "-@scripting"}, []any{"acl", "setuser", "worker", "+@all"}},
		{"too few replicas", []any{"config", "set", "min-replicas-to-write", "1"}, []any{"config", "set", "min-replicas-to-write", "0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			refusedWaiters(t, tt.spoil, tt.set)
		})
	}
}

func refusedWaiters(t *testing.T, spoil, cure []any) {
	s := redistest.Start(t, "--user", "default", "on", "nopass", "~*", "&*", "+@all", "--user", "worker", "on", ">secret", "~*", "&*", "+@all")
	admin := s.Client(t)
	client := func() *redisson.Client {
		rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "worker", "secret" })
		return onClient(t, rdb, redisson.WatchdogTimeout(3*time.Second), redisson.FairLockWaitTimeout(2*time.Second))
	}
	holder := newClient(t, s).FairLock("f")
	held := mustLock(t, holder)
	const waiters = 8
	var failed sync.WaitGroup
	for range waiters {
		l := client().FairLock("f")
		failed.Go(func() {
			if _, err := l.Lock(t.Context()); err == nil {
				t.Error("a waiter got in")
			}
		})
	}
	queue := func() int64 { return admin.LLen(t.Context(), "redisson_lock_queue:{f}").Val() }
	eventually(t, "all stand in the queue", func() bool { return queue() == waiters })
	check(t, admin.Do(t.Context(), spoil...).Err())
	failed.Wait()
	<-time.After(500 * time.Millisecond) // they have tried to leave
	if n := queue(); n != waiters {
		t.Fatalf("%d in the queue, want %d: the test shows nothing", n, waiters)
	}
	check(t, admin.Do(t.Context(), cure...).Err())
	mustUnlock(t, holder, held)
	start := time.Now()
	l := client().FairLock("f")
	mustUnlock(t, l, mustLock(t, l))
	if d := ran(start); d > 2*time.Second {
		t.Errorf("the next one waited %v", d)
	}
	expectKeys(t, admin)
}

// Nor is a user who may not, or a command that a server does not have.
func TestMissingPermissionIsRefused(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	for name, rules := range map[string][]any{
		"none":     {"~*", "&*", "+ping", "+hello", "+client"},
		"keys":     {"~other", "&*", "+@all"},
		"commands": {"~*", "&*", "+@all", "-pttl", "-get", "-getex", "-hexists", "-hdel", "-del", "-exists", "-time"},
	} {
		rules = append([]any{"acl", "setuser", name, "reset", "on", ">secret"}, rules...)
		if err := admin.Do(t.Context(), rules...).Err(); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			checkAllRefused(t, onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = name, "secret" })))
		})
	}
	t.Run("password", func(t *testing.T) {
		checkAllRefused(t, onClient(t, s.Client(t, func(o *redis.Options) { o.Username, o.Password = "none", "wrong" })))
	})
	t.Run("unknown command", func(t *testing.T) {
		checkAllRefused(t, newClient(t, redistest.Start(t, "--rename-command", "EVAL", "")))
	})
}

// What may pass by itself stays an outage.
func TestShortageIsNoRefusal(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "1")
	for _, r := range allKinds()[:lock.Permit] { // a permit's script removes something first, which Redis lets go on
		r.Wait = 0
		if _, err := newClient(t, s).Acquire(t.Context(), r); err == nil || errors.Is(err, lock.ErrRefused) {
			t.Errorf("%v without memory: %v, want an outage", r.Kind, err)
		}
	}
}

// A fenced lock whose counter is something else is refused as that. It is not taken for another kind, nor for lost.
func TestCounterOfAnotherType(t *testing.T) {
	s := redistest.Any(t)
	rdb, c := s.Client(t), newClient(t, s)
	r := lock.Request{Key: "k", Kind: lock.Fenced}
	outer := acquire(t.Context(), t, c, r)
	for _, set := range []func(){
		func() { rdb.RPush(t.Context(), tokenKey, "mine") },
		func() { rdb.Set(t.Context(), tokenKey, "mine", 0) },
	} {
		rdb.Del(t.Context(), tokenKey)
		set()
		_, err := c.Acquire(outer.Context(), r)
		if !errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrLost) {
			t.Errorf("re-entry = %v, want ErrRefused", err)
		}
		_, err = c.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Exclusive})
		if !errors.Is(err, lock.ErrBusy) {
			t.Errorf("a stranger = %v, want ErrBusy", err)
		}
	}
	release(t, outer)
	_, err := c.Acquire(t.Context(), r)
	if !errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("Acquire = %v, want ErrRefused", err)
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); !slices.Equal(keys, []string{tokenKey}) {
		t.Errorf("keys %q are left, want only the counter", keys)
	}
}

func TestRemaining(t *testing.T) {
	c := newClient(t, redistest.Any(t))
	remaining := func(h lock.Hold) time.Duration { return h.(interface{ Remaining() time.Duration }).Remaining() }
	for _, tt := range []struct {
		r    lock.Request
		want time.Duration
	}{
		{lock.Request{Key: "renewed"}, redisson.DefaultWatchdogTimeout},
		{lock.Request{Key: "leased", Kind: lock.Fenced, Lease: time.Minute}, time.Minute},
		{lock.Request{Key: "bounded", MaxHold: 10 * time.Second}, 10 * time.Second},
	} {
		h := acquire(t.Context(), t, c, tt.r)
		if got := remaining(h); got > tt.want || got < tt.want*8/10 {
			t.Errorf("%s: Remaining() = %v, want almost %v", tt.r.Key, got, tt.want)
		}
		release(t, h)
		if got := remaining(h); got != 0 {
			t.Errorf("%s: Remaining() = %v after the release", tt.r.Key, got)
		}
	}
	lost := acquire(t.Context(), t, c, lock.Request{Key: "lost", Lease: 100 * time.Millisecond})
	<-lost.Context().Done()
	if got := remaining(lost); got != 0 {
		t.Errorf("Remaining() = %v after the loss", got)
	}
	_ = lost.Release(t.Context())
}

// What is given back while Redis is full is given back once it has room again, also on a version that says so in words of its own.
func TestReleaseOutlastsAShortage(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sem := newClient(t, s).Semaphore("s")
	check(t, second(sem.TrySetPermits(t.Context(), 1)))
	check(t, sem.Acquire(t.Context(), 1))
	check(t, s.Client(t).ConfigSet(t.Context(), "maxmemory", "1").Err())
	if err := sem.Release(t.Context(), 1); !errors.Is(err, redisson.ErrPending) {
		t.Fatalf("Release of a permit = %v, want ErrPending", err)
	}
	check(t, s.Client(t).ConfigSet(t.Context(), "maxmemory", "0").Err())
	eventually(t, "the permit is back", func() bool {
		n, err := sem.AvailablePermits(t.Context())
		return n == 1 && err == nil
	})
}
