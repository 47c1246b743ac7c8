package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/child"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// beProgram has this binary be the program: processes of tests are real ones, with the race detector.
const beProgram = "LATCHKEY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(beProgram) != "" || child.Serves() {
		_ = os.Unsetenv(beProgram)
		main()
	}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) { // as under nohup, which our processes would pass on to the program
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// program is a process of latchkey.
type program struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	out, err *lines
	done     chan error
}

// lines are what a process has written, which can be waited for.
type lines struct {
	all chan string
	got strings.Builder
}

func newLines(r io.Reader) *lines {
	l := &lines{all: make(chan string, 10000)}
	go func() {
		defer close(l.all)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.all <- s.Text()
		}
	}()
	return l
}

// await returns the first line that has the text in it.
func (l *lines) await(t *testing.T, text string) string {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case line, ok := <-l.all:
			if !ok {
				t.Fatalf("no %q in:\n%s", text, l.got.String())
			}
			l.got.WriteString(line + "\n")
			if strings.Contains(line, text) {
				return line
			}
		case <-late:
			t.Fatalf("no %q after %v in:\n%s", text, patience, l.got.String())
		}
	}
}

// rest is all that was written, once the process has ended.
func (l *lines) rest() string {
	for line := range l.all {
		l.got.WriteString(line + "\n")
	}
	return l.got.String()
}

// at is the URL of a server.
func at(s *redistest.Server) string { return "redis://" + s.Addr }

// start runs latchkey on a server.
func start(t *testing.T, redisURL string, args ...string) *program {
	t.Helper()
	return startIn(t, redisURL, nil, args...)
}

// startIn is start with changes of the process that is to be.
func startIn(t *testing.T, redisURL string, change func(*exec.Cmd), args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.Command(self, args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), beProgram+"=1", urlVariable+"="+redisURL, "GORACE=atexit_sleep_ms=0") // it is a second otherwise
	if change != nil {
		change(p.cmd)
	}
	outR, outW, _ := os.Pipe()
	errR, errW, _ := os.Pipe()
	if p.cmd.Stdin == nil {
		inR, inW, _ := os.Pipe()
		p.cmd.Stdin, p.stdin = inR, inW
		defer inR.Close()
	}
	if p.cmd.Stdout == nil {
		p.cmd.Stdout = outW
	}
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = errW
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = outW.Close()
	_ = errW.Close()
	p.out, p.err = newLines(outR), newLines(errR)
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// status waits for the end and returns the exit status, or -1 if a signal ended the process.
func (p *program) status() int {
	p.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err
		if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
			p.t.Fatal(err)
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%v has not ended; it said:\n%s", p.cmd.Args[1:], p.err.got.String())
		return 0
	}
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// result runs latchkey to its end.
func result(t *testing.T, redisURL string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	p := start(t, redisURL, args...)
	_ = p.stdin.Close()
	status = p.status()
	return status, p.out.rest(), p.err.rest()
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not so that %s", what)
		}
	}
}

// keys are those that are left in Redis.
func keys(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	all, err := rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// alive reports whether a process is there and no zombie.
func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}
