package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// inTx returns what Check says in a transaction of its own, which is rolled back.
func inTx(t *testing.T, ctx context.Context, db *sql.DB) error {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	return sqllock.Check(ctx, tx)
}

func TestCheckKnowsWhoHoldsTheLock(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		l := table.locker(t)
		if err := inTx(t, t.Context(), table.db); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("without a hold: %v, want ErrNotHeld", err)
		}
		h := take(t, l, lock.Request{Key: "job"})
		if err := inTx(t, h.Context(), table.db); err != nil {
			t.Errorf("under the hold: %v", err)
		}
		again := take2(t, h.Context(), l, "job")
		foreign := take2(t, again.Context(), memlock.New(), "other")
		second := take2(t, foreign.Context(), l, "second")
		if err := inTx(t, second.Context(), table.db); err != nil {
			t.Errorf("under several holds: %v", err)
		}
		table.exec(t, "UPDATE %s SET locked_by = 'thief' WHERE name = 'job'")
		if err := inTx(t, second.Context(), table.db); !errors.Is(err, lock.ErrLost) {
			t.Errorf("when the outer lock was stolen: %v, want ErrLost", err)
		}
		_ = again.Release(t.Context())
		_ = h.Release(t.Context())
		if err := inTx(t, h.Context(), table.db); !errors.Is(err, context.Canceled) {
			t.Errorf("after the release: %v, want the end of the context", err)
		}
		if err := sqllock.Check(second.Context(), nil); err == nil {
			t.Error("without a transaction: no error")
		}
	})
}

func take2(t *testing.T, ctx context.Context, l lock.Locker, key string) lock.Hold {
	t.Helper()
	h, err := l.Acquire(ctx, lock.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A lease that is over by the database's clock is a loss, also while nobody else has taken the lock.
func TestCheckGoesByTheDatabasesClock(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		h := take(t, table.locker(t), lock.Request{Key: "job"})
		table.exec(t, "UPDATE %s SET lock_until = locked_at WHERE name = 'job'")
		if err := inTx(t, h.Context(), table.db); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Check() = %v, want ErrLost", err)
		}
	})
}

// The transaction may have begun long before the lock was taken: what it knew then does not count.
func TestCheckInAnOldTransaction(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		if d.on == sqllock.SQLite {
			return // where an open transaction is the one writer, the lock can't be taken meanwhile
		}
		table := d.table(t)
		l := table.locker(t)
		release(t, take(t, l, lock.Request{Key: "job"}))
		tx, err := table.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "SELECT * FROM "+table.name); err != nil {
			t.Fatal(err)
		}
		h := take(t, l, lock.Request{Key: "job"})
		if err := sqllock.Check(h.Context(), tx); err != nil {
			t.Errorf("under the lock: %v", err)
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
		}
		old, err := table.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = old.Rollback() }()
		if _, err := old.ExecContext(t.Context(), "SELECT * FROM "+table.name); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
		table.exec(t, map[sqllock.Database]string{
			sqllock.PostgreSQL: "UPDATE %s SET lock_until = clock_timestamp() AT TIME ZONE 'UTC'",
			sqllock.MySQL:      "UPDATE %s SET lock_until = UTC_TIMESTAMP(3)",
		}[d.on])
		if err := sqllock.Check(h.Context(), old); !errors.Is(err, lock.ErrLost) {
			t.Errorf("after the end of the lease, which the transaction is older than: %v, want ErrLost", err)
		}
	})
}

// A lock that was lost while the work ran ends the work's context, and Check says why.
func TestCheckAfterTheContextHasEnded(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		h := take(t, table.locker(t), lock.Request{Key: "job", Lease: 50 * time.Millisecond})
		<-h.Context().Done()
		if err := inTx(t, h.Context(), table.db); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Check() = %v, want ErrLost", err)
		}
	})
}

// In SQLite, a transaction that has only read would not keep others from the lock, and it may write after Check.
func TestCheckMakesAReaderTheWriter(t *testing.T) {
	table := onSQLite.table(t)
	reader := open(t, "sqlite", strings.TrimSuffix(table.source, "&_txlock=immediate"))
	h := take(t, table.locker(t), lock.Request{Key: "job", Lease: time.Second})
	tx, err := reader.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqllock.Check(h.Context(), tx); err != nil {
		t.Fatal(err)
	}
	<-h.Context().Done()
	<-time.After(200 * time.Millisecond) // now the lease is over in the database as well
	if h, err := table.locker(t).Acquire(t.Context(), lock.Request{Key: "job"}); err == nil {
		t.Error("somebody else got the lock while the transaction was open")
		release(t, h)
	}
	if err := tx.Commit(); err != nil {
		t.Error(err)
	}
	release(t, take(t, table.locker(t), lock.Request{Key: "job", Wait: 30 * time.Second}))
}
