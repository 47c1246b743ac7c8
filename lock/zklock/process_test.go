package zklock_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

const short = time.Second // a session's timeout

func TestProcessesCountUnderOneLock(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	file := filepath.Join(t.TempDir(), "count")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	const processes = 3
	var all []*child
	for range processes {
		all = append(all, startChild(t, addr, root(t), 4*time.Second, "count", file))
	}
	for _, c := range all {
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("%v", err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != strconv.Itoa(processes*countRounds) {
		t.Errorf("%d processes counted to %s, %v, want %d", processes, text, err, processes*countRounds)
	}
	if names := inLine(t, root(t)+"/count"); len(names) > 0 {
		t.Errorf("%v are left in line", names)
	}
}

func TestLockOfAKilledProcessEndsWithItsSession(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	c := startChild(t, addr, root(t), short, "hold", "k")
	c.hears("held")
	l := newLocker(t, connect(t, addr))
	next := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	start := time.Now()
	c.kill()
	h := next.held()
	if d := time.Since(start); d > 3*short {
		t.Errorf("the lock is free %v after its holder was killed, whose session had a timeout of %v", d, short)
	}
	release(t, h)
}

// A process that was stopped learns of the loss when it runs again. Meanwhile, others have the lock.
func TestLockOfAStoppedProcessIsLost(t *testing.T) {
	t.Parallel()
	addr := server(t).Addr
	c := startChild(t, addr, root(t), short, "hold", "k")
	c.hears("held")
	l := newLocker(t, connect(t, addr))
	next := acquire(t, l, lock.Request{Key: "k", Wait: time.Minute})
	c.signal(syscall.SIGSTOP)
	h := next.held()
	resumed := time.Now()
	c.signal(syscall.SIGCONT)
	if d := c.hears("ended").Sub(resumed); d > short/2 {
		t.Errorf("the holder that was stopped is told %v after it goes on", d)
	}
	release(t, h)
}
