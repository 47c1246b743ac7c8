package redisson_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A process stands still for longer than its lease. Meanwhile another one takes the lock and gives it back. The process
// goes on and unlocks, before its watchdog has had time to notice, and the first answer is lost on the way. Redis says
// "not there" to the second attempt: that is the loss, and not what the first attempt did.

const (
	stoppedHow   = "LATCHKEY_TEST_STOPPED" // set in the child process
	stoppedLease = 900 * time.Millisecond
	stoppedKey   = "stopped:" // how all names of its locks begin
)

// stoppedWay is a way to hold something and to give it back.
type stoppedWay struct {
	name string
	// hold returns what is held, and what gives it back.
	hold func(t *testing.T, clients []*redisson.Client) (held context.Context, unlock func() error)
	// locks are what a rival takes meanwhile, with each of its clients.
	rivals func(c *redisson.Client) []locker
}

func stoppedWays() []stoppedWay {
	lock1 := func(c *redisson.Client) []locker { return []locker{c.Lock(stoppedKey + "1")} }
	return []stoppedWay{
		{"lock", func(t *testing.T, clients []*redisson.Client) (context.Context, func() error) {
			l := clients[0].Lock(stoppedKey + "1")
			held := mustLock(t, l)
			return held, func() error { return l.Unlock(held) }
		}, lock1},
		{"partial release", func(t *testing.T, clients []*redisson.Client) (context.Context, func() error) {
			l := clients[0].ReadWriteLock(stoppedKey + "1").WriteLock() // others would not ask Redis
			outer := mustLock(t, l)
			inner, err := l.Lock(outer)
			check(t, err)
			return outer, func() error { return l.Unlock(inner) }
		}, func(c *redisson.Client) []locker { return []locker{c.ReadWriteLock(stoppedKey + "1").WriteLock()} }},
		{"read lock", func(t *testing.T, clients []*redisson.Client) (context.Context, func() error) {
			l := clients[0].ReadWriteLock(stoppedKey + "1").ReadLock()
			held := mustLock(t, l)
			return held, func() error { return l.Unlock(held) }
		}, func(c *redisson.Client) []locker { return []locker{c.ReadWriteLock(stoppedKey + "1").WriteLock()} }},
		{"MultiLock", func(t *testing.T, clients []*redisson.Client) (context.Context, func() error) {
			m := multiLock(t, namedLocks(clients[0], stoppedKey+"1", stoppedKey+"2")...)
			held := mustTake(t, m)
			return held, func() error { return m.Unlock(held) }
		}, func(c *redisson.Client) []locker { return []locker{c.Lock(stoppedKey + "1"), c.Lock(stoppedKey + "2")} }},
		{"RedLock", func(t *testing.T, clients []*redisson.Client) (context.Context, func() error) {
			var locks []redisson.Member
			for _, c := range clients {
				locks = append(locks, c.Lock(stoppedKey+"1"))
			}
			r, err := redisson.NewRedLock(locks...)
			check(t, err)
			held := mustTake(t, r)
			return held, func() error { return r.Unlock(held) }
		}, lock1},
	}
}

func TestStoppedProcessHearsOfItsLoss(t *testing.T) {
	t.Parallel()
	for i, way := range stoppedWays() {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			var proxies []*redistest.Proxy
			var addrs []string
			var rivals []locker
			for range 3 {
				s := redistest.Start(t)
				p := s.Front(t)
				proxies, addrs = append(proxies, p), append(addrs, p.Addr)
				rivals = append(rivals, way.rivals(newClient(t, s))...)
				if way.name != "RedLock" {
					break
				}
			}
			child, lines := startStopped(t, i, addrs)
			expectLine(t, lines, "held")
			<-time.After(20 * time.Millisecond) // it is in awaitStop now
			signalProcess(t, child, syscall.SIGSTOP)
			stopped := time.After(stoppedLease) // at least, for the process to notice
			for _, l := range rivals {
				mustUnlock(t, l, mustLock(t, l)) // when the lease is over
			}
			for _, p := range proxies {
				p.CutReply(stoppedKey, len(rivals))
			}
			<-stopped
			signalProcess(t, child, syscall.SIGCONT)
			for lines.Scan() {
				if got, ok := strings.CutPrefix(lines.Text(), "outcome: "); ok {
					if got != "loss" {
						t.Error(got)
					}
					return
				}
			}
			t.Error("the process has said nothing")
		})
	}
}

func startStopped(t *testing.T, way int, addrs []string) (*os.Process, *bufio.Scanner) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestStoppedChild$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), stoppedHow+"="+strconv.Itoa(way), stressAddr+"="+strings.Join(addrs, ","), "GOMAXPROCS=1")
	out, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	return child.Process, bufio.NewScanner(out)
}

// TestStoppedChild is the process that stands still. Alone it has nothing to do.
func TestStoppedChild(t *testing.T) {
	way, err := strconv.Atoi(os.Getenv(stoppedHow))
	if err != nil {
		return
	}
	var clients []*redisson.Client
	for addr := range strings.SplitSeq(os.Getenv(stressAddr), ",") {
		clients = append(clients, newClient(t, &redistest.Server{Addr: addr}, redisson.WatchdogTimeout(stoppedLease), redisson.Timeout(stoppedLease)))
	}
	held, unlock := stoppedWays()[way].hold(t, clients)
	start := time.Now()
	fmt.Println("held")
	awaitStop(start, stoppedLease/2)
	err = unlock()
	if err == nil && held.Err() != nil {
		err = context.Cause(held)
	}
	switch {
	case !errors.Is(err, lock.ErrLost):
		fmt.Printf("outcome: Unlock = %v and the context: %v; want ErrLost\n", err, context.Cause(held))
	case strings.Contains(err.Error(), "somebody else"):
		fmt.Printf("outcome: %v; want that the lease was over\n", err)
	default:
		fmt.Println("outcome: loss")
	}
}

// awaitStop returns when the process has stood still for longer than d, since start. It does so before any other goroutine
// has run: the only processor is here, and is given up so often that the runtime sees no reason to take it away.
func awaitStop(start time.Time, d time.Duration) {
	for {
		for range 1000 {
			now := time.Now()
			if now.Sub(start) > d {
				return
			}
			start = now
		}
		runtime.Gosched()
	}
}
