package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// leads is a command that says its token, and stays.
const leads = `echo "leads with $LATCHKEY_TOKEN"; exec sleep 60`

func TestTheNextHostLeads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first := start(t, at(s), "lead", "k", "--", "sh", "-c", leads)
	first.out.await(t, "leads with 1")
	second := start(t, at(s), "lead", "k", "--", "sh", "-c", leads)
	rdb := s.Client(t)
	eventually(t, "the second one waits", func() bool {
		channels, _ := rdb.PubSubChannels(t.Context(), "redisson_lock__channel:{k}*").Result()
		return len(channels) > 0
	})
	first.signal(syscall.SIGTERM)
	if status := first.status(); status != 143 {
		t.Errorf("first: status %d, want that of its command, 143", status)
	}
	second.out.await(t, "leads with 2")
	second.signal(syscall.SIGINT)
	if status := second.status(); status != 130 {
		t.Errorf("second: status %d, want 130", status)
	}
	if got := keys(t, rdb); got != "redisson_lock_token:{k}" {
		t.Errorf("left in Redis: %s", got)
	}
}

// The next one leads also when the process of the first one is killed, once its lease is over. Its command does not outlive it.
func TestTheNextHostLeadsAfterACrash(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	args := []string{"lead", "--watchdog", "1s", "k", "--", "sh", "-c", "echo $$; " + leads}
	first := start(t, at(s), args...)
	pid := first.out.await(t, "")
	first.out.await(t, "leads with 1")
	second := start(t, at(s), args...)
	begun := time.Now()
	first.signal(syscall.SIGKILL)
	second.out.await(t, "leads with 2")
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("the second leads after %v, want the lease of 1s and a little", took)
	}
	eventually(t, "the first command is gone", func() bool { return !alive(pid) })
	second.signal(syscall.SIGTERM)
	second.status()
}

func TestLeadStartsACommandThatFailsAnew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	file := t.TempDir() + "/runs"
	status, out, err := result(t, at(s), "lead", "-v", "k", "--", "sh", "-c", `echo "leads with $LATCHKEY_TOKEN"; echo >> "$0"; test $(wc -l < "$0") = 4 || exit 7`, file)
	if status != 0 || out != "leads with 1\nleads with 2\nleads with 3\nleads with 4\n" {
		t.Errorf("status %d, %q", status, out)
	}
	if n := strings.Count(err, "latchkey: ended, status 7: stands again\n"); n != 3 {
		t.Errorf("it stands again %d times, want 3:\n%s", n, err)
	}
	most := 250 * time.Millisecond
	for line := range strings.Lines(err) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "latchkey: sleeps for "); ok {
			if d, err := time.ParseDuration(text); err != nil || d > most {
				t.Errorf("%s: want up to %v", line, most)
			}
			most *= 2
		}
	}
	if most != 2*time.Second {
		t.Errorf("it did not pause before each attempt:\n%s", err)
	}
}

// The signals of a later lead reach its command, too.
func TestLeadStandsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const script = `trap 'echo got USR1' USR1; trap 'echo bye; exit 0' TERM; echo "leads with $LATCHKEY_TOKEN"; while :; do sleep 0.01; done`
	p := start(t, at(s), "lead", "--watchdog", "600ms", "k", "--", "sh", "-c", script)
	for _, token := range []string{"1", "2"} {
		p.out.await(t, "leads with "+token)
		s.Client(t).Del(t.Context(), "k")
		p.out.await(t, "bye")
		if said := p.err.await(t, "stands again"); !strings.Contains(said, "the lock k was lost after") || !strings.Contains(said, "status 76") {
			t.Errorf("it said %q", said)
		}
	}
	p.out.await(t, "leads with 3")
	p.signal(syscall.SIGUSR1)
	p.out.await(t, "got USR1")
	p.signal(syscall.SIGTERM)
	p.out.await(t, "bye")
	if status := p.status(); status != 0 {
		t.Errorf("status %d, want the command's", status)
	}
}

