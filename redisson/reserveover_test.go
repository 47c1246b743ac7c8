package redisson

import (
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// The question for all locks is answered when the wait is over, and the one for the lock that is busy never is. A call stays half a second longer
// than it waits, and not half a second for each of its questions.
func TestReservedLateIsBusyInTime(t *testing.T) {
	t.Parallel()
	const wait, slack = 250 * time.Millisecond, 150 * time.Millisecond
	var took []time.Duration
	for range 5 { // others may have the machine just then
		took = append(took, reservedLate(t, wait))
		if slices.Min(took) <= wait+answerInterval+slack {
			return
		}
	}
	t.Errorf("a call that waits for %v took %v", wait, took)
}

// reservedLate returns how long such a call takes.
func reservedLate(t *testing.T, wait time.Duration) time.Duration {
	t.Helper()
	s := redistest.Start(t)
	p := s.Front(t)
	c := clientOn(t, s.Client(t, func(o *redis.Options) { o.Addr = p.Addr }), Timeout(3*time.Second))
	m, err := NewMultiLock(c.Lock("a"), c.Lock("b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := mustAcquire(t.Context(), t, c, lock.Request{Key: "a", Wait: time.Minute}).Release(t.Context()); err != nil { // the scripts are there
		t.Fatal(err)
	}
	held, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Unlock(held); err != nil {
		t.Fatal(err)
	}
	other := mustAcquire(t.Context(), t, clientOn(t, s.Client(t)), lock.Request{Key: "a", Wait: time.Minute})
	defer func() { _ = other.Release(t.Context()) }()
	late, never := p.KeepBackReply(reserve.SHA, 0), p.KeepBackSilently(lockAcquire.SHA, 0)
	start, ended := time.Now(), make(chan time.Duration)
	go func() {
		if _, ok, err := m.TryLock(t.Context(), wait, 0); ok {
			t.Errorf("TryLock of what is held = %v", err)
		}
		ended <- time.Since(start)
	}()
	late.Await(t)
	time.Sleep(time.Until(start.Add(450 * time.Millisecond)))
	late.Deliver(t)
	took := <-ended
	if !never.Taken() {
		t.Error("nobody asked for the lock that is busy")
	}
	return took
}
