package redisson_test

import (
	"context"
	"errors"
	"maps"
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

const rwMessages = "redisson_rwlock:{k}"

// fields returns the lock's hash with the client's ids cut off.
func fields(t *testing.T, rdb *redis.Client) map[string]string {
	t.Helper()
	short := map[string]string{}
	for f, v := range rdb.HGetAll(t.Context(), "k").Val() {
		if _, after, ok := strings.Cut(f, ":"); ok {
			_, side, _ := strings.Cut(after, ":")
			f = "holder" + side
		}
		short[f] = v
	}
	return short
}

func expectFields(t *testing.T, rdb *redis.Client, want map[string]string) {
	t.Helper()
	if got := fields(t, rdb); !maps.Equal(got, want) {
		t.Errorf("hash = %v, want %v", got, want)
	}
}

func timeouts(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	return slices.DeleteFunc(keys(t, rdb), func(k string) bool { return !strings.Contains(k, ":rwlock_timeout:") })
}

// The life of a read/write lock as a Redisson process sees it.
func TestReadWriteData(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rw := newClient(t, s).ReadWriteLock("k")
	r, w := rw.ReadLock(), rw.WriteLock()
	messages := observe(t, rdb, rwMessages)

	outer := mustLock(t, r)
	inner := mustLockAgain(t, r, outer)
	expectFields(t, rdb, map[string]string{"mode": "read", "holder": "2"})
	if got := timeouts(t, rdb); len(got) != 1 {
		t.Errorf("timeout keys %q, want the first", got)
	}
	for _, k := range timeouts(t, rdb) {
		expectTTL(t, rdb, k, redisson.DefaultWatchdogTimeout)
	}
	mustUnlock(t, r, inner)
	eventually(t, "the watchdog has brought the number to Redis", func() bool {
		return len(timeouts(t, rdb)) == 1 && !slices.Contains(rdb.HVals(t.Context(), "k").Val(), "2")
	})
	expectFields(t, rdb, map[string]string{"mode": "read", "holder": "1"})
	if got := timeouts(t, rdb); len(got) != 1 || !strings.HasSuffix(got[0], ":1") {
		t.Errorf("timeout keys %q, want the first", got)
	}
	expectSilence(t, rdb, rwMessages, messages)
	mustUnlock(t, r, outer)
	expectMessage(t, messages, "0")

	writing := mustLock(t, w)
	expectFields(t, rdb, map[string]string{"mode": "write", "holderwrite": "1"})
	again := mustLockAgain(t, w, writing)
	expectTTL(t, rdb, "k", 2*redisson.DefaultWatchdogTimeout) // Redisson adds the leases of a writer
	mustUnlock(t, w, again)
	expectTTL(t, rdb, "k", redisson.DefaultWatchdogTimeout)
	reading := mustLockAgain(t, r, writing)
	expectFields(t, rdb, map[string]string{"mode": "write", "holderwrite": "1", "holder": "1"})
	if locked, err := r.IsLocked(t.Context()); !locked || err != nil {
		t.Errorf("IsLocked of the read side = %v, %v; want true, as the writer reads", locked, err)
	}
	expectSilence(t, rdb, rwMessages, messages)
	mustUnlock(t, w, writing)
	expectFields(t, rdb, map[string]string{"mode": "read", "holder": "1"})
	expectSilence(t, rdb, rwMessages, messages)
	if n := r.HoldCount(context.WithoutCancel(reading)); n != 1 {
		t.Errorf("HoldCount = %d, want 1", n)
	}
	// The write lock's context has ended and with it those below; the read hold stands until it is given back.
	mustUnlock(t, r, reading)
	expectMessage(t, messages, "0")
	writing = mustLock(t, w)
	mustUnlock(t, w, writing)
	expectMessage(t, messages, "1")
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A reader that wants to write would wait for itself, so that no wait can help.
func TestReadersDoNotUpgrade(t *testing.T) {
	s := redistest.Any(t)
	c := newClient(t, s)
	w := c.ReadWriteLock("k").WriteLock()
	read := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Read})
	under, stop := context.WithTimeout(read.Context(), 5*time.Second)
	defer stop()
	start := time.Now()
	for _, wait := range []time.Duration{0, time.Hour, -1} {
		if _, err := c.Acquire(under, lock.Request{Key: "k", Kind: lock.Write, Wait: wait}); !errors.Is(err, lock.ErrUnsupported) {
			t.Errorf("write with wait %v while reading = %v, want ErrUnsupported", wait, err)
		}
	}
	if _, err := w.Lock(under); !errors.Is(err, lock.ErrUnsupported) {
		t.Errorf("Lock while reading = %v, want ErrUnsupported", err)
	}
	for _, wait := range []time.Duration{0, time.Hour} {
		if _, ok, err := w.TryLock(under, wait, 0); ok || err != nil {
			t.Errorf("TryLock with wait %v while reading = %v, %v; want false", wait, ok, err)
		}
	}
	if d := ran(start); d > 2*time.Second {
		t.Errorf("the refusals took %v", d)
	}
	release(t, read)
}

