package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

const columns = "name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP, locked_at TIMESTAMP, locked_by VARCHAR(255)"

// wrongTables are mistakes that people make, and what names the way out.
var wrongTables = []struct {
	name   string
	on     sqllock.Database // zero for all
	schema string
	opts   []sqllock.Option
	says   string
}{
	{"none", 0, "", nil, "CreateTable"},
	{"not ShedLock's", 0, "CREATE TABLE %s (id INTEGER PRIMARY KEY, name VARCHAR(64))", nil, "no column lock_until"},
	{"a column that must be filled", 0, "CREATE TABLE %s (" + columns + ", tenant INTEGER NOT NULL)", nil, "column tenant"},
	{"no unique key", 0, "CREATE TABLE %s (name VARCHAR(64), lock_until TIMESTAMP, locked_at TIMESTAMP, locked_by VARCHAR(255))", nil,
		"ADD PRIMARY KEY (name)"},
	{"a key of two columns", 0, "CREATE TABLE %s (name VARCHAR(64), lock_until TIMESTAMP, locked_at TIMESTAMP, locked_by VARCHAR(200), " +
		"PRIMARY KEY (name, locked_by))", nil, "ADD PRIMARY KEY (name)"},
	{"no token", 0, "CREATE TABLE %s (" + columns + ")", []sqllock.Option{sqllock.Fencing(), sqllock.CaseInsensitive()},
		"ADD COLUMN token BIGINT NOT NULL DEFAULT 0"},
	// PostgreSQL
	{"a timestamp with time zone", sqllock.PostgreSQL, "CREATE TABLE %s (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMPTZ, " +
		"locked_at TIMESTAMPTZ, locked_by VARCHAR(255))", nil, "TYPE timestamp USING"},
	{"short names", sqllock.PostgreSQL, strings.ReplaceAll("CREATE TABLE %s ("+columns+")", "64", "32"), nil, "must have 64"},
	{"short holders", sqllock.PostgreSQL, strings.ReplaceAll("CREATE TABLE %s ("+columns+")", "255", "30"), nil, "shorter Holder"},
	{"blank-padded names", sqllock.PostgreSQL, "CREATE TABLE %s (name CHAR(64) PRIMARY KEY, lock_until TIMESTAMP, locked_at TIMESTAMP, " +
		"locked_by VARCHAR(255))", nil, "must be a varchar or text"},
	{"an index of some rows", sqllock.PostgreSQL, "CREATE TABLE %s (name VARCHAR(64), lock_until TIMESTAMP, locked_at TIMESTAMP, " +
		"locked_by VARCHAR(255)); CREATE UNIQUE INDEX ON %s (name) WHERE name > 'm'", nil, "ADD PRIMARY KEY (name)"},
	// MySQL and MariaDB
	{"a collation without case", sqllock.MySQL, "CREATE TABLE %s (" + columns + ") COLLATE utf8mb4_general_ci", nil, "COLLATE utf8mb4_bin"},
	{"an engine without transactions", sqllock.MySQL, "CREATE TABLE %s (" + columns + ") COLLATE utf8mb4_bin ENGINE = MyISAM", nil,
		"ENGINE = InnoDB"},
	{"times as text", sqllock.MySQL, strings.ReplaceAll("CREATE TABLE %s ("+columns+") COLLATE utf8mb4_bin", "TIMESTAMP", "VARCHAR(30)"), nil,
		"DATETIME(3)"},
	{"a key of a part of the name", sqllock.MySQL, "CREATE TABLE %s (name VARCHAR(64), lock_until TIMESTAMP, locked_at TIMESTAMP, " +
		"locked_by VARCHAR(255), PRIMARY KEY (name(10))) COLLATE utf8mb4_bin", nil, "ADD PRIMARY KEY (name)"},
	{"names of a fixed number of bytes", sqllock.MySQL, "CREATE TABLE %s (name BINARY(64) PRIMARY KEY, lock_until DATETIME(3), " +
		"locked_at DATETIME(3), locked_by VARCHAR(255))", nil, "must be a VARCHAR (ALTER TABLE"},
	{"names as numbers", sqllock.MySQL, "CREATE TABLE %s (name INT PRIMARY KEY, lock_until DATETIME(3), locked_at DATETIME(3), " +
		"locked_by VARCHAR(255))", nil, "must be a VARCHAR (ALTER TABLE"},
	{"holders of a fixed number of bytes", sqllock.MySQL, "CREATE TABLE %s (name VARCHAR(64) COLLATE utf8mb4_bin PRIMARY KEY, " +
		"lock_until DATETIME(3), locked_at DATETIME(3), locked_by BINARY(255))", nil, "locked_by is of the type binary"},
	// SQLite
	{"names as numbers", sqllock.SQLite, "CREATE TABLE %s (name STRING PRIMARY KEY, lock_until INTEGER, locked_at INTEGER, locked_by TEXT)",
		nil, "7 and 007 are one"},
	{"times as text", sqllock.SQLite, "CREATE TABLE %s (name TEXT PRIMARY KEY, lock_until TEXT, locked_at TEXT, locked_by TEXT)", nil,
		"must be INTEGER"},
	{"times as fractions", sqllock.SQLite, "CREATE TABLE %s (name TEXT PRIMARY KEY, lock_until REAL, locked_at REAL, locked_by TEXT)", nil,
		"must be INTEGER"},
	{"a collation without case", sqllock.SQLite, "CREATE TABLE %s (name TEXT COLLATE NOCASE PRIMARY KEY, lock_until INTEGER, locked_at INTEGER, " +
		"locked_by TEXT)", nil, "collation NOCASE"},
}

