package setnxlock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// What a test process is to do when it is started as a child, and on which server.
const (
	childJob  = "LATCHKEY_SETNX_JOB"
	childAddr = "LATCHKEY_SETNX_ADDR"

	childWatchdog = time.Second
	countRounds   = 25 // of each goroutine
	counters      = 4  // goroutines of a process
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		if err := runChild(job); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runChild is the main function of a child.
func runChild(job string) error {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(childAddr)})
	l, err := setnxlock.New(rdb, quick, setnxlock.Watchdog(childWatchdog))
	if err != nil {
		return err
	}
	if job == "count" {
		return countUp(l, rdb)
	}
	h, err := l.Acquire(context.Background(), lock.Request{Key: "k"})
	if err != nil {
		return err
	}
	fmt.Println("held")
	<-h.Context().Done()
	fmt.Println("lost:", errors.Is(context.Cause(h.Context()), lock.ErrLost), errors.Is(h.Release(context.Background()), lock.ErrLost))
	_, _ = io.Copy(io.Discard, os.Stdin) // to its end, which is the parent's
	return nil
}

// countUp reads and writes a number under the lock, which only the lock makes one step.
func countUp(l *setnxlock.Locker, rdb *redis.Client) error {
	ctx := context.Background()
	errs := make(chan error, counters)
	for range counters {
		go func() {
			var err error
			for i := 0; i < countRounds && err == nil; i++ {
				err = countOnce(ctx, l, rdb)
			}
			errs <- err
		}()
	}
	var all []error
	for range counters {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func countOnce(ctx context.Context, l *setnxlock.Locker, rdb *redis.Client) error {
	h, err := l.Acquire(ctx, lock.Request{Key: "k", Wait: -1})
	if err != nil {
		return err
	}
	n, err := rdb.Get(ctx, "counter").Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return errors.Join(rdb.Set(ctx, "counter", n+1, 0).Err(), h.Release(ctx))
}

// child is a process of this test binary.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func startChild(tb testing.TB, s *redistest.Server, job string) child {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+job, childAddr+"="+s.Addr)
	_, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c := child{cmd, bufio.NewScanner(out)}
	tb.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

func (c child) expect(tb testing.TB, want string) {
	tb.Helper()
	if !c.lines.Scan() || c.lines.Text() != want {
		tb.Fatalf("the child says %q, want %q", c.lines.Text(), want)
	}
}

// Three processes of four goroutines each exclude each other, and leave nothing but the number.
func TestThreeProcesses(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	var running sync.WaitGroup
	const processes = 3
	for range processes {
		c := startChild(t, s, "count")
		running.Go(func() {
			var said strings.Builder
			for c.lines.Scan() {
				said.WriteString(c.lines.Text() + "\n")
			}
			if said.Len() > 0 {
				t.Error(said.String())
			}
		})
	}
	running.Wait()
	if n, _ := rdb.Get(t.Context(), "counter").Int(); n != processes*counters*countRounds {
		t.Errorf("counted to %d, want %d", n, processes*counters*countRounds)
	}
	if left := keys(t, rdb); len(left) != 1 {
		t.Errorf("keys %q, want the counter", left)
	}
}

// A holder is killed. Its lock ends with its lease, and not before.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := startChild(t, s, "hold")
	c.expect(t, "held")
	<-time.After(childWatchdog + childWatchdog/2) // it is renewed
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	killed := time.Now()
	l := newLocker(t, s.Client(t))
	rest := busyFor(t, l)
	if rest <= 0 || rest > childWatchdog {
		t.Errorf("remaining %v, want up to %v", rest, childWatchdog)
	}
	h := acquire(t, l, lock.Request{Key: "k"})
	if d := time.Since(killed); d < rest-50*time.Millisecond || d > 3*childWatchdog {
		t.Errorf("the lock was free after %v, want %v", d, rest)
	}
	release(t, h)
}

// A holder is stopped for longer than its lease. When it goes on, it hears of its loss, and does not disturb the next holder.
func TestStoppedHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := startChild(t, s, "hold")
	c.expect(t, "held")
	signal(t, c, syscall.SIGSTOP)
	l := newLocker(t, s.Client(t))
	h := acquire(t, l, lock.Request{Key: "k"})
	signal(t, c, syscall.SIGCONT)
	c.expect(t, "lost: true true")
	if err := context.Cause(h.Context()); err != nil {
		t.Errorf("the next hold has ended: %v", err)
	}
	release(t, h)
}

func signal(tb testing.TB, c child, s syscall.Signal) {
	tb.Helper()
	if err := c.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}
