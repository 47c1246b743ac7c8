package redisson_test

import (
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// A server that writes everything to its disk is killed and comes back: who held the lock holds it, and nobody else has it meanwhile.
func TestLocksOutliveAServerThatPersists(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	holder, other := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(t, other)
	<-time.After(50 * time.Millisecond)
	s.Kill(t)
	<-time.After(200 * time.Millisecond)
	s.Restart(t)
	eventually(t, "the server has the lock", func() bool { ok, err := holder.IsLocked(t.Context()); return ok && err == nil })
	if _, ok, err := other.TryLock(t.Context(), 0, 0); ok || err != nil {
		t.Errorf("TryLock of another client = %v, %v", ok, err)
	}
	if held.Err() != nil {
		t.Error("the hold has ended")
	}
	mustUnlock(t, holder, held)
	expectHeld(t, other, got)
}

// A dump brings back what has been given back since, and who has left a fair queue. Neither outlasts its lease or its patience. It also
// brings back the counter of tokens, so that those given out since come again.
func TestRestartFromAnOldDump(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	patience := redisson.FairLockWaitTimeout(time.Second)
	holder, waiter, later := newClient(t, s, patience).FairLock("k"), newClient(t, s, patience).FairLock("k"), newClient(t, s, patience).FairLock("k")
	fenced := newClient(t, s).FencedLock("f")
	number := func() int64 {
		held := mustLock(t, fenced)
		defer mustUnlock(t, fenced, held)
		token, _ := fenced.Token(held)
		return token
	}
	before := number()
	held, ok, err := holder.TryLock(t.Context(), 0, 2*time.Second)
	if err != nil || !ok {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	got := lockAsync(t, waiter)
	expectQueue(t, rdb, 1)
	check(t, rdb.Save(t.Context()).Err())
	mustUnlock(t, holder, held)
	expectHeld(t, waiter, got)
	since := number()
	if left := keys(t, rdb); len(left) != 1 { // the counter of tokens
		t.Fatalf("keys %q are left", left)
	}
	s.Kill(t)
	s.Restart(t)
	eventually(t, "the lock is back, and its queue unless that was looked after already", func() bool { return slices.Contains(keys(t, rdb), "k") })
	start := time.Now()
	held = mustLock(t, later)
	if d := ran(start); d > 10*time.Second {
		t.Errorf("waited %v for who was there before", d)
	}
	mustUnlock(t, later, held)
	if left := keys(t, rdb); len(left) != 1 {
		t.Errorf("keys %q are left", left)
	}
	if again := number(); since != before+1 || again != since {
		t.Errorf("tokens were %d, %d after the dump, and %d after the restart; want the second one again", before, since, again)
	}
}
