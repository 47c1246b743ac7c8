package sqllock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// withShedLock runs a test on each table that both sides know: that of CreateTable, and those of ShedLock's documentation.
func withShedLock(t *testing.T, test func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option)) {
	t.Helper()
	needsJava(t)
	for _, tt := range []struct {
		name     string
		database database
		schema   string // in place of CreateTable
		opts     []sqllock.Option
	}{
		{"postgres", onPostgres, "", nil},
		{"postgres, a table of ShedLock", onPostgres, `CREATE TABLE %s (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL,
			locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`, nil},
		{"mariadb", onMariaDB, "", nil},
		{"mariadb, a table of ShedLock", onMariaDB, `CREATE TABLE %s (name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL,
			locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`,
			[]sqllock.Option{sqllock.CaseInsensitive()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			table := tt.database.table(t)
			if tt.schema != "" {
				table.exec(t, "DROP TABLE %s")
				table.exec(t, tt.schema)
			}
			test(t, table, table.shedLock(t, "db"), tt.opts...)
		})
	}
}

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// busy fails unless the lock is held by somebody else.
func busy(t *testing.T, l lock.Locker, key string) {
	t.Helper()
	if _, err := l.Acquire(t.Context(), lock.Request{Key: key}); !errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire(%q) = %v, want ErrBusy", key, err)
	}
}

func take(t *testing.T, l lock.Locker, r lock.Request) lock.Hold {
	t.Helper()
	h, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire(%q) = %v", r.Key, err)
	}
	return h
}

func release(t *testing.T, h lock.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("Release() = %v", err)
	}
}

func TestShedLockAndLatchkeyExcludeEachOther(t *testing.T) {
	names := []string{"job", "a job", "orders:42", "größe", "鍵🔑", `"'\;--`, "%_", strings.Repeat("k", 64), strings.Repeat("é", 64)}
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		l := table.locker(t, opts...)
		for _, name := range names {
			if len(opts) > 0 && notASCII(name) { // the table has the server's character set, which is latin1
				if _, err := l.Acquire(t.Context(), lock.Request{Key: name}); !errors.Is(err, lock.ErrRefused) {
					t.Errorf("%q in latin1: %v, want ErrRefused", name, err)
				}
				continue
			}
			java.is(t, done, "lock", name, 60_000, 0)
			busy(t, l, name)
			java.is(t, done, "unlock", name)
			h := take(t, l, lock.Request{Key: name})
			java.is(t, "busy", "lock", name, 60_000, 0)
			release(t, h)
			java.is(t, done, "lock", name, 60_000, 0)
			java.is(t, done, "unlock", name)
		}
		if n := table.held(t); n != 0 {
			t.Errorf("%d rows are still held", n)
		}
	})
}

func notASCII(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r > 0x7f })
}

func TestShedLocksReleaseAdmitsAWaiter(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		java.is(t, done, "lock", "job", 60_000, 0)
		got := make(chan error, 1)
		l := table.locker(t, opts...)
		go func() {
			h, err := l.Acquire(t.Context(), lock.Request{Key: "job", Wait: -1})
			if err == nil {
				err = h.Release(t.Context())
			}
			got <- err
		}()
		select {
		case err := <-got:
			t.Fatalf("did not wait: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		java.is(t, done, "unlock", "job")
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}

func TestCrashOfEitherSideFreesTheLockWithItsLease(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		const lease = 1500 * time.Millisecond
		l := table.locker(t, opts...)
		start := time.Now()
		java.is(t, done, "lock", "job", lease.Milliseconds(), 0)
		granted := time.Now()
		java.kill()
		h := take(t, l, lock.Request{Key: "job", Wait: 30 * time.Second})
		if d := time.Since(start); d < lease {
			t.Errorf("the lock of the dead Java process was free after %v of %v", d, lease)
		}
		if d := time.Since(granted); d > lease+20*time.Second {
			t.Errorf("the lock of the dead Java process was free after %v", d)
		}
		release(t, h)
		if len(opts) > 0 {
			return // the second process has no options
		}
		start = time.Now()
		p := table.start(t, lease)
		p.does(t, "acquire job 10s")
		p.kill()
		next := table.shedLock(t, "db")
		for {
			next.say(t, "lock", "job", 60_000, 0)
			if next.hears(t) == done {
				break
			}
		}
		if d := time.Since(start); d < lease/3 {
			t.Errorf("the lock of the dead Go process was free after %v", d)
		}
	})
}