// 64 readers in two clients wait for a writer and are let in together.
func TestReadersWakeTogether(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	a, b := newClient(t, s).ReadWriteLock("k"), newClient(t, s).ReadWriteLock("k")
	writing := mustLock(t, a.WriteLock())
	const readers = 64
	var in, all sync.WaitGroup
	leave := make(chan struct{})
	in.Add(readers)
	for i := range readers {
		l := []*redisson.ReadWriteLock{a, b}[i%2].ReadLock()
		all.Go(func() {
			held, err := l.Lock(t.Context())
			in.Done()
			if err != nil {
				t.Error(err)
				return
			}
			<-leave
			mustUnlock(t, l, held)
		})
	}
	eventually(t, "both clients listen", func() bool {
		return rdb.PubSubNumSub(context.Background(), rwMessages).Val()[rwMessages] == 2
	})
	start := time.Now()
	mustUnlock(t, a.WriteLock(), writing)
	in.Wait()
	t.Logf("%d readers in after %v", readers, time.Since(start))
	if d := ran(start); d > waits/2 {
		t.Errorf("the last reader was let in after %v", d)
	}
	close(leave)
	all.Wait()
	if left := keys(t, rdb); len(left) != 0 {
		t.Errorf("keys %q are left", left)
	}
}

// A reader that is renewed outlasts others that come and go, whose release sets the lease of the lock anew.
func TestReaderAmongOthers(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	a, b := newClient(t, s, redisson.WatchdogTimeout(time.Second)).ReadWriteLock("k"), newClient(t, s).ReadWriteLock("k")
	held := mustLock(t, a.ReadLock())
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		other, ok, err := b.ReadLock().TryLock(t.Context(), 0, 500*time.Millisecond) // an answer takes less, also on a busy machine
		if !ok || err != nil {
			t.Fatalf("second reader: %v, %v", ok, err)
		}
		if err := b.ReadLock().Unlock(other); err != nil && !errors.Is(err, lock.ErrLost) {
			t.Error(err)
		}
		if _, ok, _ := b.WriteLock().TryLock(t.Context(), 0, 0); ok {
			t.Fatal("a writer was let in beside a reader")
		}
	}
	if held.Err() != nil {
		t.Errorf("the reader's hold ended: %v", context.Cause(held))
	}
	mustUnlock(t, a.ReadLock(), held)
}

// A reader that died is kept by nobody else's renewal: when the living one leaves, a writer gets in.
func TestDeadReader(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rw := newClient(t, s, redisson.WatchdogTimeout(time.Second)).ReadWriteLock("k")
	held := mustLock(t, rw.ReadLock())
	rdb.HSet(t.Context(), "k", "dead:1", 1)
	rdb.Set(t.Context(), "{k}:dead:1:rwlock_timeout:1", "1", 300*time.Millisecond)
	eventually(t, "the dead reader's time is over", func() bool {
		return rdb.Exists(t.Context(), "{k}:dead:1:rwlock_timeout:1").Val() == 0
	})
	mustUnlock(t, rw.ReadLock(), held)
	writing, ok, err := rw.WriteLock().TryLock(t.Context(), 0, 0)
	if !ok || err != nil {
		t.Fatalf("writer: %v, %v", ok, err)
	}
	mustUnlock(t, rw.WriteLock(), writing)
}

func TestReadWriteForceUnlock(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rw := newClient(t, s).ReadWriteLock("k")
	r, w := rw.ReadLock(), rw.WriteLock()
	messages := observe(t, rdb, rwMessages)
	for _, tt := range []struct {
		side, other *redisson.Lock
		message     string
	}{{r, w, "0"}, {w, r, "1"}} {
		held := mustLock(t, tt.side)
		if freed, err := tt.other.ForceUnlock(t.Context()); freed || err != nil {
			t.Errorf("ForceUnlock of the other side = %v, %v; want false", freed, err)
		}
		if freed, err := tt.side.ForceUnlock(t.Context()); !freed || err != nil {
			t.Errorf("ForceUnlock = %v, %v; want true", freed, err)
		}
		expectMessage(t, messages, tt.message)
		if !errors.Is(context.Cause(held), lock.ErrLost) {
			t.Errorf("hold: %v, want ErrLost", context.Cause(held))
		}
	}
}

func TestReadWriteAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		rw := c.ReadWriteLock("k")
		r, w := rw.ReadLock(), rw.WriteLock()
		mustUnlock(t, r, mustLock(t, r))
		mustUnlock(t, w, mustLock(t, w))
		cut := func() { p.CutReply("evalsha", 1) }
		cut()
		writing := mustLock(t, w)
		cut()
		again := mustLockAgain(t, w, writing)
		expectFields(t, rdb, map[string]string{"mode": "write", "holderwrite": "2"})
		cut()
		reading := mustLockAgain(t, r, again)
		expectFields(t, rdb, map[string]string{"mode": "write", "holderwrite": "2", "holder": "1"})
		cut()
		mustUnlock(t, w, again)
		cut()
		mustUnlock(t, w, writing)
		expectFields(t, rdb, map[string]string{"mode": "read", "holder": "1"})
		cut()
		mustUnlock(t, r, reading)
		if p.Cuts() != 0 {
			t.Error("the last answer was not cut")
		}
		if left := keys(t, rdb); len(left) != 0 {
			t.Errorf("keys %q are left", left)
		}
	})
}

// Each side says that it was lost when the lock is taken away.
func TestReadersAndWritersAreNotifiedOfTheirLoss(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	rw := newClient(t, s, redisson.WatchdogTimeout(time.Second)).ReadWriteLock("k")
	for _, l := range []*redisson.Lock{rw.ReadLock(), rw.WriteLock()} {
		held := mustLock(t, l)
		rdb.Del(t.Context(), "k")
		if cause := awaitEnd(t, held, 10*time.Second); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("hold ended with %v, want ErrLost", cause)
		}
		if got := rdb.Exists(t.Context(), "k").Val(); got != 0 {
			t.Error("the lost lock was made again")
		}
	}
}
