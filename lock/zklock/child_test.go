package zklock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/zklock"
)

// childOrder has the test binary be another process that takes locks. Its words are the address of a server, the root, the session's
// timeout, and what to do.
const childOrder = "LATCHKEY_ZKLOCK_CHILD"

func runChild(order string) {
	words := strings.Split(order, "\t")
	timeout, _ := time.ParseDuration(words[2])
	s, err := zklock.Connect([]string{words[0]}, zklock.SessionTimeout(timeout))
	if err != nil {
		say("failed", err)
		os.Exit(1)
	}
	l, err := zklock.New(s, zklock.Root(words[1]))
	if err == nil {
		switch words[3] {
		case "hold":
			err = childHolds(l, words[4])
		case "count":
			err = childCounts(l, words[4])
		}
	}
	if err != nil {
		say("failed", err)
		os.Exit(1)
	}
	_ = s.Close()
	os.Exit(0)
}

// say prints a line that begins with a word and the time.
func say(word string, more ...any) {
	fmt.Fprintln(os.Stdout, word, time.Now().UnixNano(), fmt.Sprint(more...))
}

// childHolds takes a lock and says when it has it, and when the hold has ended.
func childHolds(l *zklock.Locker, key string) error {
	h, err := l.Acquire(context.Background(), lock.Request{Key: key, Wait: 20 * time.Second})
	if err != nil {
		return err
	}
	say("held")
	<-h.Context().Done()
	say("ended", context.Cause(h.Context()))
	return nil
}

// childCounts adds to the number in a file, under the lock.
func childCounts(l *zklock.Locker, file string) error {
	for range countRounds {
		h, err := l.Acquire(context.Background(), lock.Request{Key: "count", Wait: -1})
		if err != nil {
			return err
		}
		if err := countOne(file); err != nil {
			return err
		}
		if err := h.Release(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

const countRounds = 40

func countOne(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	<-time.After(time.Millisecond)
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600)
}

// child is such a process.
type child struct {
	testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	kill  func()
}

func startChild(tb testing.TB, addr, root string, timeout time.Duration, order ...string) *child {
	tb.Helper()
	c := &child{TB: tb, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childOrder+"="+strings.Join(append([]string{addr, root, timeout.String()}, order...), "\t"))
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		tb.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	c.kill = sync.OnceFunc(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	tb.Cleanup(c.kill)
	return c
}

// hears waits for the line that begins with word, and returns when it was said.
func (c *child) hears(word string) time.Time {
	c.Helper()
	if !c.lines.Scan() {
		c.Fatalf("the child ended without saying %q", word)
	}
	words := strings.SplitN(c.lines.Text(), " ", 3)
	if words[0] != word {
		c.Fatalf("the child said %q, want %q", c.lines.Text(), word)
	}
	at, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		c.Fatal(err)
	}
	return time.Unix(0, at)
}

func (c *child) signal(sig syscall.Signal) {
	c.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.Fatal(err)
	}
}
