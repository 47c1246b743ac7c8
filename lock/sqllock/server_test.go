package sqllock_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// own is a table on a server that the test may break.
func own(t *testing.T, name string, o services.Options) (*table, *services.Server) {
	t.Helper()
	s := services.Start(t, name, starters[name], o)
	d := map[string]database{"postgres": onPostgres, "mariadb": onMariaDB}[name]
	d.dsn = func(testing.TB) string {
		if name == "postgres" {
			return postgresDSN(s.Addr)
		}
		return mariaDSN(s.Addr)
	}
	return d.table(t), s
}

// eachServer runs a test on a server of its own of each sort.
func eachServer(t *testing.T, test func(t *testing.T, name string)) {
	t.Helper()
	for name := range starters {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, name)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A restart that is over before the lease costs nothing: the row is still there.
func TestServerRestarts(t *testing.T) {
	eachServer(t, func(t *testing.T, name string) {
		table, server := own(t, name, services.Options{})
		l := table.locker(t, sqllock.Watchdog(time.Minute))
		h := take(t, l, lock.Request{Key: "job"})
		waiter := make(chan error, 1)
		go func() {
			h, err := table.locker(t, sqllock.Watchdog(time.Minute), sqllock.Timeout(time.Minute)).Acquire(context.Background(),
				lock.Request{Key: "job", Wait: 2 * time.Minute})
			if err == nil {
				err = h.Release(context.Background())
			}
			waiter <- err
		}()
		must(t, server.Kill())
		if _, err := table.locker(t).Acquire(t.Context(), lock.Request{Key: "other"}); err == nil || errors.Is(err, lock.ErrBusy) {
			t.Errorf("without a server: %v, want an outage", err)
		}
		must(t, server.Run())
		if err := h.(extender).Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("after the restart: Extend() = %v", err)
		}
		busy(t, table.locker(t), "job")
		release(t, h)
		if err := <-waiter; err != nil {
			t.Errorf("the waiter: %v", err)
		}
	})
}

// A server that answers nobody: the holder is told in time.
func TestServerStops(t *testing.T) {
	eachServer(t, func(t *testing.T, name string) {
		table, server := own(t, name, services.Options{})
		const watchdog = time.Second
		h := take(t, table.locker(t, sqllock.Watchdog(watchdog)), lock.Request{Key: "job"})
		start := time.Now()
		must(t, server.Pause())
		<-h.Context().Done()
		if err := context.Cause(h.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("the context ended with %v", err)
		}
		if d := time.Since(start); d > 3*watchdog {
			t.Errorf("told after %v of a lease of %v", d, watchdog)
		}
		must(t, server.Resume())
		release(t, take(t, table.locker(t), lock.Request{Key: "job", Wait: 30 * time.Second}))
	})
}

// The standby can be read, and takes no locks before it is the primary. Then it has those that were replicated.
func TestFailover(t *testing.T) {
	table, primary := own(t, "postgres", services.Options{})
	standby, err := services.PostgresStandby(primary, services.Options{})
	must(t, err)
	t.Cleanup(standby.Stop)
	both := "postgres://postgres@" + primary.Addr + "," + standby.Addr + "/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
	table.locks = open(t, "pgx", both)
	l := table.locker(t, sqllock.Watchdog(time.Minute))
	h := take(t, l, lock.Request{Key: "job"})
	reader := open(t, "pgx", postgresDSN(standby.Addr))
	copied := func() (n int) { // fails while the table is not there yet
		_ = reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table.name+" WHERE locked_by NOT LIKE '%released'").Scan(&n)
		return n
	}
	for copied() == 0 {
		<-time.After(10 * time.Millisecond)
	}
	onStandby := newLocker(t, reader, sqllock.PostgreSQL, sqllock.Table(table.name))
	if rest := remaining(t, onStandby, "job"); rest > time.Minute {
		t.Errorf("on a standby, the lock is held for %v", rest)
	}
	if _, err := onStandby.Acquire(t.Context(), lock.Request{Key: "other"}); err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) {
		t.Errorf("on a standby: %v, want an outage, which a promotion ends", err)
	}
	must(t, primary.Kill())
	must(t, standby.Promote())
	extended := h.(extender).Extend(t.Context(), time.Minute)
	for range 10 { // once for each connection to the old primary
		if extended != nil {
			extended = h.(extender).Extend(t.Context(), time.Minute)
		}
	}
	if extended != nil {
		t.Errorf("after the failover: Extend() = %v", extended)
	}
	busy(t, onStandby, "job")
	release(t, h)
	release(t, take(t, onStandby, lock.Request{Key: "other"}))
}

