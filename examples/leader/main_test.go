package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
)

// candidateVariable has the test binary be a process that stands: its name, its Redis and the journal, with blanks between them.
const candidateVariable = "LATCHKEY_TEST_CANDIDATE"

func TestMain(m *testing.M) {
	if text := os.Getenv(candidateVariable); text != "" {
		if err := beCandidate(strings.Fields(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// lease is how long a lead outlives its process here, which is 30s by default.
const lease = 2 * time.Second

func beCandidate(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := redisson.Open(args[1], redisson.WatchdogTimeout(lease), redisson.Timeout(time.Second))
	if err != nil {
		return err
	}
	err = stand(ctx, client, args[0], func(e Entry) error {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		res, err := http.Post(args[2], "application/json", strings.NewReader(string(text)))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusNoContent {
			return errStale
		}
		return nil
	})
	return errors.Join(err, client.Close())
}

// journalServer is the journal for other processes.
func journalServer(t *testing.T, j *journal) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e Entry
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
			t.Errorf("an entry: %v", err)
		}
		if j.write(e) != nil {
			w.WriteHeader(http.StatusConflict)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// process is a candidate of its own.
type process struct {
	name  string
	cmd   *exec.Cmd
	proxy *redistest.Proxy
	ended chan error
}

func start(t *testing.T, name string, s *redistest.Server, journalURL string) *process {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: name, cmd: exec.Command(self), proxy: s.Front(t), ended: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s redis://%s %s", candidateVariable, name, p.proxy.Addr, journalURL), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, redistest.Apart()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
}

// last is the newest entry.
func (j *journal) last() (e Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.entries); n > 0 {
		e = j.entries[n-1]
	}
	return e
}

// successor waits until somebody else writes, and returns the author and the time that it took.
func (j *journal) successor(t *testing.T, of string) (author string, took time.Duration) {
	t.Helper()
	for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(time.Millisecond) {
		if e := j.last(); e.Author != of && e.Author != "" {
			return e.Author, time.Since(start)
		}
	}
	t.Fatalf("nobody writes after %q", of)
	return "", 0
}

// judge checks that no two wrote by their tokens, in nine leads at least.
func (j *journal) judge(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.IsSortedFunc(j.entries, func(a, b Entry) int { return int(a.Token - b.Token) }) {
		t.Error("a token falls in the journal")
	}
	authors := map[int64]string{}
	for _, e := range j.entries {
		if other, ok := authors[e.Token]; ok && other != e.Author {
			t.Errorf("%s and %s write with token %d", other, e.Author, e.Token)
		}
		authors[e.Token] = e.Author
	}
	t.Logf("%d entries by %d leads, %d refused", len(j.entries), len(authors), j.refused)
	if len(authors) < 9 {
		t.Errorf("%d leads, want 9", len(authors))
	}
}

// bound is the one that docs/leader.md states for a leader that is gone: the lease, and a second. A busy machine gets one more.
const bound = lease + 2*time.Second

// Three processes stand; the leader is killed, stopped, and cut off from Redis, and each time the next one leads in time. Never do two
// write by their tokens, also when those come back that were stopped and cut off.
func TestTheNextOneLeads(t *testing.T) {
	s := redistest.Start(t)
	var j journal
	url := journalServer(t, &j)
	processes := map[string]*process{}
	for _, name := range []string{"a", "b", "c"} {
		processes[name] = start(t, name, s, url)
	}
	leader, _ := j.successor(t, "")
	for _, fault := range []struct {
		name         string
		strike, undo func(*process)
		atLeast      time.Duration // as the lead is its until the lease is over
	}{
		{"stopped", func(p *process) { p.signal(t, syscall.SIGSTOP) }, func(p *process) { p.signal(t, syscall.SIGCONT) }, lease / 2},
		{"cut off", func(p *process) { p.proxy.Freeze() }, func(p *process) { p.proxy.Thaw() }, lease / 2},
		{"told to end", func(p *process) { p.signal(t, syscall.SIGTERM) }, func(p *process) {
			if err := <-p.ended; err != nil {
				t.Errorf("a process that was told to end: %v", err)
			}
			processes[p.name] = start(t, p.name, s, url)
		}, 0},
		{"killed", func(p *process) { p.signal(t, syscall.SIGKILL) }, func(p *process) { processes[p.name] = start(t, p.name, s, url) }, lease / 2},
	} {
		for range 2 {
			struck := processes[leader]
			fault.strike(struck)
			next, took := j.successor(t, leader)
			t.Logf("%s: %s leads %v after %s", fault.name, next, took.Round(time.Millisecond), leader)
			if took > bound || took < fault.atLeast {
				t.Errorf("%s: the next one leads after %v, want %v to %v", fault.name, took, fault.atLeast, bound)
			}
			if fault.atLeast == 0 && took > lease/2 {
				t.Errorf("%s: the next one waits for %v, as if the lead were not given away", fault.name, took)
			}
			fault.undo(struck)
			time.Sleep(lease / 4) // who comes back has its chance to write
			leader = next
			if e := j.last(); e.Author != leader {
				t.Errorf("%s: after it came back, %s writes in place of %s", fault.name, e.Author, leader)
			}
		}
	}
	for _, p := range processes {
		p.signal(t, syscall.SIGTERM)
	}
	for name, p := range processes {
		if err := <-p.ended; err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	}
	j.judge(t)
}

func TestEachCandidateHasItsTerm(t *testing.T) {
	exampletest.Prints(t, run, "candidate 1 wrote", "candidate 2 wrote", "candidate 3 wrote", "9 entries, 0 refused\n")
}