// What Acquire answers for a table that can't serve is a refusal that names the way out.
func TestTablesThatCanNotServeAreRefused(t *testing.T) {
	for _, tt := range wrongTables {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range databases() {
				if tt.on != 0 && tt.on != d.on {
					continue
				}
				table := d.table(t)
				table.exec(t, "DROP TABLE %s")
				for part := range strings.SplitSeq(tt.schema, ";") {
					if part != "" {
						table.exec(t, part)
					}
				}
				l := table.locker(t, tt.opts...)
				_, err := l.Acquire(t.Context(), lock.Request{Key: "job", Wait: time.Minute})
				if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%s: Acquire() = %v, want ErrRefused that says %q", d.name, err, tt.says)
				}
				if err := l.CheckTable(t.Context()); !errors.Is(err, lock.ErrRefused) {
					t.Errorf("%s: CheckTable() = %v", d.name, err)
				}
			}
		})
	}
}

// A table that was mended serves without a new Locker, and one that goes away later is refused, too.
func TestTablesComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		table.exec(t, "DROP TABLE %s")
		l := table.locker(t)
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "job"}); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("without a table: %v, want ErrRefused", err)
		}
		if err := l.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.CreateTable(t.Context()); err != nil {
			t.Errorf("once more: %v", err)
		}
		h := take(t, l, lock.Request{Key: "job"})
		release(t, h)
		held := take(t, l, lock.Request{Key: "held"})
		table.exec(t, "DROP TABLE %s")
		if err := l.CheckTable(t.Context()); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("CheckTable() without a table: %v, want ErrRefused", err)
		}
		if err := held.Release(t.Context()); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("Release() without a table: %v, want ErrRefused", err)
		}
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "job"}); !errors.Is(err, lock.ErrRefused) {
			t.Errorf("after the table: %v, want ErrRefused", err)
		}
	})
}

func TestManyCreateTheTableAtOnce(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		table.exec(t, "DROP TABLE %s")
		errs := make(chan error, 8)
		for range cap(errs) {
			l := table.locker(t)
			go func() { errs <- l.CreateTable(context.Background()) }()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestOwnNamesOfTableAndColumns(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		table.exec(t, "DROP TABLE %s")
		l := table.locker(t, sqllock.Columns("id", "until", "since", "holder"), sqllock.Holder("web-1"), sqllock.Fencing())
		if err := l.CreateTable(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := take(t, l, lock.Request{Key: "job", Kind: lock.Fenced})
		if n := table.rows(t, "id = 'job' AND holder LIKE 'web-1:%' AND token = 1"); n != 1 {
			t.Errorf("%d such rows, want 1", n)
		}
		release(t, h)
		if n := table.rows(t, "holder LIKE 'web-1:% released'"); n != 1 {
			t.Errorf("%d rows say that they were released, want 1", n)
		}
	})
}

// A user who may only read is refused, and nobody waits for that to change.
func TestNoPermission(t *testing.T) {
	for _, tt := range []struct {
		database
		make []string
		from string // the user
	}{
		{onPostgres, []string{"CREATE ROLE reader LOGIN", "CREATE SCHEMA guarded", "CREATE TABLE guarded.%s (LIKE public.%s INCLUDING ALL)",
			"GRANT USAGE ON SCHEMA guarded TO reader", "GRANT SELECT ON guarded.%s TO reader"}, "postgres@"},
		{onMariaDB, []string{"CREATE DATABASE guarded", "CREATE TABLE guarded.%s LIKE test.%s", "CREATE USER reader@'127.0.0.1'",
			"GRANT SELECT ON guarded.%s TO reader@'127.0.0.1'"}, "root@"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := tt.table(t)
			for _, text := range tt.make {
				table.exec(t, text)
			}
			name := sqllock.Table("guarded." + table.name)
			l := newLocker(t, open(t, tt.driver, strings.Replace(table.source, tt.from, "reader@", 1)), tt.on, name)
			_, err := l.Acquire(t.Context(), lock.Request{Key: "job", Wait: -1})
			if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "GRANT SELECT, INSERT, UPDATE ON guarded."+table.name) {
				t.Errorf("Acquire() = %v, want ErrRefused that says what to grant", err)
			}
			release(t, take(t, newLocker(t, table.db, tt.on, name), lock.Request{Key: "job"}))
		})
	}
}

