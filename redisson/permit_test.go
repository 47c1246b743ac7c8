package redisson_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestPermitLockData(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s)
	messages := observe(t, rdb, "redisson_sc:{k}")
	request := lock.Request{Key: "k", Kind: lock.Permit, Limit: 2}
	var holds []lock.Hold
	for range 2 {
		h := acquire(t.Context(), t, c, request)
		holds = append(holds, h)
	}
	expectHeldByOthers(t.Context(), t, "third permit", newClient(t, s), request)
	if free := rdb.Get(t.Context(), "k").Val(); free != "0" {
		t.Errorf("free permits = %q, want 0", free)
	}
	taken := rdb.ZRangeWithScores(t.Context(), "{k}:timeout", 0, -1).Val()
	for _, z := range taken {
		end := time.UnixMilli(int64(z.Score))
		if len(z.Member.(string)) != 16 || time.Until(end) > redisson.DefaultWatchdogTimeout || time.Until(end) < 25*time.Second {
			t.Errorf("permit %x until %v, want 16 bytes and the watchdog's lease", z.Member, end)
		}
	}
	if len(taken) != 2 {
		t.Errorf("%d permits are taken, want 2", len(taken))
	}
	for i, h := range holds {
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		expectMessage(t, messages, []string{"1", "2"}[i])
	}
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// So does one that somebody has given a time to live, which is no sign of who has made it.
func TestPermitOfAnExistingSemaphoreWithATTL(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.Set(t.Context(), "k", 3, time.Hour)
	c := newClient(t, s)
	for range 2 {
		release(t, acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Permit, Limit: 1}))
		if free, ttl := rdb.Get(t.Context(), "k").Val(), rdb.PTTL(t.Context(), "k").Val(); free != "3" || ttl < time.Minute {
			t.Fatalf("after a Release, %q permits for %v, want the semaphore as it was", free, ttl)
		}
	}
}

// An operator, or a server that is full, removes the number of free permits and not those that are taken. Newcomers count them, and keep them
// for as long as they last.
func TestPermitsWhoseNumberIsRemoved(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb, c := s.Client(t), newClient(t, s)
	request := lock.Request{Key: "k", Kind: lock.Permit, Limit: 3, Lease: time.Minute}
	outlasting := []lock.Hold{acquire(t.Context(), t, c, request), acquire(t.Context(), t, c, request)}
	rdb.Del(t.Context(), "k", "latchkey_permits:{k}")
	short := request
	short.Lease = 300 * time.Millisecond
	acquire(t.Context(), t, c, short)
	<-time.After(500 * time.Millisecond)
	outlasting = append(outlasting, acquire(t.Context(), t, c, request))
	expectHeldByOthers(t.Context(), t, "fourth permit of three", c, request)
	rdb.Del(t.Context(), "k", "latchkey_permits:{k}")
	release(t, outlasting[0])
	if n := rdb.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("a Release has made a semaphore, which nobody would remove")
	}
	outlasting[0] = acquire(t.Context(), t, c, request)
	expectHeldByOthers(t.Context(), t, "fourth permit of three", c, request)
	for _, h := range outlasting {
		release(t, h)
	}
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A semaphore that somebody else has set up keeps its number, and stays.
func TestPermitOfAnExistingSemaphore(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rdb.Set(t.Context(), "k", 1, 0)
	c := newClient(t, s)
	request := lock.Request{Key: "k", Kind: lock.Permit, Limit: 5}
	h := acquire(t.Context(), t, c, request)
	expectHeldByOthers(t.Context(), t, "second permit of one", c, request)
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if got := keys(t, rdb); !slices.Equal(got, []string{"k"}) || rdb.Get(t.Context(), "k").Val() != "1" {
		t.Errorf("keys %q with %q free, want the semaphore as it was", got, rdb.Get(t.Context(), "k").Val())
	}
}

// A permit of a process that died is free when its lease is over; one that is renewed stays.
func TestPermitLockLeases(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c := newClient(t, s, redisson.WatchdogTimeout(600*time.Millisecond))
	dying := newClient(t, s)
	request := lock.Request{Key: "k", Kind: lock.Permit, Limit: 2}
	renewed := acquire(t.Context(), t, c, request)
	request.Lease = 500 * time.Millisecond
	if _, err := dying.Acquire(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	request.Lease, request.Wait = 0, waits
	start := time.Now()
	second := acquire(t.Context(), t, c, request)
	if d := time.Since(start); d < 300*time.Millisecond || d > waits/2 {
		t.Errorf("got the dead one's permit after %v, want its lease", d)
	}
	<-time.After(1500 * time.Millisecond)
	if renewed.Context().Err() != nil || second.Context().Err() != nil {
		t.Error("a renewed permit was lost")
	}
	if err := errors.Join(renewed.Release(t.Context()), second.Release(t.Context())); err != nil {
		t.Error(err)
	}
	if left := keys(t, s.Client(t)); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}
