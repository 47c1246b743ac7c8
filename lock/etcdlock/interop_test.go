package etcdlock_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

func TestMutexAndOursExcludeEachOther(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	l := locker(t, client)
	peer := startWorker(t, c.Endpoints()...)
	for _, key := range []string{"interop", "interop/with/slashes", "/interop/rooted"} {
		peer.does("mutex-lock "+key, "held")
		fails(t, l, lock.Request{Key: key}, lock.ErrBusy)
		fails(t, l, lock.Request{Key: key, Kind: lock.Read}, lock.ErrUnsupported) // a Mutex is an exclusive lock
		ours := background(t.Context(), l, lock.Request{Key: key, Wait: -1})
		waiting(t, client, key, 2)
		peer.does("mutex-unlock "+key, "released")

		h := held(t, ours)
		peer.does("mutex-try "+key, "busy")
		peer.send("mutex-lock %s", key)
		waiting(t, client, key, 2)
		peer.silent()
		release(t, h)
		peer.says("held")
		peer.does("mutex-unlock "+key, "released")
		if left := line(t, client, key); len(left) > 0 {
			t.Errorf("%s: left behind: %q", key, left)
		}
	}
}

// A Mutex can't be told that readers may share, so it waits for the last of them.
func TestMutexWaitsForReadersAndPermits(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	l := locker(t, client)
	peer := startWorker(t, c.Endpoints()...)
	for _, r := range []lock.Request{{Key: "peer-readers", Kind: lock.Read}, {Key: "peer-permits", Kind: lock.Permit, Limit: 5}} {
		first, second := acquire(t, l, r), acquire(t, l, r)
		peer.does("mutex-try "+r.Key, "busy")
		peer.send("mutex-lock %s", r.Key)
		waiting(t, client, r.Key, 3)
		release(t, second)
		waiting(t, client, r.Key, 2)
		peer.silent()
		release(t, first)
		peer.says("held")
		fails(t, l, r, lock.ErrUnsupported)
		peer.does("mutex-unlock "+r.Key, "released")
		release(t, acquire(t, l, r))
	}
}

func TestLockEndsWithACrashedMutex(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	peer := startWorker(t, c.Endpoints()...)
	peer.does("mutex-lock crashed-peer", "held")
	ours := background(t.Context(), locker(t, client), lock.Request{Key: "crashed-peer", Wait: -1})
	waiting(t, client, "crashed-peer", 2)
	peer.signal(syscall.SIGKILL)
	release(t, held(t, ours))
}

func TestMutexGetsTheLockOfACrashedHolder(t *testing.T) {
	parallel(t)
	c := single(t)
	client := dial(t, c.Endpoints()...)
	ours, peer := startWorker(t, c.Endpoints()...), startWorker(t, c.Endpoints()...)
	ours.does("lock crashed-ours", "held")
	peer.send("mutex-lock crashed-ours")
	waiting(t, client, "crashed-ours", 2)
	start := time.Now()
	ours.signal(syscall.SIGKILL)
	peer.says("held")
	if took := time.Since(start); took > workerWatchdog+2*time.Second {
		t.Errorf("a lease of %v ended after %v", workerWatchdog, took)
	}
}

func TestFourProcessesCountTogether(t *testing.T) {
	parallel(t)
	const turns = 50
	c := single(t)
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	if err := os.WriteFile(count, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*worker
	for _, command := range []string{"count", "mutex-count", "count", "mutex-count"} {
		w := startWorker(t, c.Endpoints()...)
		w.send("%s together %d %s", command, turns, dir)
		all = append(all, w)
	}
	for _, w := range all {
		w.says("counted")
	}
	if got, err := os.ReadFile(count); err != nil || string(got) != "200" {
		t.Errorf("count = %s, %v, want %d", got, err, 4*turns)
	}
}