// A session with a time zone of its own would read a TIMESTAMP of MySQL's otherwise than everybody else.
func TestTimeZoneOfTheSession(t *testing.T) {
	zones := "&time_zone=%27%2B05%3A00%27"
	maria := onMariaDB.table(t)
	here := newLocker(t, maria.db, maria.on, sqllock.Table(maria.name))
	there := newLocker(t, open(t, maria.driver, maria.source+zones), maria.on, sqllock.Table(maria.name))
	apart(t, here, there)
	maria.exec(t, "ALTER TABLE %s MODIFY lock_until TIMESTAMP(3) NOT NULL")
	if err := there.CheckTable(t.Context()); !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "leave time_zone out") {
		t.Errorf("a TIMESTAMP and a time zone: %v, want ErrRefused", err)
	}
	if err := here.CheckTable(t.Context()); err != nil {
		t.Errorf("a TIMESTAMP in the server's time zone: %v", err)
	}
	postgres := onPostgres.table(t)
	apart(t, newLocker(t, postgres.db, postgres.on, sqllock.Table(postgres.name)),
		newLocker(t, open(t, postgres.driver, postgres.source+"&timezone=Asia/Tokyo"), postgres.on, sqllock.Table(postgres.name)))
}

// Without autocommit, a lock would be there for its own session only.
func TestSessionWithoutAutocommit(t *testing.T) {
	table := onMariaDB.table(t)
	l := newLocker(t, open(t, table.driver, table.source+"&autocommit=false"), table.on, sqllock.Table(table.name))
	if err := l.CheckTable(t.Context()); !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "leave autocommit out") {
		t.Errorf("CheckTable() = %v, want ErrRefused", err)
	}
}

// apart checks that two Lockers exclude each other, and know how long.
func apart(t *testing.T, a, b lock.Locker) {
	t.Helper()
	for _, pair := range [][2]lock.Locker{{a, b}, {b, a}} {
		h := take(t, pair[0], lock.Request{Key: "zone", Lease: time.Minute})
		_, err := pair[1].Acquire(t.Context(), lock.Request{Key: "zone"})
		b, ok := errors.AsType[*lock.BusyError](err)
		if !ok || b.Remaining > time.Minute || b.Remaining < 30*time.Second {
			t.Errorf("Acquire() = %v, want a BusyError with nearly a minute", err)
		}
		release(t, h)
	}
}

// A column without fractions rounds. The lease is never shorter for it, and a release frees at once.
func TestCoarseColumns(t *testing.T) {
	for _, tt := range []struct {
		database
		alter string
	}{
		{onPostgres, "ALTER TABLE %s ALTER COLUMN lock_until TYPE timestamp(0)"},
		{onPostgres, "ALTER TABLE %s ALTER COLUMN lock_until TYPE timestamp(3)"},
		{onMariaDB, "ALTER TABLE %s MODIFY lock_until DATETIME(0) NOT NULL"},
		{onMariaDB, "ALTER TABLE %s MODIFY lock_until DATETIME(6) NOT NULL"},
	} {
		t.Run(tt.name+" "+tt.alter, func(t *testing.T) {
			t.Parallel()
			table := tt.table(t)
			table.exec(t, tt.alter)
			s := table.locker(t).Store()
			for range 3 {
				first, next := entry(), entry()
				start := time.Now()
				if _, err := s.Take(t.Context(), first, 300*time.Millisecond); err != nil {
					t.Fatal(err)
				}
				for {
					if _, err := s.Take(t.Context(), next, time.Minute); err == nil {
						break
					} else if !errors.Is(err, lock.ErrBusy) {
						t.Fatal(err)
					}
				}
				if d := time.Since(start); d < 300*time.Millisecond {
					t.Errorf("the lease of 300ms was over after %v", d)
				}
				if err := s.Free(t.Context(), next, 0); err != nil {
					t.Fatal(err)
				}
				if err := s.(leases.Peeker).Peek(t.Context(), entry()); err != nil {
					t.Errorf("after the release: %v", err)
				}
			}
		})
	}
}

