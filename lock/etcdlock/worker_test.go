package etcdlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
)

// workerVariable names the endpoints, and makes a process a worker.
const workerVariable = "LATCHKEY_ETCDLOCK_WORKER"

// A worker does what the lines of its input say, one by one, and answers each with a line.
//
//	lock KEY            waits for the lock of etcdlock; "held TOKEN"
//	try KEY             tries it once; "held TOKEN" or "busy"
//	unlock KEY          "released" or "lost"
//	alive KEY           "alive", or "lost" if the context of the hold has ended
//	mutex-lock KEY, mutex-try KEY, mutex-unlock KEY: the same with etcd's own Mutex
//	count KEY N DIR     N times: lock, add 1 to DIR/count alone in DIR, unlock; "counted"
//	mutex-count …       the same with etcd's own Mutex
type workerState struct {
	locker  *etcdlock.Locker
	session *concurrency.Session
	holds   map[string]lock.Hold
	mutexes map[string]*concurrency.Mutex
}

const workerWatchdog = 2 * time.Second

// work returns at once, unless the process is a worker.
func work() {
	endpoints := os.Getenv(workerVariable)
	if endpoints == "" {
		return
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(endpoints, ","), Logger: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	w := &workerState{holds: map[string]lock.Hold{}, mutexes: map[string]*concurrency.Mutex{}}
	if w.locker, err = etcdlock.New(client, etcdlock.Watchdog(workerWatchdog)); err != nil {
		panic(err)
	}
	if w.session, err = concurrency.NewSession(client, concurrency.WithTTL(2)); err != nil {
		panic(err)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer, err := w.do(context.Background(), strings.Fields(in.Text()))
		if err != nil {
			answer = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
	os.Exit(0)
}

func (w *workerState) do(ctx context.Context, words []string) (string, error) {
	key := words[1]
	switch words[0] {
	case "lock":
		return w.acquire(ctx, lock.Request{Key: key, Kind: lock.Fenced, Wait: -1})
	case "try":
		return w.acquire(ctx, lock.Request{Key: key, Kind: lock.Fenced})
	case "unlock":
		err := w.holds[key].Release(ctx)
		if errors.Is(err, lock.ErrLost) {
			return "lost", nil
		}
		return "released", err
	case "alive":
		select {
		case <-w.holds[key].Context().Done():
			return "lost", nil
		default:
			return "alive", nil
		}
	case "mutex-lock":
		m := concurrency.NewMutex(w.session, key)
		w.mutexes[key] = m
		return "held", m.Lock(ctx)
	case "mutex-try":
		m := concurrency.NewMutex(w.session, key)
		w.mutexes[key] = m
		err := m.TryLock(ctx)
		if errors.Is(err, concurrency.ErrLocked) {
			return "busy", nil
		}
		return "held", err
	case "mutex-unlock":
		return "released", w.mutexes[key].Unlock(ctx)
	case "count", "mutex-count":
		n, err := strconv.Atoi(words[2])
		if err != nil {
			return "", err
		}
		return "counted", w.count(ctx, strings.TrimSuffix(words[0], "count"), key, n, words[3])
	}
	return "", fmt.Errorf("no such command: %q", words)
}

func (w *workerState) acquire(ctx context.Context, r lock.Request) (string, error) {
	h, err := w.locker.Acquire(ctx, r)
	if errors.Is(err, lock.ErrBusy) {
		return "busy", nil
	}
	if err != nil {
		return "", err
	}
	w.holds[r.Key] = h
	return fmt.Sprintf("held %d", h.(interface{ Token() int64 }).Token()), nil
}

// count adds 1 to the number in a file, n times, in a way that needs the lock.
func (w *workerState) count(ctx context.Context, sort, key string, n int, dir string) error {
	for range n {
		if _, err := w.do(ctx, []string{sort + "lock", key}); err != nil {
			return err
		}
		if err := increment(dir); err != nil {
			return err
		}
		if _, err := w.do(ctx, []string{sort + "unlock", key}); err != nil {
			return err
		}
	}
	return nil
}

// increment adds 1 to the number in dir/count, and fails if another process is at it.
func increment(dir string) error {
	alone := filepath.Join(dir, "alone")
	f, err := os.OpenFile(alone, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("two holders: %w", err)
	}
	_ = f.Close()
	text, err := os.ReadFile(filepath.Join(dir, "count"))
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "count"), []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	return os.Remove(alone)
}

// worker is a process of its own.
type worker struct {
	tb    testing.TB
	cmd   *exec.Cmd
	in    io.Writer
	lines chan string
}

func startWorker(tb testing.TB, endpoints ...string) *worker {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	w := &worker{tb: tb, cmd: exec.Command(program), lines: make(chan string, 100)}
	w.cmd.Env = append(os.Environ(), workerVariable+"="+strings.Join(endpoints, ","))
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	w.in = in
	if err := w.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s := bufio.NewScanner(out); s.Scan(); {
			w.lines <- s.Text()
		}
		_ = w.cmd.Wait() // reports the signal
	}()
	tb.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-done
	})
	return w
}

// send has the worker begin with a command.
func (w *worker) send(format string, args ...any) {
	w.tb.Helper()
	if _, err := fmt.Fprintf(w.in, format+"\n", args...); err != nil {
		w.tb.Fatal(err)
	}
}

// patience is with what should come at once.
const patience = 20 * time.Second

// says waits for the next answer, which must begin with want.
func (w *worker) says(want string) string {
	w.tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case line := <-w.lines:
		if !strings.HasPrefix(line, want) {
			w.tb.Fatalf("the worker says %q, want %q", line, want)
		}
		return line
	case <-timer.C:
		w.tb.Fatalf("the worker says nothing, want %q", want)
	}
	return ""
}

// does is send and says.
func (w *worker) does(command, want string) string {
	w.tb.Helper()
	w.send("%s", command)
	return w.says(want)
}

// silent checks that the worker has not answered.
func (w *worker) silent() {
	w.tb.Helper()
	select {
	case line := <-w.lines:
		w.tb.Fatalf("the worker says %q, and has nothing to say", line)
	default:
	}
}

func (w *worker) signal(s syscall.Signal) {
	w.tb.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.tb.Fatal(err)
	}
}

// token is the number in an answer such as "held 12".
func token(tb testing.TB, answer string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(strings.TrimPrefix(answer, "held "), 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}
