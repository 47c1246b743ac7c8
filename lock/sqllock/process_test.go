package sqllock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

func TestProcessesExcludeEachOther(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		file := filepath.Join(t.TempDir(), "number")
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		const processes, times = 3, 15
		var all []*process
		for range processes {
			p := table.start(t, time.Minute)
			p.send(t, "count job %s %d", file, times)
			all = append(all, p)
		}
		for _, p := range all {
			if got := p.answer(t); got != done {
				t.Error(got)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "45" {
			t.Errorf("counted %s, %v, want %d", got, err, processes*times)
		}
		if n, m := table.rows(t, "1 = 1"), table.held(t); n != 1 || m != 0 {
			t.Errorf("%d rows, %d of them held", n, m)
		}
	})
}

func TestLockOfAKilledProcessEndsWithItsLease(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		const watchdog = time.Second
		p := table.start(t, watchdog)
		p.does(t, "acquire job 10s")
		l := table.locker(t)
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "job"}); !errors.Is(err, lock.ErrBusy) {
			t.Fatalf("Acquire() = %v, want ErrBusy", err)
		}
		renewed := time.Now()
		p.kill()
		h, err := l.Acquire(t.Context(), lock.Request{Key: "job", Wait: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Since(renewed); after < watchdog/3 { // it renews every third of it
			t.Errorf("the lock of the dead process was free after %v", after)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// dataTable makes a table for the work under a lock.
func (t *table) dataTable(tb testing.TB) string {
	tb.Helper()
	t.exec(tb, "CREATE TABLE %s_data (x integer)")
	return t.name + "_data"
}

func (t *table) written(tb testing.TB) (n int) {
	tb.Helper()
	if err := t.db.QueryRowContext(tb.Context(), "SELECT COUNT(*) FROM "+t.name+"_data").Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// A process is stopped in its work for longer than its lease. Meanwhile another one gets the lock. What the first one wanted to
// write is not committed, as it checks the lock in the transaction.
func TestNothingCommitsAfterTheLoss(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		data := table.dataTable(t)
		p := table.start(t, time.Second)
		p.does(t, "acquire job 10s")
		if d.on != sqllock.SQLite { // where an open transaction keeps all others from writing
			p.does(t, "begin %s", data)
		}
		p.signal(t, syscall.SIGSTOP)
		h, err := table.locker(t).Acquire(t.Context(), lock.Request{Key: "job", Wait: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		p.signal(t, syscall.SIGCONT)
		if d.on == sqllock.SQLite {
			p.does(t, "begin %s", data)
		}
		p.send(t, "check")
		if got := p.answer(t); !strings.Contains(got, "lock: ") {
			t.Errorf("Check after the loss = %s, want ErrLost or ErrNotHeld", got)
		}
		p.does(t, "rollback")
		if n := table.written(t); n != 0 {
			t.Errorf("%d rows were committed", n)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A process is stopped between Check and Commit, for longer than its lease. Nobody gets the lock before the transaction has ended.
func TestNobodyGetsTheLockBetweenCheckAndCommit(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		p := table.start(t, time.Second)
		p.does(t, "acquire job 10s")
		p.does(t, "begin %s", table.dataTable(t))
		p.does(t, "check")
		p.signal(t, syscall.SIGSTOP)
		seen := make(chan int, 1)
		go func() {
			l := table.locker(t, sqllock.Timeout(30*time.Second), sqllock.Watchdog(time.Minute))
			h, err := l.Acquire(context.Background(), lock.Request{Key: "job", Wait: -1})
			if err != nil {
				t.Error(err)
				close(seen)
				return
			}
			seen <- table.written(t)
			_ = h.Release(context.Background())
		}()
		select {
		case <-seen:
			t.Fatal("the lock was taken while the transaction was open")
		case <-time.After(2 * time.Second): // twice the lease
		}
		p.signal(t, syscall.SIGCONT)
		p.does(t, "commit")
		if n := <-seen; n != 1 {
			t.Errorf("the next holder saw %d rows, want 1", n)
		}
	})
}