// Rows of other programs may be without an end.
func TestRowWithoutAnEnd(t *testing.T) {
	needs := map[sqllock.Database]string{
		sqllock.PostgreSQL: "ALTER TABLE %s ALTER COLUMN lock_until DROP NOT NULL",
		sqllock.MySQL:      "ALTER TABLE %s MODIFY lock_until DATETIME(3) NULL",
		sqllock.SQLite:     "UPDATE %s SET lock_until = 'tomorrow'",
	}
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		l := table.locker(t)
		release(t, take(t, l, lock.Request{Key: "job"}))
		table.exec(t, needs[d.on])
		if d.on != sqllock.SQLite {
			table.exec(t, "UPDATE %s SET lock_until = NULL")
		}
		_, err := l.Acquire(t.Context(), lock.Request{Key: "job", Wait: -1})
		if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "delete the row") {
			t.Errorf("Acquire() = %v, want ErrRefused", err)
		}
	})
}

func TestPruneDeletesOldRowsOnly(t *testing.T) {
	old := map[sqllock.Database]string{
		sqllock.PostgreSQL: "UPDATE %s SET lock_until = lock_until - interval '1 hour' WHERE name = 'old'",
		sqllock.MySQL:      "UPDATE %s SET lock_until = lock_until - INTERVAL 1 HOUR WHERE name = 'old'",
		sqllock.SQLite:     "UPDATE %s SET lock_until = lock_until - 3600000 WHERE name = 'old'",
	}
	each(t, func(t *testing.T, d database) {
		table := d.table(t)
		l := table.locker(t)
		for _, key := range []string{"old", "young"} {
			release(t, take(t, l, lock.Request{Key: key}))
		}
		held := take(t, l, lock.Request{Key: "held"})
		table.exec(t, old[d.on])
		if n, err := l.Prune(t.Context(), 30*time.Minute); n != 1 || err != nil {
			t.Errorf("Prune() = %d, %v, want 1", n, err)
		}
		if n := table.rows(t, "name = 'old'"); n != 0 {
			t.Error("the old row is still there")
		}
		release(t, held)
		release(t, take(t, l, lock.Request{Key: "old"}))
		if _, err := l.Prune(t.Context(), time.Second); err == nil {
			t.Error("Prune(1s) did it")
		}
		if _, err := table.locker(t, sqllock.Fencing()).Prune(t.Context(), time.Hour); err == nil {
			t.Error("Prune with Fencing did it")
		}
	})
}

func TestMistakesOfConfiguration(t *testing.T) {
	db := open(t, "sqlite", sqliteIn(filepath.Join(t.TempDir(), "x.db")))
	for _, tt := range []struct {
		db   *sql.DB
		on   sqllock.Database
		opts []sqllock.Option
		says string
	}{
		{nil, sqllock.SQLite, nil, "no database"},
		{db, 0, nil, "want PostgreSQL, MySQL"},
		{db, 7, nil, "database(7)"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Table("locks; DROP TABLE x")}, "letters, digits"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Columns("name", "until", "", "by")}, `column ""`},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Columns("name", "until", "Until", "by")}, "the column Until twice"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Columns("token", "until", "at", "by"), sqllock.Fencing()}, "the column token twice"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.NameLength(10)}, "at least 64"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Holder("a\nb")}, "printable"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Holder(strings.Repeat("h", 129))}, "128"},
		{db, sqllock.MySQL, []sqllock.Option{sqllock.Listen(deaf)}, "PostgreSQL"},
		{db, sqllock.PostgreSQL, []sqllock.Option{sqllock.Listen(deaf), sqllock.Table("app." + strings.Repeat("t", 55))}, "more than 54"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Watchdog(time.Millisecond)}, "under 30ms"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Timeout(time.Hour)}, "watchdog"},
		{db, sqllock.SQLite, []sqllock.Option{sqllock.Poll(0, 0)}, "pause"},
	} {
		if _, err := sqllock.New(tt.db, tt.on, tt.opts...); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("New(%v) = %v, want an error that says %q", tt.on, err, tt.says)
		}
	}
	if _, err := sqllock.New(db, sqllock.SQLite, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

// deaf is a Listener that hears nothing.
func deaf(context.Context, string, func(), func(string)) error { return nil }
