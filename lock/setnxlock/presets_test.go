package setnxlock_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
)

// What each preset writes, with the key as it is, and that nothing of it stays.
func TestPresetTexts(t *testing.T) {
	const id = `[A-Z2-7]{26}`
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name       string
		opts       []setnxlock.Option
		key, value string
	}{
		{"none", nil, "order:a b {50%}", id},
		{"Redislock", []setnxlock.Option{setnxlock.Redislock()}, "order:a b {50%}", id},
		{"Redsync", []setnxlock.Option{setnxlock.Redsync()}, "order:a b {50%}", id},
		{"Lock4j", []setnxlock.Option{setnxlock.Lock4j()}, "order:a b {50%}", id},
		{"RedisLockRegistry", []setnxlock.Option{setnxlock.RedisLockRegistry("shop")}, "shop:order:a b {50%}", id},
		{"ShedLock", []setnxlock.Option{setnxlock.ShedLock("prod")}, "job-lock:prod:order:a b {50%}",
			`ADDED:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z@` + regexp.QuoteMeta(host) + ":" + id},
		{"KeyText before a preset", []setnxlock.Option{setnxlock.KeyText(func(k string) string { return "my-locks:prod:" + k }), setnxlock.ShedLock("prod")},
			"my-locks:prod:order:a b {50%}", "ADDED:.*"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Any(t)
			rdb := s.Client(t)
			h := acquire(t, newLocker(t, rdb, tt.opts...), lock.Request{Key: "order:a b {50%}", Lease: time.Minute})
			if got := keys(t, rdb); !slices.Equal(got, []string{tt.key}) {
				t.Fatalf("keys = %q, want %q", got, tt.key)
			}
			if got := rdb.Get(t.Context(), tt.key).Val(); !regexp.MustCompile("^" + tt.value + "$").MatchString(got) {
				t.Errorf("value = %q, want %s", got, tt.value)
			}
			if got := rdb.PTTL(t.Context(), tt.key).Val(); got <= 50*time.Second || got > time.Minute {
				t.Errorf("time to live = %v, want a minute", got)
			}
			release(t, h)
			if got := keys(t, rdb); len(got) > 0 {
				t.Errorf("keys %q are left", got)
			}
		})
	}
}

// The release is published as RedisLockRegistry does, whose waiters listen to a pattern and read the key in the message.
func TestRegistryReleaseIsAnnounced(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	sub := rdb.PSubscribe(t.Context(), "shop-channel:*")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil { // the confirmation
		t.Fatal(err)
	}
	release(t, acquire(t, newLocker(t, rdb, setnxlock.RedisLockRegistry("shop")), lock.Request{Key: "a b"}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := sub.ReceiveMessage(ctx)
	if err != nil || m.Channel != "shop-channel:shop:a b" || m.Payload != "shop:a b" {
		t.Errorf("message = %v, %v, want the key on its channel", m, err)
	}
}

// Who has the lock is told by the whole value, and not by where it begins, and a lock without an end is one.
func TestForeignValues(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newLocker(t, rdb)
	h := acquire(t, l, lock.Request{Key: "k", Lease: time.Minute})
	mine := rdb.Get(t.Context(), "k").Val()
	for _, foreign := range []string{"", mine + "x", mine[:20], "0"} {
		rdb.Set(t.Context(), "k", foreign, time.Minute)
		if rest := busyFor(t, newLocker(t, rdb)); rest <= 50*time.Second || rest > time.Minute {
			t.Errorf("%q: remaining %v, want a minute", foreign, rest)
		}
	}
	if err := h.Release(t.Context()); err == nil {
		t.Error("a release of a lock that has another value succeeds")
	}
	if got := rdb.Get(t.Context(), "k").Val(); got != "0" {
		t.Errorf("value = %q, want the other holder's", got)
	}
	rdb.Set(t.Context(), "k", "left by SETNX without EXPIRE", 0)
	if rest := busyFor(t, newLocker(t, rdb)); rest != 0 {
		t.Errorf("remaining %v of a lock without an end, want 0", rest)
	}
}
