package sqllock_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

// pair is a writer that becomes read-only and another server that takes its place, both behind one address, as a service name is or a
// proxy for TCP.
type pair struct {
	*table
	front    *redistest.Relay
	refusals atomic.Int64 // answers of a server that can't be written
	demote   func(t *testing.T)
	next     string // the address of the other server
}

const pooled = 10

// newPair returns a pair of which a pool of the driver has connections to the writer only.
func newPair(t *testing.T, driver string) *pair {
	t.Helper()
	if driver == "mysql" {
		return mariaPair(t)
	}
	return postgresPair(t, driver)
}

func postgresPair(t *testing.T, driver string) *pair {
	table, writer := own(t, "postgres", services.Options{})
	standby, err := services.PostgresStandby(writer, services.Options{})
	must(t, err)
	t.Cleanup(standby.Stop)
	p := &pair{table: table, next: standby.Addr}
	p.serve(t, writer.Addr, "C25006\x00")
	p.locks = open(t, driver, postgresDSN(p.front.Addr))
	p.demote = func(t *testing.T) {
		reader := open(t, "pgx", postgresDSN(standby.Addr))
		rows := table.rows(t, "true")
		for copied := -1; copied != rows; <-time.After(10 * time.Millisecond) {
			_ = reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table.name).Scan(&copied) // fails while there is no table
		}
		table.exec(t, "ALTER SYSTEM SET default_transaction_read_only = on")
		table.exec(t, "SELECT pg_reload_conf()")
		p.pooled(t, func(c *sql.Conn) {
			for mode := ""; mode != "on"; <-time.After(time.Millisecond) {
				must(t, c.QueryRowContext(t.Context(), "SHOW default_transaction_read_only").Scan(&mode))
			}
		})
		must(t, standby.Promote())
	}
	return p
}

// The servers have the same table, and what is in it is not copied. A superuser may write on one that is read-only.
func mariaPair(t *testing.T) *pair {
	table, writer := own(t, "mariadb", services.Options{})
	other, next := own(t, "mariadb", services.Options{})
	other.name = table.name
	must(t, other.locker(t).CreateTable(t.Context()))
	for _, on := range []*sql.DB{table.db, other.db} {
		_, err := on.ExecContext(t.Context(), "CREATE USER app")
		must(t, err)
		_, err = on.ExecContext(t.Context(), "GRANT SELECT, INSERT, UPDATE ON test.* TO app")
		must(t, err)
	}
	p := &pair{table: table, next: next.Addr}
	p.serve(t, writer.Addr, "\xff\x0a\x05#")
	p.locks = open(t, "mysql", strings.Replace(mariaDSN(p.front.Addr), "root@", "app@", 1))
	p.demote = func(t *testing.T) { table.exec(t, "SET GLOBAL read_only = 1") }
	return p
}

// serve begins to lead connections to the writer, and counts its answers with refusal in them.
func (p *pair) serve(t *testing.T, writer, refusal string) {
	t.Helper()
	var err error
	p.front, err = redistest.Listen(writer, func(client, server net.Conn) (up, down func()) {
		return func() { carry(server, client, func([]byte) {}) }, func() {
			carry(client, server, func(b []byte) {
				if bytes.Contains(b, []byte(refusal)) {
					p.refusals.Add(1)
				}
			})
		}
	})
	must(t, err)
	t.Cleanup(p.front.Close)
}

func carry(to, from net.Conn, see func([]byte)) {
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		see(b[:n])
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// pooled has all connections of the pool at once, and gives them back.
func (p *pair) pooled(t *testing.T, do func(*sql.Conn)) {
	t.Helper()
	for range pooled {
		c, err := p.locks.Conn(t.Context())
		must(t, err)
		defer c.Close()
		do(c)
	}
}

// A server that can't be written anymore is left without a pause: the old connections are used up at once, and a new one leads to the writer.
func TestADemotedWriterIsLeftAtOnce(t *testing.T) {
	for _, tt := range []struct {
		driver  string
		callers int
	}{{"pgx", 1}, {"pgx", 3 * pooled}, {"postgres", 1}, {"mysql", 1}, {"mysql", 3 * pooled}} {
		t.Run(fmt.Sprint(tt.driver, " ", tt.callers), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, tt.driver)
			l := p.locker(t)
			release(t, take(t, l, lock.Request{Key: "before"}))
			h := take(t, l, lock.Request{Key: "job"})
			p.pooled(t, func(c *sql.Conn) { must(t, c.PingContext(t.Context())) })
			p.demote(t)
			p.front.Point(p.next)
			start := time.Now()
			var callers sync.WaitGroup
			for i := range tt.callers {
				callers.Go(func() {
					other, err := l.Acquire(t.Context(), lock.Request{Key: fmt.Sprint("other", i)})
					if err != nil {
						t.Error(err)
						return
					}
					if err := other.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
			t.Logf("%v, %d refusals", time.Since(start), p.refusals.Load())
			if n := p.refusals.Load(); n > pooled {
				t.Errorf("%d refusals, of %d old connections", n, pooled)
			}
			if p.on == sqllock.PostgreSQL { // the hold was replicated
				must(t, h.(extender).Extend(t.Context(), time.Minute))
			}
			_ = h.Release(t.Context())
		})
	}
}

// Until there is a writer, new connections are refused, too. That is an outage which says so, after few of them, and a wait outlasts it.
func TestThereIsNoWriterForAWhile(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, driver)
			l := p.locker(t, sqllock.Timeout(20*time.Second))
			release(t, take(t, l, lock.Request{Key: "before"}))
			p.demote(t)
			for _, wait := range []time.Duration{0, time.Second} {
				_, made := p.front.Connections()
				start := time.Now()
				_, err := l.Acquire(t.Context(), lock.Request{Key: "other", Wait: wait})
				_, now := p.front.Connections()
				t.Logf("after %v and %d connections: %v", time.Since(start), now-made, err)
				text, number := sqllock.CodeOf(err)
				if errors.Is(err, lock.ErrRefused) || text != "25006" && number != 1290 || now-made > 12 {
					t.Errorf("Acquire() = %v, want an outage that says why; %d new connections", err, now-made)
				}
			}
			waiter := make(chan error, 1)
			go func() {
				h, err := l.Acquire(context.Background(), lock.Request{Key: "job", Wait: time.Minute})
				if err == nil {
					err = h.Release(context.Background())
				}
				waiter <- err
			}()
			<-time.After(700 * time.Millisecond)
			start := time.Now()
			p.front.Point(p.next)
			must(t, <-waiter)
			if took := time.Since(start); took > time.Second {
				t.Errorf("the waiter had the lock %v after there was a writer", took)
			}
		})
	}
}

