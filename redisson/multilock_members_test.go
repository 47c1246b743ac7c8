package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// Both sides of a read/write lock are one more re-entry, in whatever order they are given: the side that writes is taken first. They were
// refused, as a reader that wants to write is.
func TestMultiLockOfBothSidesOfAReadWriteLock(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c, other := newClient(t, s), newClient(t, s)
	rw := c.ReadWriteLock("x")
	m := multiLock(t, rw.ReadLock(), c.Lock("a"), rw.WriteLock(), c.Lock("z"))
	held, ok, err := m.TryLock(t.Context(), 0, 0)
	if !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	if w, r := rw.WriteLock().HoldCount(held), rw.ReadLock().HoldCount(held); w != 1 || r != 1 {
		t.Errorf("held %d times for writing and %d for reading, want 1 and 1", w, r)
	}
	expectBusy(t, multiLock(t, other.ReadWriteLock("x").ReadLock()), 0)
	mustGive(t, held, m)
	expectKeys(t, s.Client(t))

	theirs := other.ReadWriteLock("x").ReadLock()
	reading := mustLock(t, theirs)
	expectBusy(t, m, 50*time.Millisecond)
	time.AfterFunc(50*time.Millisecond, func() {
		if err := theirs.Unlock(reading); err != nil {
			t.Errorf("Unlock = %v", err)
		}
	})
	mustGive(t, mustTake(t, m), m)
	expectKeys(t, s.Client(t))
}

// As with a single lock, TryLock of a reader that wants to write says that this can't be had now, and Lock says why.
func TestMultiLockOfAReaderThatWantsToWrite(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	c := newClient(t, s)
	rw := c.ReadWriteLock("x")
	reading := mustLock(t, rw.ReadLock())
	m := multiLock(t, c.Lock("a"), rw.WriteLock())
	if _, ok, err := m.TryLock(reading, time.Minute, 0); ok || err != nil {
		t.Errorf("TryLock = %v, %v", ok, err)
	}
	if _, err := m.Lock(reading); err == nil {
		t.Error("Lock succeeded")
	}
	mustUnlock(t, rw.ReadLock(), reading)
	expectKeys(t, s.Client(t))
}

// A server that does not answer for a moment is waited for as with a single lock, whichever member is there. Where it was not the first one,
// the call failed after half a second.
func TestMultiLockOutlastsAShortOutage(t *testing.T) {
	t.Parallel()
	s1, s2 := redistest.Start(t), redistest.Start(t)
	const outage = 1500 * time.Millisecond
	m := multiLock(t, newClient(t, s1).Lock("a"), newClient(t, s2, redisson.Timeout(8*time.Second), redisson.WatchdogTimeout(30*time.Second)).Lock("b"))
	for name, take := range map[string]func() (context.Context, error){
		"Lock": func() (context.Context, error) { return m.Lock(t.Context()) },
		"TryLock": func() (context.Context, error) {
			held, _, err := m.TryLock(t.Context(), 20*time.Second, 0)
			return held, err
		},
	} {
		mustGive(t, mustTake(t, m), m)
		s2.Pause(t)
		time.AfterFunc(outage, func() { s2.Resume(t) })
		held, err := take()
		if held == nil || err != nil {
			t.Fatalf("%s with a server that is silent for %v = %v", name, outage, err)
		}
		mustGive(t, held, m)
	}
}
