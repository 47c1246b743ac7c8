package mongolock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/mongolock"
)

// jobVariable has the test binary do a job in place of tests.
const jobVariable = "LATCHKEY_MONGOLOCK_JOB"

// job is what another process does.
type job struct {
	URI, Collection, Key string

	Watchdog time.Duration
	File     string // holds a number, which is raised under the lock in a way that shows an overlap
	Rounds   int    // 0 holds the lock until told to release it
}

// runJob tells on standard output how far it is: "held", "lost", "released" or "failed", the latter with the reason.
func runJob(text string) int {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.run(context.Background())
	}
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	fmt.Println("released")
	return 0
}

func (j job) run(ctx context.Context) error {
	client, err := mongo.Connect(options.Client().ApplyURI(j.URI))
	if err != nil {
		return err
	}
	locker, err := mongolock.New(client.Database(database).Collection(j.Collection), mongolock.Watchdog(j.Watchdog),
		mongolock.Timeout(min(j.Watchdog, 3*time.Second)), mongolock.Poll(5*time.Millisecond, 20*time.Millisecond))
	if err != nil {
		return err
	}
	for range j.Rounds {
		if err := j.raise(ctx, locker); err != nil {
			return err
		}
	}
	if j.Rounds > 0 {
		return nil
	}
	return j.hold(ctx, locker)
}

func (j job) raise(ctx context.Context, locker lock.Locker) error {
	hold, err := locker.Acquire(ctx, lock.Request{Key: j.Key, Wait: -1})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(j.File)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	time.Sleep(time.Millisecond) // for another one to come in between, if it can
	if err := os.WriteFile(j.File, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		return err
	}
	return hold.Release(ctx)
}

func (j job) hold(ctx context.Context, locker lock.Locker) error {
	hold, err := locker.Acquire(ctx, lock.Request{Key: j.Key})
	if err != nil {
		return err
	}
	fmt.Println("held")
	told := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	select {
	case <-told:
		return hold.Release(ctx)
	case <-hold.Context().Done():
		if !errors.Is(context.Cause(hold.Context()), lock.ErrLost) {
			return context.Cause(hold.Context())
		}
		fmt.Println("lost")
		if err := hold.Release(ctx); !errors.Is(err, lock.ErrLost) {
			return fmt.Errorf("release of a lost lock: %w", err)
		}
		return nil
	}
}

// process is a job that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed at its end
}

func start(tb testing.TB, j job) *process {
	tb.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd, stdin, make(chan string, 10)}
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
		close(p.lines)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// says waits for the next line of the process.
func (p *process) says(tb testing.TB, want string) {
	tb.Helper()
	select {
	case got := <-p.lines:
		if got != want {
			tb.Fatalf("the process says %q, want %q", got, want)
		}
	case <-time.After(60 * time.Second):
		tb.Fatalf("the process does not say %q", want)
	}
}

func (p *process) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		tb.Fatal(err)
	}
}
