package redisson_test

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A server that writes everything to its disk is killed and comes back: who held the lock holds it, and nobody else has it meanwhile.
func TestLocksOutliveAServerThatPersists(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	holder, other := newClient(t, s).Lock("k"), newClient(t, s).Lock("k")
	held := mustLock(t, holder)
	got := lockAsync(other)
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
