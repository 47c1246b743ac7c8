package lockset_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/latchkey-go/latchkey/faults/check"
	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/lockset"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	watchdog = time.Second
	pause    = 2 * time.Second
	adds     = 24 // of a process; every eighth is paused
)

func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "worker" {
		if err := work(os.Args[2], os.Args[3], os.Args[4], os.Args[5] == "fenced"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work is a process that adds elements under a fenced lock. Now and then it stops itself between read and write, and prints that.
func work(dir, name, addr string, fenced bool) error {
	log, err := history.Create(dir, name)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	client, err := redisson.New(rdb, redisson.WatchdogTimeout(watchdog))
	if err != nil {
		return err
	}
	store := redis.NewClient(&redis.Options{Addr: addr, DB: 1})
	w := worker{name, log, client.FencedLock("lock"), lockset.New(store, "set"), fenced}
	for i := range adds {
		if err := w.add(i); err != nil {
			return err
		}
	}
	return errors.Join(client.Close(), rdb.Close(), store.Close(), log.Close())
}

type worker struct {
	name   string
	log    *history.Log
	lock   *redisson.FencedLock
	set    lockset.Set
	fenced bool
}

func (w worker) add(i int) error {
	call := w.log.Ask(history.Event{Kind: "fenced", Keys: []string{"lock"}, Servers: []string{"redis"}, Wait: -1, Lease: watchdog})
	held, err := w.lock.Lock(context.Background())
	if err != nil { // such as a Redis that did not answer in time, because this process was stopped
		call.Fail(history.Failed, err)
		return nil
	}
	token, _ := w.lock.Token(held)
	if call.Enter(held, token) {
		if !w.fenced {
			token = 0
		}
		err = w.set.Add(context.Background(), call, token, fmt.Sprintf("%s-%d", w.name, i), func() { w.wait(i) })
		if err != nil && !errors.Is(err, lockset.ErrStale) {
			return err
		}
		call.Exit()
	}
	err = w.lock.Unlock(held)
	call.Release(err, errors.Is(err, lock.ErrLost))
	return nil
}

func (w worker) wait(i int) {
	if i%8 != 4 {
		time.Sleep(2 * time.Millisecond)
		return
	}
	w.log.Note(history.Event{Op: history.Stop, Procs: []string{w.name}})
	fmt.Println("stop")
	runtime.LockOSThread() // a signal to this thread is there when the call returns
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		panic(err)
	}
}

// TestFenceKeepsAllUpdates pauses holders of a lock for longer than their lease, between a read and a write.
func TestFenceKeepsAllUpdates(t *testing.T) {
	for _, how := range []string{"unfenced", "fenced"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := run(t, how)
			if r.Count > 0 || r.Stopped == 0 {
				t.Errorf("%d sections were overrun\n%s", r.Stopped, r)
			}
			if fenced := how == "fenced"; fenced != (r.Missing == 0) || fenced != (r.Refused > 0) || r.Updates != r.Writes {
				t.Errorf("%d of %d updates are missing, and %d were refused\n%s", r.Missing, r.Updates, r.Refused, r)
			}
		})
	}
}

func run(t *testing.T, how string) *check.Result {
	t.Helper()
	server, dir := redistest.Start(t), t.TempDir()
	log, err := history.Create(dir, "faults")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		all.Go(func() {
			if err := runWorker(log, dir, name, server.Addr, how); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := lockset.New(server.Client(t, func(o *redis.Options) { o.DB = 1 }), "set").Final(t.Context(), log, "lock"); err != nil {
		t.Fatal(err)
	}
	events, err := history.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return check.Check(events, check.Options{Grace: pause / 2}) // on a busy machine it takes a while to go on
}

// runWorker runs a process to its end, and continues it some time after each of its stops.
func runWorker(log *history.Log, dir, name, addr, how string) error {
	cmd := exec.Command(os.Args[0], "worker", dir, name, addr, how)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		time.Sleep(pause)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		log.Note(history.Event{Op: history.Cont, Procs: []string{name}})
	}
	return cmd.Wait()
}
