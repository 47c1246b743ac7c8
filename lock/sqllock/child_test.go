package sqllock_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/sqllock"
)

const roleVariable = "LATCHKEY_SQLLOCK_CHILD"

// role is what a second process is told about itself.
type role struct {
	Driver, Source, Table string
	On                    sqllock.Database
	Watchdog              time.Duration
}

// process is another process of this program, with a Locker of its own. It obeys the lines that it is sent, one at a time, and answers
// each with a line.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

// start starts a process that is killed when the test ends.
func (t *table) start(tb testing.TB, watchdog time.Duration) *process {
	tb.Helper()
	text, err := json.Marshal(role{t.driver, t.source, t.name, t.on, watchdog})
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		tb.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd, stdin, bufio.NewScanner(stdout)}
	tb.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		tb.Fatal(err)
	}
}

func (p *process) send(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		tb.Fatal(err)
	}
}

// answer returns the next line of the process.
func (p *process) answer(tb testing.TB) string {
	tb.Helper()
	if !p.lines.Scan() {
		tb.Fatal("the process has ended: ", p.lines.Err())
	}
	return p.lines.Text()
}

// does sends a line, which must be answered with done.
func (p *process) does(tb testing.TB, format string, args ...any) {
	tb.Helper()
	p.send(tb, format, args...)
	if got := p.answer(tb); got != done {
		tb.Fatalf("%s: %s", fmt.Sprintf(format, args...), got)
	}
}

const done = "done"

// child is the program of a process. It ends with its standard input.
func child(text string) int {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	db, err := sql.Open(r.Driver, r.Source)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	locks, err := sql.Open(r.Driver, r.Source)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if r.On == sqllock.SQLite {
		locks.SetMaxOpenConns(1)
	}
	l, err := sqllock.New(locks, r.On, sqllock.Table(r.Table), quickly, sqllock.Watchdog(r.Watchdog))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	w := &worker{role: r, db: db, locker: l}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := w.obey(strings.Fields(in.Text())); err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println(done)
	}
	return 0
}

// worker is a process from inside.
type worker struct {
	role
	db     *sql.DB
	locker *sqllock.Locker
	hold   lock.Hold
	tx     *sql.Tx
}

func (w *worker) obey(words []string) (err error) {
	ctx := context.Background()
	switch words[0] {
	case "acquire": // key, wait
		wait, _ := time.ParseDuration(words[2])
		w.hold, err = w.locker.Acquire(ctx, lock.Request{Key: words[1], Wait: wait})
		return err
	case "release":
		return w.hold.Release(ctx)
	case "begin": // table: a row in a transaction of that table
		if w.tx, err = w.db.BeginTx(ctx, nil); err == nil {
			_, err = w.tx.ExecContext(ctx, "INSERT INTO "+words[1]+" VALUES (1)")
		}
		return err
	case "check":
		// The process may have noticed the loss by its own clock. This is about what the database says.
		return sqllock.Check(context.WithoutCancel(w.hold.Context()), w.tx)
	case "commit":
		return w.tx.Commit()
	case "rollback":
		return w.tx.Rollback()
	case "count": // key, file, times
		n, _ := strconv.Atoi(words[3])
		return count(ctx, w.locker, words[1], words[2], n)
	}
	return fmt.Errorf("no such command: %q", words)
}

// count adds to the number in a file, n times, each under the lock. Without it, additions would be lost.
func count(ctx context.Context, l lock.Locker, key, file string, n int) error {
	for range n {
		h, err := l.Acquire(ctx, lock.Request{Key: key, Wait: -1})
		if err != nil {
			return err
		}
		if err := addOne(file); err != nil {
			return err
		}
		if err := h.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

func addOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("somebody else is writing: %w", err)
	}
	<-time.After(time.Millisecond)
	return os.WriteFile(file, []byte(strconv.Itoa(number+1)), 0o600)
}
