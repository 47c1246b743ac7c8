package setnxlock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a test process is to be when it is started as a child, and on which server.
const (
	childSide = "LATCHKEY_SETNX_SIDE"
	childAddr = "LATCHKEY_SETNX_ADDR"
)

func TestMain(m *testing.M) {
	if side := os.Getenv(childSide); side != "" {
		obey(sides[side](redis.NewClient(&redis.Options{Addr: os.Getenv(childAddr)})), os.Stdin, os.Stdout)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// locks are those of one library, as a child has them.
type locks interface {
	// take is errBusy if others have the lock for all of the wait.
	take(key string, wait, lease time.Duration) error
	// give is errLost if the lock was not held anymore.
	give(key string) error
	renew(key string, lease time.Duration) error
}

var errBusy, errLost = errors.New("busy"), errors.New("lost")

// obey does what it is told, one command a line with tabs between its words, and answers each with a line: ok, busy, lost, or another
// error. The commands are
//
//	take KEY WAIT LEASE
//	give KEY
//	renew KEY LEASE
//	count KEY COUNTER
func obey(l locks, in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var err error
		switch f := strings.Split(lines.Text(), "\t"); f[0] {
		case "take":
			err = l.take(f[1], duration(f[2]), duration(f[3]))
		case "give":
			err = l.give(f[1])
		case "renew":
			err = l.renew(f[1], duration(f[2]))
		case "count":
			err = countAll(os.Getenv(childSide), f[1], f[2])
		default:
			err = fmt.Errorf("no such command: %s", f[0])
		}
		if err != nil {
			_, _ = fmt.Fprintln(out, strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		_, _ = fmt.Fprintln(out, "ok")
	}
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // the test's own words
	}
	return d
}

// The counting of one process.
const counters, rounds = 3, 20

// countAll counts up in goroutines, each with locks of its own.
func countAll(side, key, counter string) error {
	rdb := redis.NewClient(&redis.Options{Addr: os.Getenv(childAddr)})
	errs := make(chan error, counters)
	for range counters {
		go func() {
			l := sides[side](rdb)
			var err error
			for i := 0; i < rounds && err == nil; i++ {
				err = countOnce(l, rdb, key, counter)
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

// countOnce reads a number and writes the next one, which only the lock makes one step.
func countOnce(l locks, rdb *redis.Client, key, counter string) error {
	if err := l.take(key, time.Minute, time.Minute); err != nil {
		return err
	}
	ctx := context.Background()
	n, err := rdb.Get(ctx, counter).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	return errors.Join(rdb.Set(ctx, counter, n+1, 0).Err(), l.give(key))
}

// process is a child with one library.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

func start(tb testing.TB, addr, side string) *process {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childSide+"="+side, childAddr+"="+addr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
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
	p := &process{cmd, in, bufio.NewScanner(out)}
	tb.Cleanup(p.kill)
	return p
}

// kill ends the process as SIGKILL does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// send gives a command; answer waits for what comes of it.
func (p *process) send(words ...string) {
	_, _ = fmt.Fprintln(p.in, strings.Join(words, "\t")) // answer notices the end of the process
}

func (p *process) answer() string {
	if !p.out.Scan() {
		return "the process has ended"
	}
	return p.out.Text()
}

// ask gives a command, and returns what comes of it.
func (p *process) ask(words ...string) string {
	p.send(words...)
	return p.answer()
}

// expect gives a command and wants an answer.
func (p *process) expect(tb testing.TB, want string, words ...string) {
	tb.Helper()
	if got := p.ask(words...); got != want {
		tb.Fatalf("%v: %s, want %s", words, got, want)
	}
}
