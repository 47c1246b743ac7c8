package sqllock_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"crypto/rand"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// database is a place for tables. Its server is shared by all tests of the process.
type database struct {
	name   string
	on     sqllock.Database
	driver string
	dsn    func(tb testing.TB) string
}

var (
	onPostgres = database{"postgres", sqllock.PostgreSQL, "pgx", func(tb testing.TB) string { return postgresDSN(shared(tb, "postgres").Addr) }}
	onMariaDB  = database{"mariadb", sqllock.MySQL, "mysql", func(tb testing.TB) string { return mariaDSN(shared(tb, "mariadb").Addr) }}
	onSQLite   = database{"sqlite", sqllock.SQLite, "sqlite", sqliteDSN}
)

// databases are what each test of the table runs against. MySQL is among them if LATCHKEY_MYSQL has the data source of one.
func databases() []database {
	all := []database{onPostgres, onMariaDB, onSQLite}
	if dsn := os.Getenv("LATCHKEY_MYSQL"); dsn != "" {
		all = append(all, database{"mysql", sqllock.MySQL, "mysql", func(testing.TB) string { return dsn }})
	}
	return all
}

func TestMySQL(t *testing.T) {
	if os.Getenv("LATCHKEY_MYSQL") == "" {
		t.Skip("MySQL: set LATCHKEY_MYSQL to the data source of one, such as root:secret@tcp(127.0.0.1:3306)/test; Debian has MariaDB only")
	}
}

func postgresDSN(addr string) string {
	return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
}

func mariaDSN(addr string) string {
	return "root@tcp(" + addr + ")/test?interpolateParams=true"
}

func sqliteDSN(tb testing.TB) string {
	tb.Helper()
	return sqliteIn(filepath.Join(tb.TempDir(), "locks.db"))
}

func sqliteIn(file string) string {
	return "file:" + file + "?_pragma=busy_timeout(2000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate"
}

var (
	serversMu sync.Mutex
	servers   = map[string]*services.Server{}
	failures  = map[string]error{}
	starters  = map[string]services.Starter{"postgres": services.Postgres, "mariadb": services.MariaDB}
)

// shared returns the server of that name that all tests use that do it no harm.
func shared(tb testing.TB, name string) *services.Server {
	tb.Helper()
	serversMu.Lock()
	defer serversMu.Unlock()
	if servers[name] == nil && failures[name] == nil {
		servers[name], failures[name] = starters[name](services.Options{})
	}
	switch err := failures[name]; {
	case errors.Is(err, services.ErrMissing) && !services.Required(name):
		tb.Skipf("%s: %v (LATCHKEY_REQUIRE=%s makes this a failure)", name, err, name)
	case err != nil:
		tb.Fatal(err)
	}
	return servers[name]
}

func stopServers() {
	for _, s := range servers {
		if s != nil {
			s.Stop()
		}
	}
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, d database)) {
	t.Helper()
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// open connects to a data source, and closes that when the test ends.
func open(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxIdleConns(64)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// table is a fresh table with a connection to it.
type table struct {
	database
	db     *sql.DB
	locks  *sql.DB // for Lockers
	source string
	name   string
}

func (d database) table(tb testing.TB, opts ...sqllock.Option) *table {
	tb.Helper()
	source := d.dsn(tb)
	t := &table{d, open(tb, d.driver, source), open(tb, d.driver, source), source, "locks_" + strings.ToLower(rand.Text()[:10])}
	if d.on == sqllock.SQLite {
		t.locks.SetMaxOpenConns(1)
	}
	l := t.locker(tb, opts...)
	if err := l.CreateTable(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return t
}

// locker returns a Locker on the table, with short pauses.
func (t *table) locker(tb testing.TB, opts ...sqllock.Option) *sqllock.Locker {
	tb.Helper()
	return newLocker(tb, t.locks, t.on, append([]sqllock.Option{sqllock.Table(t.name), quickly}, opts...)...)
}

var quickly = sqllock.Poll(5*time.Millisecond, 5*time.Millisecond)

func newLocker(tb testing.TB, db *sql.DB, on sqllock.Database, opts ...sqllock.Option) *sqllock.Locker {
	tb.Helper()
	l, err := sqllock.New(db, on, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// exec runs a statement in the test's own words; %s is the table.
func (t *table) exec(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if _, err := t.db.ExecContext(tb.Context(), strings.ReplaceAll(format, "%s", t.name), args...); err != nil {
		tb.Fatal(err)
	}
}

// rows counts the rows of the table that have a condition.
func (t *table) rows(tb testing.TB, where string) (n int) {
	tb.Helper()
	if err := t.db.QueryRowContext(tb.Context(), fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE %s", t.name, where)).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// held counts the rows whose lease is not over.
func (t *table) held(tb testing.TB) int {
	tb.Helper()
	return t.rows(tb, map[sqllock.Database]string{
		sqllock.PostgreSQL: "lock_until > clock_timestamp() AT TIME ZONE 'UTC'",
		sqllock.MySQL:      "lock_until > UTC_TIMESTAMP(6)",
		sqllock.SQLite:     "lock_until > unixepoch('subsec') * 1000",
	}[t.on])
}
