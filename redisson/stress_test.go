package redisson_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

const (
	stressAddr      = "LATCHKEY_TEST_STRESS_ADDR" // set in the child processes
	stressProcesses = 3
	stressKeys      = 5
	stressRounds    = 3   // of each goroutine
	stressWorkers   = 334 // goroutines of each process; 1,002 in all
)

// A thousand goroutines in three processes increment five counters with a read and a write of their own each, which only
// the lock makes one step. Nothing is lost, and nothing is left.
func TestThreeProcesses(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	children := make([]*exec.Cmd, stressProcesses)
	outputs := make([]strings.Builder, stressProcesses)
	for i := range children {
		children[i] = exec.Command(os.Args[0], "-test.run=^TestStressChild$", "-test.v", "-test.timeout=5m")
		children[i].Env = append(os.Environ(), stressAddr+"="+s.Addr)
		children[i].Stdout, children[i].Stderr = &outputs[i], &outputs[i]
		if err := children[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, child := range children {
		if err := child.Wait(); err != nil || !strings.Contains(outputs[i].String(), "--- PASS: TestStressChild") {
			t.Errorf("process %d: %v\n%s", i, err, lastLines(outputs[i].String(), 30))
		}
	}
	total := 0
	for i := range stressKeys {
		n, _ := rdb.Get(t.Context(), fmt.Sprint("counter:", i)).Int()
		total += n
	}
	if want := stressProcesses * stressWorkers * stressRounds; total != want {
		t.Errorf("counters add up to %d, want %d", total, want)
	}
	for _, k := range keys(t, rdb) {
		if !strings.HasPrefix(k, "counter:") {
			t.Errorf("key %q is left", k)
		}
	}
	if left := subscriptions(t, rdb); len(left) != 0 {
		t.Errorf("subscriptions %q are left", left)
	}
}

// TestStressChild is one of the processes. Alone it has nothing to do.
func TestStressChild(t *testing.T) {
	addr := os.Getenv(stressAddr)
	if addr == "" {
		return
	}
	before := runtime.NumGoroutine()
	rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 50})
	c, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range stressWorkers {
		workers.Go(func() {
			for range stressRounds {
				if err := increment(c, rdb, rand.IntN(stressKeys)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	_ = c.Close()
	_ = rdb.Close()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func increment(c *redisson.Client, rdb *redis.Client, i int) error {
	l := c.Lock(fmt.Sprint("lock:", i))
	held, err := l.Lock(context.Background())
	if err != nil {
		return err
	}
	counter := fmt.Sprint("counter:", i)
	n, err := rdb.Get(held, counter).Int()
	if err != nil && err != redis.Nil {
		return err
	}
	runtime.Gosched()
	if err := rdb.Set(held, counter, n+1, 0).Err(); err != nil {
		return err
	}
	return l.Unlock(held)
}

// A holder that is stopped like a paused process, and a crash: a peer gets the lock when its lease is over, and the
// stopped one is notified as soon as it runs again.
func TestProcessStoppedAndKilled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	child := exec.Command(os.Args[0], "-test.run=^TestHoldingChild$", "-test.v", "-test.timeout=5m")
	child.Env = append(os.Environ(), stressAddr+"="+s.Addr)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	lines := bufio.NewScanner(out)
	expectLine(t, lines, "held")
	signalProcess(t, child.Process, syscall.SIGSTOP)
	l := newClient(t, s).Lock("k")
	held := mustLock(t, l) // once its lease of a second is over
	signalProcess(t, child.Process, syscall.SIGCONT)
	expectLine(t, lines, "lost")
	mustUnlock(t, l, held)

	expectLine(t, lines, "held")
	_ = child.Process.Kill()
	mustUnlock(t, l, mustLock(t, l))
}

func signalProcess(t *testing.T, p *os.Process, sig os.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	for lines.Scan() {
		if lines.Text() == want {
			return
		}
	}
	t.Fatalf("the child did not say %q", want)
}

// TestHoldingChild takes the lock, says so, and says when it is lost; again and again until it is killed.
func TestHoldingChild(t *testing.T) {
	addr := os.Getenv(stressAddr)
	if addr == "" {
		return
	}
	s := redistest.Server{Addr: addr}
	c := newClient(t, &s, redisson.WatchdogTimeout(1e9))
	for {
		held, err := c.Lock("k").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("held")
		<-held.Done()
		fmt.Println("lost")
	}
}

func lastLines(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