// clock is the wall clock of a server. It uses the library of this repository's faults.
type clock struct {
	file *os.File
	env  []string
}

func newClock(t *testing.T) *clock {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("needs a C compiler for the library that sets a server's clock: ", err)
	}
	dir, err := os.MkdirTemp("", "latchkey-clock-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // the server is another user's
	library := filepath.Join(dir, "clock.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O2", "-o", library, "../../faults/clock/preload/clock.c").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	file, err := os.OpenFile(filepath.Join(dir, "clock"), os.O_CREATE|os.O_RDWR, 0o644) //nolint:gosec // as above
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	c := &clock{file, []string{"LD_PRELOAD=" + library, "LATCHKEY_CLOCK=" + file.Name()}}
	c.set(t, 0)
	return c
}

// set has the clock go ahead by d.
func (c *clock) set(t *testing.T, d time.Duration) {
	t.Helper()
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d)), 0)
	must(t, err)
}

// A step ahead ends leases early. Nobody can keep others from the lock then, but the holder is told at the next renewal, and Check
// knows it at once. After a step back a live holder goes on and can release; the lease of a dead one is longer by the step.
func TestClockOfTheDatabaseSteps(t *testing.T) {
	eachServer(t, func(t *testing.T, name string) {
		c := newClock(t)
		table, _ := own(t, name, services.Options{Env: c.env})
		const watchdog = 3 * time.Second
		l := table.locker(t, sqllock.Watchdog(watchdog))
		h := take(t, l, lock.Request{Key: "ahead"})
		c.set(t, time.Hour)
		other := take(t, table.locker(t), lock.Request{Key: "ahead"})
		if err := inTx(t, context.WithoutCancel(h.Context()), table.db); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Check() = %v, want ErrLost", err)
		}
		select {
		case <-h.Context().Done():
		case <-time.After(watchdog):
			t.Error("not told at the next renewal")
		}
		release(t, other)

		live := take(t, l, lock.Request{Key: "live"})
		dead := entry()
		dead.Key = "dead " + rand.Text()
		_, err := table.locker(t).Store().Take(t.Context(), dead, time.Minute)
		must(t, err)
		c.set(t, 0)
		if rest := remaining(t, table.locker(t), dead.Key); rest < time.Hour || rest > time.Hour+time.Minute {
			t.Errorf("the dead holder's lease goes on for %v, want an hour more than it was", rest)
		}
		select {
		case <-live.Context().Done():
		case <-time.After(watchdog + watchdog/2):
		}
		if live.Context().Err() != nil {
			t.Errorf("the live holder lost the lock: %v", context.Cause(live.Context()))
		}
		release(t, live)
		release(t, take(t, table.locker(t), lock.Request{Key: "live"}))
	})
}

// remaining returns for how long a lock is held that is not free.
func remaining(t *testing.T, l *sqllock.Locker, key string) time.Duration {
	t.Helper()
	b, ok := errors.AsType[*lock.BusyError](l.Peek(t.Context(), lock.Request{Key: key}))
	if !ok {
		t.Fatalf("%s is free", strings.Fields(key)[0])
	}
	return b.Remaining
}
