package mongolock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

func TestProcessesExcludeEachOther(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	file := filepath.Join(t.TempDir(), "number")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes, rounds = 3, 15
	j := job{URI: serverURI(t), Collection: coll.Name(), Key: "order:1", Watchdog: 10 * time.Second, File: file, Rounds: rounds}
	var all []*process
	for range processes {
		all = append(all, start(t, j))
	}
	for _, p := range all {
		p.says(t, "released")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(string(text)); n != processes*rounds {
		t.Errorf("the number is %s, want %d: somebody came in between", text, processes*rounds)
	}
	if n := count(t, coll); n != 0 {
		t.Errorf("%d documents are left behind", n)
	}
}

func TestLockOfAKilledProcessEndsWithItsLease(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	const lease = 2 * time.Second
	p := start(t, job{URI: serverURI(t), Collection: coll.Name(), Key: "k", Watchdog: lease})
	p.says(t, "held")
	p.signal(t, syscall.SIGKILL)
	killed := time.Now()
	locker := newLocker(t, coll, quick)
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(killed); waited < lease/2 { // it was renewed from a third of the lease on
		t.Errorf("had the lock %v after its holder was killed; its lease is %v", waited, lease)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if n := count(t, coll); n != 0 {
		t.Errorf("%d documents are left behind", n)
	}
}

func TestPausedProcessIsToldOfItsLoss(t *testing.T) {
	t.Parallel()
	coll := newCollection(t)
	p := start(t, job{URI: serverURI(t), Collection: coll.Name(), Key: "k", Watchdog: 2 * time.Second})
	p.says(t, "held")
	p.signal(t, syscall.SIGSTOP)
	locker := newLocker(t, coll, quick)
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGCONT)
	p.says(t, "lost")
	p.says(t, "released")
	if err := hold.Release(t.Context()); err != nil { // whatever the other one did to its lock
		t.Error(err)
	}
}

func TestLockSurvivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	s := ownServer(t, durable()...)
	coll := collectionAt(t, uriOf(s.Addr))
	locker := newLocker(t, coll, quick, mongolock.Watchdog(20*time.Second))
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	other := newLocker(t, collectionOf(t, uriOf(s.Addr), coll.Name()), quick, mongolock.Timeout(time.Second))
	if _, err := other.Acquire(t.Context(), lock.Request{Key: "k", Wait: 100 * time.Millisecond}); !isOutage(err) {
		t.Errorf("Acquire() without a server = %v, want an outage", err)
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), lock.Request{Key: "k", Wait: 3 * time.Second}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire() after the restart = %v, want ErrBusy", err)
	}
	if err := hold.(extender).Extend(t.Context(), 20*time.Second); err != nil {
		t.Errorf("Extend() after the restart = %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestHolderIsToldWhileTheServerIsSilent(t *testing.T) {
	t.Parallel()
	s := ownServer(t, durable()...)
	coll := collectionAt(t, uriOf(s.Addr))
	const lease = 3 * time.Second
	locker := newLocker(t, coll, mongolock.Watchdog(lease), mongolock.Timeout(time.Second))
	asked := time.Now()
	hold, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := locker.Acquire(t.Context(), lock.Request{Key: "renewed"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	paused := time.Now()
	if _, err := locker.Acquire(t.Context(), lock.Request{Key: "other"}); !isOutage(err) {
		t.Errorf("Acquire() = %v, want an outage", err)
	}
	if waited := time.Since(paused); waited > 10*time.Second {
		t.Errorf("the outage took %v, with a timeout of 1s", waited)
	}
	for _, h := range []lock.Hold{hold, renewed} {
		<-h.Context().Done()
		if err := context.Cause(h.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the hold ended with %v", err)
		}
	}
	if took := time.Since(asked); took > 3*lease {
		t.Errorf("told after %v of a lease of %v", took, lease)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	again, err := locker.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
