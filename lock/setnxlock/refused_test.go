package setnxlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// expectRefused wants a refusal of the lock zebra at once, also for a call that would wait, and some words in it.
func expectRefused(t *testing.T, l *setnxlock.Locker, words ...string) {
	t.Helper()
	for what, ask := range map[string]func(context.Context) error{
		"Acquire": func(ctx context.Context) error {
			_, err := l.Acquire(ctx, lock.Request{Key: "zebra", Wait: time.Minute})
			return err
		},
		"Peek": func(ctx context.Context) error { return l.Peek(ctx, lock.Request{Key: "zebra"}) },
	} {
		start := time.Now()
		err := ask(t.Context())
		if !errors.Is(err, lock.ErrRefused) || errors.Is(err, lock.ErrBusy) {
			t.Errorf("%s = %v, want ErrRefused", what, err)
			continue
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s = %v, want %q in it", what, err, w)
			}
		}
		if strings.Contains(err.Error(), "zebra") {
			t.Errorf("%s = %v, which names the key", what, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: refused after %v", what, took)
		}
	}
}

// A key under which Redisson has a lock is not free, and waiting does not help: the two must not exclude each other by accident.
func TestRedissonsLockIsRefused(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.HSet(t.Context(), "zebra", "e1b4bb1c-5b3e-4f0e-9f39-6d7b3c3d2f10:1", 1) // redisson/interop has the real one
	rdb.Expire(t.Context(), "zebra", time.Minute)
	expectRefused(t, newLocker(t, rdb), "holds a hash", "Redisson", "package redisson")
}

func TestOtherTypesAreRefusedAndKept(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.RPush(t.Context(), "zebra", "mine")
	l := newLocker(t, rdb)
	expectRefused(t, l, "holds a list")
	if got := rdb.LRange(t.Context(), "zebra", 0, -1).Val(); len(got) != 1 {
		t.Errorf("the list is %q now", got)
	}
	h := acquire(t, l, lock.Request{Key: "k"})
	rdb.Del(t.Context(), "k")
	rdb.HSet(t.Context(), "k", "field", 1)
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release of a lock that became a hash = %v, want ErrLost", err)
	}
	if n := rdb.HLen(t.Context(), "k").Val(); n != 1 {
		t.Errorf("the hash has %d fields now", n)
	}
}

// worker returns a client of a user with these rights.
func worker(t *testing.T, rights ...string) (admin, rdb *redis.Client) {
	s := redistest.Start(t, append([]string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "--user", "worker", "on", ">secret"}, rights...)...)
	return s.Client(t), s.Client(t, func(o *redis.Options) { o.Username, o.Password = "worker", "secret" })
}

func TestMissingPermissionsAreRefused(t *testing.T) {
	for name, rights := range map[string][]string{
		"no scripts": {"~*", "&*", "+@all", "-@scripting"},
		"no set":     {"~*", "&*", "+@all", "-set", "-get"},
		"other keys": {"~a:*", "&*", "+@all"},
		"nothing":    {"-@all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, rdb := worker(t, rights...)
			expectRefused(t, newLocker(t, rdb))
		})
	}
	t.Run("wrong password", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		if err := s.Client(t).ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
			t.Fatal(err)
		}
		expectRefused(t, newLocker(t, s.Client(t)))
		expectRefused(t, newLocker(t, s.Client(t, func(o *redis.Options) { o.Password = "guess" })))
	})
}

// The least that a user needs, as the package comment says.
func TestLeastPermissions(t *testing.T) {
	admin, rdb := worker(t, "~zebra:*", "resetchannels", "&zebra-channel:*", "-@all", "+evalsha", "+eval", "+get", "+set", "+del", "+pttl", "+pexpire", "+type",
		"+publish", "+subscribe", "+unsubscribe", "+ping")
	l := newLocker(t, rdb, setnxlock.RedisLockRegistry("zebra"), setnxlock.Watchdog(300*time.Millisecond), setnxlock.Poll(time.Minute, 0))
	h := acquire(t, l, lock.Request{Key: "k"})
	other := newLocker(t, rdb, setnxlock.RedisLockRegistry("zebra"), setnxlock.Poll(time.Minute, 0))
	got := make(chan error, 1)
	go func() {
		h, err := other.Acquire(t.Context(), lock.Request{Key: "k", Wait: 10 * time.Second})
		if err == nil {
			err = h.Release(context.Background())
		}
		got <- err
	}()
	eventually(t, "the waiter listens", func() bool { return len(admin.PubSubChannels(t.Context(), "*").Val()) == 1 })
	<-time.After(time.Second) // renewals
	release(t, h)
	if err := <-got; err != nil {
		t.Errorf("the waiter: %v", err)
	}
}

// Who may not publish gives back the lock all the same, and is told.
func TestReleaseWithoutPublish(t *testing.T) {
	admin, rdb := worker(t, "~*", "resetchannels", "+@all")
	h := acquire(t, newLocker(t, rdb, setnxlock.RedisLockRegistry("zebra")), lock.Request{Key: "k"})
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Release = %v, want ErrRefused", err)
	}
	if n := admin.Exists(t.Context(), "zebra:k").Val(); n != 0 {
		t.Error("the lock is still there")
	}
}
