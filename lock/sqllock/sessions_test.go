package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// Sessions differ in what they isolate, and in how a driver asks. A pooler in transaction mode leaves nothing of a session but the
// transaction: what works in simple protocol, without prepared statements, works behind one.
func TestLocksHoldInAllSessions(t *testing.T) {
	for _, tt := range []struct {
		database
		driver, settings string
	}{
		{onPostgres, "pgx", "&default_transaction_isolation=serializable"},
		{onPostgres, "pgx", "&default_transaction_isolation=repeatable%20read"},
		{onPostgres, "pgx", "&default_query_exec_mode=simple_protocol"},
		{onPostgres, "pgx", "&default_query_exec_mode=exec"},
		{onPostgres, "postgres", ""}, // lib/pq
		{onPostgres, "postgres", "&binary_parameters=yes"},
		{onMariaDB, "mysql", "&tx_isolation=%27SERIALIZABLE%27"},
		{onMariaDB, "mysql", "&tx_isolation=%27READ-COMMITTED%27"},
		{onMariaDB, "mysql", "&interpolateParams=false"},
		{onMariaDB, "mysql", "&clientFoundRows=true&sql_mode=ANSI"},
		{onMariaDB, "mysql", "&sql_mode=%27%27&parseTime=true&loc=Asia%2FTokyo"},
	} {
		t.Run(tt.driver+" "+tt.settings, func(t *testing.T) {
			t.Parallel()
			table := tt.table(t)
			table.locks = open(t, tt.driver, table.source+tt.settings)
			contend(t, table)
		})
	}
}

// contend has many owners of several Lockers on few keys, also on rows that are not there yet.
func contend(t *testing.T, table *table) {
	const lockers, owners, keys, times = 3, 4, 3, 4
	var inside [keys]atomic.Int64
	var last [keys]atomic.Int64
	var wg sync.WaitGroup
	for range lockers {
		l := table.locker(t, sqllock.Fencing(), sqllock.Timeout(20*time.Second)) // on a busy machine
		for range owners {
			wg.Go(func() {
				for i := range keys * times {
					k := i % keys
					h, err := l.Acquire(context.Background(), lock.Request{Key: fmt.Sprint("key ", k), Kind: lock.Fenced, Wait: -1})
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside[k].Add(1); n != 1 {
						t.Errorf("%d owners hold one lock", n)
					}
					if token := h.(interface{ Token() int64 }).Token(); token <= last[k].Swap(token) {
						t.Errorf("the token %d does not follow the last one", token)
					}
					<-time.After(time.Millisecond)
					inside[k].Add(-1)
					if err := h.Release(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := table.rows(t, fmt.Sprint("token = ", lockers*owners*times)); n != keys {
		t.Errorf("%d rows have counted each stay, want %d", n, keys)
	}
	if n := table.held(t); n != 0 {
		t.Errorf("%d rows are still held", n)
	}
}

// Databases give up what waits for a row, each after a time of its own, or at once. That is no outage: the question is asked again for as
// long as it may last.
func TestARowThatOthersLockIsWaitedFor(t *testing.T) {
	settings := map[sqllock.Database]string{
		sqllock.PostgreSQL: "&lock_timeout=50",
		sqllock.MySQL:      "&innodb_lock_wait_timeout=1",
		sqllock.SQLite:     "",
	}
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		source := strings.Replace(table.source, "_pragma=busy_timeout(2000)", "_pragma=busy_timeout(0)", 1)
		table.locks = open(t, d.driver, source+settings[d.on])
		h := take(t, table.locker(t, sqllock.Timeout(20*time.Second)), lock.Request{Key: "job"})
		tx, err := table.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "UPDATE "+table.name+" SET locked_at = locked_at WHERE name = 'job'"); err != nil {
			t.Fatal(err)
		}
		extended := make(chan error, 1)
		go func() { extended <- h.(extender).Extend(context.Background(), time.Minute) }()
		select {
		case err := <-extended:
			t.Fatalf("while the row is locked: Extend() = %v", err)
		case <-time.After(1500 * time.Millisecond):
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-extended; err != nil {
			t.Errorf("after that: Extend() = %v", err)
		}
		release(t, h)
	})
}

// A TIMESTAMP of MySQL is a time of the server's zone. What the zone skips when summer time begins passes by itself: it is an outage that
// says what to do, and no refusal.
func TestHourThatTheTimeZoneSkips(t *testing.T) {
	t.Setenv("TZ", "Europe/Berlin") // for the server
	table, _ := own(t, "mariadb", services.Options{})
	table.exec(t, "DROP TABLE %s")
	table.exec(t, "CREATE TABLE %s (name VARCHAR(64) COLLATE utf8mb4_bin PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL, "+
		"locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL)")
	for _, tt := range []struct {
		now   time.Time // UTC; the server's is one hour ahead, and two from 1 o'clock on
		skips bool
	}{
		{time.Date(2026, 3, 29, 1, 50, 0, 0, time.UTC), false},
		{time.Date(2026, 3, 29, 2, 10, 0, 0, time.UTC), true},
		{time.Date(2026, 3, 29, 3, 10, 0, 0, time.UTC), false},
		{time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC), false}, // the hour that comes twice
		{time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC), false},
	} {
		db := open(t, table.driver, fmt.Sprintf("%s&timestamp=%d", table.source, tt.now.Unix()))
		l := newLocker(t, db, table.on, sqllock.Table(table.name))
		h, err := l.Acquire(t.Context(), lock.Request{Key: "job"})
		switch {
		case tt.skips && (err == nil || errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "DATETIME(3)")):
			t.Errorf("at %v: Acquire() = %v, want an outage that names DATETIME(3)", tt.now, err)
		case !tt.skips && err != nil:
			t.Errorf("at %v: Acquire() = %v", tt.now, err)
		case !tt.skips:
			busy(t, newLocker(t, db, table.on, sqllock.Table(table.name)), "job")
			release(t, h)
		}
		table.exec(t, "DELETE FROM %s")
	}
}