// MariaDB and MySQL are asked by a plain read whether a lock is held. A writer that was demoted says so for as long as its copy of the lease
// lasts, and is left, too. It is believed where there is no other, as by a user who may write although it is read-only.
func TestADemotedWriterKeepsNobodyWaiting(t *testing.T) {
	p := newPair(t, "mysql")
	p.exec(t, "INSERT INTO %s (name, lock_until, locked_at, locked_by) VALUES ('job', '2099-01-01', '2026-01-01', 'somebody')")
	p.pooled(t, func(c *sql.Conn) { must(t, c.PingContext(t.Context())) })
	p.demote(t)
	p.front.Point(p.next)
	release(t, take(t, p.locker(t), lock.Request{Key: "job"}))
	p.locks = p.db
	busy(t, p.locker(t), "job")
	release(t, take(t, p.locker(t), lock.Request{Key: "other"}))
}

// A server that ends connections, as when it shuts down, costs no question, whatever it had done by then.
func TestConnectionsThatTheServerEndsAreReplacedAtOnce(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres", "mysql"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, driver)
			l := p.locker(t)
			h := take(t, l, lock.Request{Key: "job"})
			ends := func() {
				p.pooled(t, func(c *sql.Conn) { must(t, c.PingContext(t.Context())) })
				if p.on == sqllock.MySQL {
					p.exec(t, "KILL USER app")
				} else {
					p.exec(t, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
				}
				for open := 1; open > 0; <-time.After(time.Millisecond) {
					open, _ = p.front.Connections()
				}
			}
			ends()
			other := take(t, l, lock.Request{Key: "other"})
			ends()
			must(t, h.(extender).Extend(t.Context(), time.Minute))
			ends()
			must(t, h.Release(t.Context()))
			release(t, other)
			if p.on == sqllock.PostgreSQL { // elsewhere, the user may not
				ends()
				must(t, l.CreateTable(t.Context()))
			}
			if n := p.held(t); n != 0 {
				t.Errorf("%d rows are still held", n)
			}
		})
	}
}

// PgBouncer has one code for all that it says by itself. From who has never let us in, that is final. Later it is an outage, and asked once:
// most of it would be said again.
func TestWhatPgBouncerSaysIsNotAskedAgainAtOnce(t *testing.T) {
	table, server := own(t, "postgres", services.Options{})
	p := &pair{table: table}
	addr := bouncer(t, server)
	p.serve(t, addr, "C08P01\x00")
	p.locks = open(t, "pgx", postgresDSN(p.front.Addr)+"&default_query_exec_mode=exec")
	l := p.locker(t)
	release(t, take(t, l, lock.Request{Key: "before"}))
	for _, driver := range []string{"pgx", "postgres"} {
		unknown := open(t, driver, strings.Replace(postgresDSN(addr), "/postgres?", "/nowhere?", 1))
		start := time.Now()
		_, err := newLocker(t, unknown, sqllock.PostgreSQL).Acquire(t.Context(), lock.Request{Key: "job", Wait: -1})
		if took := time.Since(start); !errors.Is(err, lock.ErrRefused) || took > time.Second {
			t.Errorf("of a database that PgBouncer does not know: %v after %v, want ErrRefused", err, took)
		}
	}
	must(t, server.Kill())
	p.pooled(t, func(*sql.Conn) {})
	_, err := l.Acquire(t.Context(), lock.Request{Key: "job"})
	if code, _ := sqllock.CodeOf(err); code != "08P01" || errors.Is(err, lock.ErrRefused) || p.refusals.Load() != 1 {
		t.Errorf("without a server: %v after %d answers, want an outage after one", err, p.refusals.Load())
	}
	must(t, server.Run())
	release(t, take(t, l, lock.Request{Key: "job", Wait: time.Minute}))
}

// bouncer starts a PgBouncer in front of a server.
func bouncer(t *testing.T, server *services.Server) (addr string) {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("needs pgbouncer: ", err)
	}
	dir, err := os.MkdirTemp("", "latchkey-pgbouncer-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // PgBouncer is another user's
	host, port := server.HostPort()
	own := services.FreePort()
	for name, text := range map[string]string{
		"users": `"postgres" ""`,
		"ini": fmt.Sprintf("[databases]\npostgres = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %s\nunix_socket_dir =\n"+
			"auth_type = trust\nauth_file = %s/users\npool_mode = transaction\nserver_login_retry = 1\nquery_wait_timeout = 1\n", host, port, own, dir),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) //nolint:gosec // as above
	}
	args := []string{filepath.Join(dir, "ini")}
	if os.Getuid() == 0 {
		args = append(args, "-u", "postgres")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // it is killed when the test's context ends
	addr = "127.0.0.1:" + own
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return addr
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
