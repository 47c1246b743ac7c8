package main

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// short has a lock be renewed so often that its loss is soon seen.
var short = []string{"run", "--watchdog", "600ms"}

func TestLostLockEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	for _, tt := range []struct {
		name, script string
		flags        []string
		says         string
	}{
		{"gently", "trap 'echo bye; exit 9' TERM; echo in; while :; do sleep 0.01; done", nil, "the command ended with status 9"},
		{"by force", "trap '' TERM; echo in; while :; do sleep 0.01; done", []string{"--grace", "100ms"}, "the command was killed, status 137"},
		{"also what it started", "(trap '' TERM; while :; do sleep 0.01; done) & echo in; wait", []string{"--grace", "100ms"}, "the command was killed, status 143"},
		{"while it is stopped", "trap 'exit 9' TERM; echo in; kill -STOP $$; while :; do sleep 0.01; done", nil, "the command ended with status 9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append(append(append([]string{}, short...), tt.flags...), t.Name(), "--", "sh", "-c", "echo $$; "+tt.script)
			p := start(t, at(s), args...)
			group := p.out.await(t, "")
			p.out.await(t, "in")
			if n, err := rdb.Del(t.Context(), t.Name()).Result(); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			if status := p.status(); status != 76 {
				t.Errorf("status %d, want 76", status)
			}
			said := p.err.rest()
			if !strings.Contains(said, "not there any more: freed, evicted, or lost in a failover or restart") || !strings.Contains(said, tt.says) {
				t.Errorf("it said %q, want %q in it", said, tt.says)
			}
			pid, _ := strconv.Atoi(group)
			if err := syscall.Kill(-pid, 0); err != syscall.ESRCH {
				t.Errorf("the command's group is still there: %v", err)
			}
		})
	}
}

func TestOutageEndsTheCommandBeforeTheLeaseDoes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), append(short, "--timeout", "300ms", "k", "--", "sh", "-c", "trap 'exit 9' TERM; echo in; while :; do sleep 0.01; done")...)
	p.out.await(t, "in")
	s.Pause(t)
	defer s.Resume(t)
	if status := p.status(); status != 76 {
		t.Errorf("status %d, want 76", status)
	}
	if said := p.err.rest(); !strings.Contains(said, "the lock k was lost after") {
		t.Errorf("it said %q", said)
	}
}

func TestOnLost(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	args := append(append([]string{}, short...), "--kind", "fenced", "--on-lost", `echo "alarm $LATCHKEY_KEY $LATCHKEY_TOKEN: $LATCHKEY_REASON"`)
	p := start(t, at(s), append(args, "k", "--", "sh", "-c", "echo in; exec sleep 60")...)
	p.out.await(t, "in")
	s.Client(t).Del(t.Context(), "k")
	line := p.out.await(t, "alarm")
	if !strings.HasPrefix(line, "alarm k 1: lock: lost after ") {
		t.Errorf("--on-lost was told %q", line)
	}
	if status := p.status(); status != 76 {
		t.Errorf("status %d", status)
	}
	// A command that ends well raises no alarm.
	status, out, _ := result(t, at(s), append(args, "k", "--", "true")...)
	if status != 0 || out != "" {
		t.Errorf("without a loss: %d, %q", status, out)
	}
	// One that hangs is not waited for for ever, and one that fails is told of.
	args = append(append([]string{}, short...), "--grace", "100ms", "--on-lost", "exec sleep 60", "--lease", "100ms", "l", "--", "sleep", "60")
	status, _, said := result(t, at(s), args...)
	if status != 76 || !strings.Contains(said, "--on-lost: signal: killed") {
		t.Errorf("with an alarm that hangs: %d, %q", status, said)
	}
}

// What the kernel and the warden do: nobody is left who works without the lock, which ends with its lease.
func TestKilledProgramTakesItsCommandAlong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	args := append(append([]string{}, short...), "k", "--", "sh", "-c", "sh -c 'echo $$; while :; do sleep 0.01; done' & echo $$; wait")
	p := start(t, at(s), args...)
	one, two := p.out.await(t, ""), p.out.await(t, "")
	p.signal(syscall.SIGKILL)
	eventually(t, "the command has ended", func() bool { return !alive(one) && !alive(two) })
	eventually(t, "the lock has ended", func() bool { return keys(t, rdb) == "" })
}

// A command may run before the program that started it runs on, so the warden must know of it from its first instruction.
func TestProgramKilledByItsCommandTakesItAlong(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 10 {
		args := append(append([]string{}, short...), t.Name(), "--", "sh", "-c", "sh -c 'echo $$; while :; do sleep 0.01; done' & kill -KILL $PPID; wait")
		p := start(t, at(s), args...)
		if pid, ok := <-p.out.all; ok { // it may have been killed before it could say so
			eventually(t, "the command has ended", func() bool { return !alive(pid) })
		}
	}
}

func TestHoldKeepsTheLockAfterSuccess(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	tick := func(command string) int {
		status, _, _ := result(t, at(s), "run", "--hold", "5m", "job", "--", "sh", "-c", command)
		return status
	}
	if got := tick("exit 3"); got != 3 {
		t.Fatalf("status %d", got)
	}
	if got := keys(t, rdb); got != "" {
		t.Errorf("after a failure, it is still held: %s", got)
	}
	if got := tick("exit 0"); got != 0 {
		t.Fatalf("status %d", got)
	}
	if ttl := rdb.PTTL(t.Context(), "job").Val(); ttl < 4*time.Minute || ttl > 5*time.Minute {
		t.Errorf("kept for %v", ttl)
	}
	if got := tick("exit 0"); got != 75 {
		t.Errorf("the next tick: status %d", got)
	}
	// A command that took longer than that gives the lock back.
	status, _, said := result(t, at(s), "run", "--hold", "1ms", "other", "--", "sleep", "0.01")
	if n := rdb.Exists(t.Context(), "other").Val(); status != 0 || n != 0 {
		t.Errorf("status %d, %d keys, %s", status, n, said)
	}
}

func TestReleaseWithoutAnAnswerIsNoFailureOfTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "run", "--timeout", "200ms", "k", "--", "sh", "-c", "echo in; read -r _; exit 4")
	p.out.await(t, "in")
	s.Pause(t)
	defer s.Resume(t)
	_ = p.stdin.Close()
	if status := p.status(); status != 4 {
		t.Errorf("status %d, want the command's 4", status)
	}
	if said := p.err.rest(); !strings.Contains(said, "stays until its lease ends") {
		t.Errorf("it said %q", said)
	}
}
