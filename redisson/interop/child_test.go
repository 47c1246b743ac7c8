package interop

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// childOrder names the variable that turns the test binary into a Go process that can be killed.
const childOrder = "LATCHKEY_INTEROP_CHILD"

// order is what such a process does: it acquires what is requested, says when on its standard output, and holds it for
// as long as it lives.
type order struct {
	Addrs    []string
	Cluster  bool
	Watchdog time.Duration
	Patience time.Duration // in fair queues; 0: the default
	Request  lock.Request
	Setnx    string // the library whose locks package setnxlock takes, in place of redisson
	Counter  string // what it counts up then, instead of holding the lock
}

// child is a process with an order.
type child struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
}

func startChild(tb testing.TB, o order) *child {
	tb.Helper()
	text := must[[]byte](tb)(json.Marshal(o))
	cmd := exec.Command(must[string](tb)(os.Executable()))
	cmd.Env = append(os.Environ(), childOrder+"="+string(text))
	cmd.Stderr = os.Stderr
	must[io.WriteCloser](tb)(cmd.StdinPipe()) // closes when this process ends, however it does
	stdout := must[io.ReadCloser](tb)(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c := &child{cmd, bufio.NewReader(stdout)}
	tb.Cleanup(c.kill)
	return c
}

// acquired waits until the process says that it has the lock.
func (c *child) acquired(tb testing.TB) result {
	tb.Helper()
	line := must[string](tb)(c.stdout.ReadString('\n'))
	start, end, _ := strings.Cut(strings.TrimSpace(line), " ")
	micros := func(s string) time.Time {
		return time.UnixMicro(must[int64](tb)(strconv.ParseInt(s, 10, 64)))
	}
	return result{ok: true, start: micros(start), end: micros(end)}
}

// kill ends the process as SIGKILL does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// runChild is the main function of the process.
func runChild(text string) {
	go func() {
		if err := obey(text); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	start := time.Now()
	if o.Setnx != "" {
		err := obeySetnx(o)
		fmt.Fprintln(os.Stdout, start.UnixMicro(), time.Now().UnixMicro())
		return err
	}
	patience := cmp.Or(o.Patience, redisson.DefaultFairLockWaitTimeout)
	client, err := redisson.New(redis.NewUniversalClient(&redis.UniversalOptions{Addrs: o.Addrs, IsClusterMode: o.Cluster}),
		redisson.WatchdogTimeout(o.Watchdog), redisson.FairLockWaitTimeout(patience))
	if err != nil {
		return err
	}
	start = time.Now()
	if _, err := client.Acquire(context.Background(), o.Request); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, start.UnixMicro(), time.Now().UnixMicro())
	return nil
}
