package sqllock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