// Java comes back when its lease is over and somebody else has the lock.
func TestLateShedLockDoesNoHarm(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		l := table.locker(t, opts...)
		for _, late := range [][]any{{"unlock", "job"}, {"extend", "job", 60_000}} {
			java.is(t, done, "lock", "job", 200, 0)
			h := take(t, l, lock.Request{Key: "job", Wait: 30 * time.Second})
			java.say(t, late...)
			if got := java.hears(t); got != done && got != "gone" {
				t.Errorf("%v = %s", late, got)
			}
			busy(t, l, "job")
			if err := h.(extender).Extend(t.Context(), time.Minute); err != nil {
				t.Errorf("after %v of ShedLock: Extend() = %v", late, err)
			}
			release(t, h)
		}
	})
}

// ShedLock keeps a lock for lockAtLeastFor, also if the task was done earlier.
func TestLockAtLeastForIsKept(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		l := table.locker(t, opts...)
		start := time.Now()
		java.is(t, done, "lock", "job", 60_000, 1000)
		java.is(t, done, "unlock", "job")
		h := take(t, l, lock.Request{Key: "job", Wait: 30 * time.Second})
		if d := time.Since(start); d < time.Second {
			t.Errorf("the lock was free after %v, want a second", d)
		}
		// and the other way round
		if err := h.(keeper).Keep(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		java.is(t, "busy", "lock", "job", 60_000, 0)
	})
}

func TestMixedProcessesCountTogether(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		if len(opts) > 0 {
			return // the Go processes have no options: the other tables are enough
		}
		file := filepath.Join(t.TempDir(), "number")
		if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
			t.Fatal(err)
		}
		javas, gos := []*shedLock{java, table.shedLock(t, "db")}, []*process{table.start(t, time.Minute), table.start(t, time.Minute)}
		for _, p := range javas {
			p.say(t, "count", "job", file, 10)
		}
		for _, p := range gos {
			p.send(t, "count job %s 10", file)
		}
		for _, p := range javas {
			if got := p.hears(t); got != done {
				t.Errorf("Java: %s", got)
			}
		}
		for _, p := range gos {
			if got := p.answer(t); got != done {
				t.Errorf("Go: %s", got)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "40" {
			t.Errorf("counted %s, %v, want 40", got, err)
		}
	})
}

// This is why Prune says to leave it alone beside ShedLock.
func TestShedLockDoesNotGetALockWhoseRowHasGone(t *testing.T) {
	withShedLock(t, func(t *testing.T, table *table, java *shedLock, opts ...sqllock.Option) {
		java.is(t, done, "lock", "job", 60_000, 0)
		java.is(t, done, "unlock", "job")
		table.exec(t, "DELETE FROM %s")
		java.is(t, "busy", "lock", "job", 60_000, 0)
	})
}

// ShedLock has no statements for SQLite by the database's clock, and without, it takes a row that is there for a failure.
func TestShedLockDoesNotServeSQLite(t *testing.T) {
	needsJava(t)
	table := onSQLite.table(t)
	release(t, take(t, table.locker(t), lock.Request{Key: "job"}))
	for _, clock := range []string{"db", "client"} {
		java := table.shedLock(t, clock)
		java.say(t, "lock", "job", 60_000, 0)
		if got := java.hears(t); got == done || got == "busy" {
			t.Errorf("by the clock of the %s: %s, want a failure", clock, got)
		} else {
			t.Logf("by the clock of the %s: %.120s", clock, got)
		}
	}
}