func TestMaxHoldIsATermOfOffice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "lead", "--max-hold", "300ms", "k", "--", "sh", "-c", leads)
	p.out.await(t, "leads with 1")
	p.out.await(t, "leads with 2")
	p.out.await(t, "leads with 3")
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 143 && status != 124 { // 124 if the term was over meanwhile
		t.Errorf("status %d", status)
	}
}

// A command that was told to end is not started anew, whatever its status.
func TestTheEndOfACommandThatWasToldIsOurs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p := start(t, at(s), "lead", sig.String(), "--", "sh", "-c", "trap 'exit 7' TERM HUP; echo in; while :; do sleep 0.01; done")
		p.out.await(t, "in")
		p.signal(sig)
		if status := p.status(); status != 7 {
			t.Errorf("%v: status %d, want 7", sig, status)
		}
		if out := p.out.rest(); strings.Count(out, "in") != 1 {
			t.Errorf("%v: it was started anew: %s", sig, out)
		}
	}
}

// A signal ends who waits, who pauses, and who has no Redis.
func TestSignalEndsACandidate(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	holder := start(t, at(s), "lead", "k", "--", "sh", "-c", leads)
	holder.out.await(t, "leads with 1")
	waits := start(t, at(s), "lead", "k", "--", "echo", "ran")
	eventually(t, "it waits", func() bool {
		channels, _ := s.Client(t).PubSubChannels(t.Context(), "redisson_lock__channel:{k}*").Result()
		return len(channels) > 0
	})
	fails := start(t, at(s), "lead", "other", "--", "false")
	for range 5 { // and the pause is up to 4s
		fails.err.await(t, "ended, status 1: stands again")
	}
	down := start(t, "redis://127.0.0.1:"+redistest.FreePort(t), "lead", "--timeout", "100ms", "k", "--", "echo", "ran")
	for range 2 {
		if said := down.err.await(t, "stands again"); !strings.Contains(said, "no answer from redis://127.0.0.1:") {
			t.Errorf("without Redis it said %q", said)
		}
	}
	for _, p := range []*program{waits, fails, down} {
		p.signal(syscall.SIGTERM)
		if status := p.status(); status != 143 {
			t.Errorf("%v: status %d, want 143", p.cmd.Args[1:], status)
		}
		if out := p.out.rest(); out != "" {
			t.Errorf("%v: the command ran: %s", p.cmd.Args[1:], out)
		}
	}
}

func TestLeadEndsWhereTryingAgainCannotHelp(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Client(t).Set(t.Context(), "text", "a", 0)
	for _, tt := range []statusCase{
		{"success", "", []string{"lead", "k", "--", "true"}, 0, "", ""},
		{"no such command", "", []string{"lead", "k", "--", "no-such-command"}, 127, "", "no-such-command"},
		{"no command", "", []string{"lead", "k", "--", "/etc/passwd"}, 126, "", "permission denied"},
		{"another type", "", []string{"lead", "text", "--", "echo", "ran"}, 77, "", "WRONGTYPE"},
		{"no key", "", []string{"lead"}, 64, "", "lead needs a KEY"},
		{"no command at all", "", []string{"lead", "k", "--"}, 64, "", "lead needs a COMMAND"},
		{"negative grace", "", []string{"lead", "--grace", "-1s", "k", "--", "true"}, 64, "", "--grace -1s is negative"},
		{"a flag of run", "", []string{"lead", "--wait", "1s", "k", "--", "true"}, 64, "", "unknown flag: --wait"},
	} {
		status, out, err := result(t, at(s), tt.args...)
		if status != tt.want || out != tt.out || !strings.Contains(err, tt.err) || strings.Contains(err, "stands again") {
			t.Errorf("%s: %d, %q, %q\nwant %d, %q, %q", tt.name, status, out, err, tt.want, tt.out, tt.err)
		}
	}
}
