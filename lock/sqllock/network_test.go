package sqllock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// far is a table, and a way to it that can be broken. What goes to the server can be told by parts of it: PostgreSQL's driver sends the
// text of a statement once and then its arguments, MariaDB's sends texts with the arguments in them.
type far struct {
	*table
	proxy             *redistest.Proxy
	take, renew, free string
}

// farKey is the key of a lock in a table that far returns.
const farKey = "a far away job"

func overTheNetwork(t *testing.T, test func(t *testing.T, f *far)) {
	t.Helper()
	parts := map[string][3]string{
		"postgres": {farKey, farKey, farKey},
		"mariadb":  {"locked_at = UTC", "GREATEST", " released"},
	}
	for _, d := range []database{onPostgres, onMariaDB} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			table := d.table(t)
			release(t, take(t, table.locker(t, sqllock.Fencing()), lock.Request{Key: farKey, Kind: lock.Fenced})) // token 1
			addr := shared(t, d.name).Addr
			proxy := (&redistest.Server{Addr: addr}).Front(t)
			table.locks = open(t, d.driver, strings.Replace(table.source, addr, proxy.Addr, 1))
			p := parts[d.name]
			test(t, &far{table, proxy, p[0], p[1], p[2]})
		})
	}
}

// near is a Locker that goes past the proxy.
func (f *far) near(t *testing.T) *sqllock.Locker {
	t.Helper()
	return newLocker(t, f.db, f.on, sqllock.Table(f.name), quickly)
}

// warm has the connection and its statements ready, so that what follows is the lock's own traffic.
func (f *far) warm(t *testing.T, l lock.Locker) {
	t.Helper()
	release(t, take(t, l, lock.Request{Key: "another job"}))
}

func (f *far) cutOnce(t *testing.T) {
	t.Helper()
	if n := f.proxy.Cuts(); n != 0 {
		t.Errorf("%d requests are still to lose their answers", n)
	}
}

func TestLostAnswerOfAnAcquireThatWaits(t *testing.T) {
	overTheNetwork(t, func(t *testing.T, f *far) {
		l := f.locker(t, sqllock.Fencing())
		f.warm(t, l)
		f.proxy.CutReply(f.take, 1)
		h := take(t, l, lock.Request{Key: farKey, Kind: lock.Fenced, Wait: 30 * time.Second})
		f.cutOnce(t)
		if token := h.(interface{ Token() int64 }).Token(); token < 2 {
			t.Errorf("token %d after 1", token)
		}
		busy(t, f.near(t), farKey)
		release(t, h)
		release(t, take(t, f.near(t), lock.Request{Key: farKey}))
	})
}

// An Acquire that fails leaves nothing behind, also when the database had taken the lock for it.
func TestLostAnswerOfAnAcquireThatDoesNotWait(t *testing.T) {
	overTheNetwork(t, func(t *testing.T, f *far) {
		l := f.locker(t)
		f.warm(t, l)
		f.proxy.CutReply(f.take, 1)
		if _, err := l.Acquire(t.Context(), lock.Request{Key: farKey}); err == nil || errors.Is(err, lock.ErrBusy) || errors.Is(err, lock.ErrRefused) {
			t.Fatalf("Acquire() = %v, want an outage", err)
		}
		f.cutOnce(t)
		start := time.Now()
		release(t, take(t, f.near(t), lock.Request{Key: farKey, Wait: 25 * time.Second})) // the lease is 30s
		t.Logf("free after %v", time.Since(start))
	})
}

func TestLostAnswersOfReleaseAndRenewal(t *testing.T) {
	overTheNetwork(t, func(t *testing.T, f *far) {
		const watchdog = 3 * time.Second
		l := f.locker(t, sqllock.Watchdog(watchdog))
		f.warm(t, l)
		h := take(t, l, lock.Request{Key: farKey})
		f.proxy.CutReply(f.renew, 1)
		select {
		case <-h.Context().Done():
			t.Errorf("lost: %v", context.Cause(h.Context()))
		case <-time.After(watchdog + watchdog/2):
		}
		f.cutOnce(t)
		f.proxy.CutReply(f.free, 1)
		_ = h.Release(t.Context()) // may say that it had no answer
		release(t, take(t, f.near(t), lock.Request{Key: farKey, Wait: 30 * time.Second}))
		f.cutOnce(t)
	})
}

// While nothing comes through, the holder is told before anybody else gets the lock, and nobody waits for ever.
func TestNetworkCut(t *testing.T) {
	overTheNetwork(t, func(t *testing.T, f *far) {
		l := f.locker(t, sqllock.Watchdog(2*time.Second), sqllock.Timeout(time.Second))
		h := take(t, l, lock.Request{Key: farKey})
		f.proxy.Freeze()
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "another job"}); err == nil || errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire() = %v, want an outage", err)
		}
		other := take(t, f.near(t), lock.Request{Key: farKey, Wait: 30 * time.Second})
		if err := context.Cause(h.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("somebody else has the lock, and the holder's context ended with %v", err)
		}
		f.proxy.Thaw()
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
		busy(t, f.near(t), farKey)
		release(t, other)
		release(t, take(t, l, lock.Request{Key: farKey, Wait: 30 * time.Second}))
	})
}

func TestSlowNetwork(t *testing.T) {
	overTheNetwork(t, func(t *testing.T, f *far) {
		l := f.locker(t, sqllock.Watchdog(4*time.Second))
		f.warm(t, l)
		f.proxy.Delay(100 * time.Millisecond) // each way
		h := take(t, l, lock.Request{Key: farKey, Wait: 10 * time.Second})
		select {
		case <-h.Context().Done():
			t.Errorf("lost: %v", context.Cause(h.Context()))
		case <-time.After(5 * time.Second):
		}
		busy(t, f.near(t), farKey)
		release(t, h)
		f.proxy.Delay(0)
	})
}
