package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// statusCase is a call of latchkey run.
type statusCase struct {
	name, url string // "" is the test's own server
	args      []string
	want      int
	out, err  string // in what is written
}

// misuses are calls that ask for nothing that can be done.
var misuses = []statusCase{
	{"no key", "", nil, 64, "", "needs a KEY"},
	{"no key in front of --", "", []string{"--", "true"}, 64, "", "needs a KEY"},
	{"empty key", "", []string{"", "--", "true"}, 64, "", "without a key"},
	{"no dashes", "", []string{"k", "true"}, 64, "", "needs --"},
	{"two keys", "", []string{"k", "l", "--", "true"}, 64, "", "one KEY"},
	{"nothing to run", "", []string{"k", "--"}, 64, "", "needs a COMMAND"},
	{"unknown flag", "", []string{"--no", "k", "--", "true"}, 64, "", "unknown flag: --no"},
	{"unknown kind", "", []string{"--kind", "odd", "k", "--", "true"}, 64, "", "want one of plain, fair"},
	{"negative wait", "", []string{"--wait", "-1s", "k", "--", "true"}, 64, "", "want a time such as 10s"},
	{"negative grace", "", []string{"--grace", "-1s", "k", "--", "true"}, 64, "", "--grace -1s is negative"},
	{"permit without a limit", "", []string{"--kind", "permit", "k", "--", "true"}, 64, "", "needs --limit"},
	{"limit without a permit", "", []string{"--limit", "3", "k", "--", "true"}, 64, "", "is for --kind permit"},
	{"a status that is none", "", []string{"--busy-exit", "256", "k", "--", "true"}, 64, "", "want 0 to 255"},
	{"two rules for busy", "", []string{"--busy-exit", "2", "--skip-ok", "k", "--", "true"}, 64, "", "want one of them"},
	{"a watchdog without time", "", []string{"--watchdog", "1ms", "k", "--", "true"}, 64, "", "watchdog timeout 1ms"},
	{"no URL", "http://user:secret@h", []string{"k", "--", "true"}, 64, "", "LATCHKEY_REDIS_URL: "},
	{"a password with a slash", "redis://user:secret/x@h", []string{"k", "--", "true"}, 64, "", "LATCHKEY_REDIS_URL: this is no URL: in a user's name or password, write"},
	{"a password with a number", "redis://user:42/secret@h", []string{"k", "--", "true"}, 64, "", "LATCHKEY_REDIS_URL: this is no URL"},
	{"broken URL", "redis://user:secret@h:%zz", []string{"k", "--", "true"}, 64, "", "LATCHKEY_REDIS_URL: "},
	{"odd output", "", []string{"-o", "yaml", "k", "--", "true"}, 64, "", "want text or json"},
}

// TestStatuses plays each line of the table of statuses that one process can make by itself.
func TestStatuses(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	rdb.Do(t.Context(), "acl", "setuser", "nobody", "on", ">secret", "+@connection")
	rdb.Set(t.Context(), "text", "a", 0)
	rdb.HSet(t.Context(), "held", "00000000-0000-4000-8000-000000000000:1", "1")
	rdb.PExpire(t.Context(), "held", time.Hour)
	denied := strings.Replace(at(s), "//", "//nobody:secret@", 1)
	wrong := strings.Replace(at(s), "//", "//nobody:geheim@", 1)
	port := redistest.FreePort(t)
	for _, tt := range append([]statusCase{
		{"success", "", []string{"k", "--", "true"}, 0, "", ""},
		{"the command's own", "", []string{"k", "--", "sh", "-c", "exit 42"}, 42, "", ""},
		{"the command's signal", "", []string{"k", "--", "sh", "-c", "kill -USR1 $$"}, 128 + 10, "", ""},
		{"busy", "", []string{"held", "--", "echo", "ran"}, 75, "", "held is held by others, for up to 5"},
		{"busy after a wait", "", []string{"--wait", "50ms", "held", "--", "echo", "ran"}, 75, "", "is held by others"},
		{"busy by choice", "", []string{"--busy-exit", "5", "held", "--", "echo", "ran"}, 5, "", "is held by others"},
		{"busy and fine", "", []string{"--skip-ok", "held", "--", "echo", "ran"}, 0, "", ""},
		{"max hold", "", []string{"--max-hold", "300ms", "k", "--", "sleep", "60"}, 124, "", "held for as long as allowed; the command ended with status 143"},
		{"lease", "", []string{"--lease", "300ms", "k", "--", "sleep", "60"}, 76, "", "its lease is over; the command ended with status 143"},
		{"no such command", "", []string{"k", "--", "no-such-command"}, 127, "", "no-such-command"},
		{"no command", "", []string{"k", "--", "/etc/passwd"}, 126, "", "permission denied"},
		{"no server", "redis://127.0.0.1:" + port, []string{"k", "--", "echo", "ran"}, 69, "", "no answer from redis://127.0.0.1:" + port},
		{"no permission", denied, []string{"k", "--", "echo", "ran"}, 77, "", "NOPERM"},
		{"wrong password", wrong, []string{"k", "--", "echo", "ran"}, 77, "", "WRONGPASS"},
		{"another type", "", []string{"text", "--", "echo", "ran"}, 77, "", "WRONGTYPE"},
		{"messages for programs", "", []string{"-o", "json", "held", "--", "true"}, 75, "", `{"event":"busy","message":"held is held`},
	}, misuses...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.url == "" {
				tt.url = at(s)
			}
			for i, arg := range tt.args {
				if arg == "k" { // a key for each, as they run side by side
					tt.args[i] = "key of " + tt.name
				}
			}
			status, out, err := result(t, tt.url, append([]string{"run"}, tt.args...)...)
			if status != tt.want || out != tt.out || !strings.Contains(err, tt.err) || tt.err == "" && err != "" {
				t.Errorf("run %q = %d, %q, %q\nwant %d, %q, %q", tt.args, status, out, err, tt.want, tt.out, tt.err)
			}
			if strings.Contains(err, "secret") || strings.Contains(err, "geheim") {
				t.Errorf("the password is in %q", err)
			}
		})
	}
}

func TestCommandFindsKeyAndToken(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const show = `echo "<$LATCHKEY_KEY> <${LATCHKEY_TOKEN-none}> <$LATCHKEY_REDIS_URL>"`
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--kind", "fenced", "a b"}, "<a b> <1>"},
		{[]string{"--kind", "fenced", "a b"}, "<a b> <2>"},
		{[]string{"a b"}, "<a b> <none>"},
		{[]string{"--kind", "fair", "a b"}, "<a b> <none>"},
		{[]string{"--kind", "spin", "a b"}, "<a b> <none>"},
		{[]string{"--kind", "read", "c"}, "<c> <none>"},
		{[]string{"--kind", "write", "c"}, "<c> <none>"},
		{[]string{"--kind", "permit", "--limit", "1", "d"}, "<d> <none>"},
	} {
		args := append([]string{"run"}, append(tt.args, "--", "sh", "-c", show)...)
		status, out, err := result(t, at(s), args...)
		if want := tt.want + " <" + at(s) + ">\n"; status != 0 || out != want || err != "" {
			t.Errorf("%q = %d, %q, %q, want %q", args, status, out, err, want)
		}
	}
	// What an outer run has set is not taken for our own.
	p := startIn(t, at(s), func(c *exec.Cmd) { c.Env = append(c.Env, "LATCHKEY_TOKEN=7", "LATCHKEY_KEY=other") }, "run", "e", "--", "sh", "-c", show)
	p.out.await(t, "<e> <none>")
	p.status()
	if got := keys(t, s.Client(t)); got != "redisson_lock_token:{a b}" {
		t.Errorf("left in Redis: %s", got)
	}
}

func TestCommandGetsInputAndItsEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "run", "k", "--", "cat")
	if _, err := p.stdin.Write([]byte("one\n")); err != nil {
		t.Fatal(err)
	}
	p.out.await(t, "one")
	_ = p.stdin.Close()
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestTwoProcessesContend(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	first := start(t, at(s), "run", "k", "--", "sh", "-c", "echo in; read -r _; echo out")
	first.out.await(t, "in")
	second := start(t, at(s), "run", "-v", "--wait", "forever", "k", "--", "sh", "-c", "echo in")
	rdb := s.Client(t)
	eventually(t, "the second one waits", func() bool {
		channels, _ := rdb.PubSubChannels(t.Context(), "redisson_lock__channel:{k}*").Result()
		return len(channels) > 0
	})
	if status, _, _ := result(t, at(s), "run", "k", "--", "true"); status != 75 {
		t.Errorf("a third one: status %d", status)
	}
	_ = first.stdin.Close()
	if status := first.status(); status != 0 {
		t.Errorf("first: status %d", status)
	}
	second.out.await(t, "in")
	if status := second.status(); status != 0 {
		t.Errorf("second: status %d, %s", status, second.err.rest())
	}
	if got := second.err.rest(); !strings.Contains(got, "k is taken after") || !strings.Contains(got, "k is given back after") {
		t.Errorf("-v said: %s", got)
	}
	if got := keys(t, rdb); got != "" {
		t.Errorf("left in Redis: %s", got)
	}
}

func TestPermitsAreLimited(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	run := func() *program {
		return start(t, at(s), "run", "--kind", "permit", "--limit", "2", "k", "--", "sh", "-c", "echo in; read -r _")
	}
	one, two := run(), run()
	one.out.await(t, "in")
	two.out.await(t, "in")
	if status := run().status(); status != 75 {
		t.Errorf("a third permit of 2: status %d", status)
	}
	_ = one.stdin.Close()
	one.status()
	run().out.await(t, "in")
}

func TestSignalEndsTheWaitAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"plain", "fair", "write"} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			t.Run(kind+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				s := redistest.Start(t)
				rdb := s.Client(t)
				holder := start(t, at(s), "run", "--kind", kind, "k", "--", "sh", "-c", "echo in; read -r _")
				holder.out.await(t, "in")
				eventually(t, "the holder says who it is", func() bool { return strings.Contains(keys(t, rdb), "latchkey_client:") })
				held := keys(t, rdb)
				p := start(t, at(s), "run", "--kind", kind, "--wait", "forever", "k", "--", "echo", "ran")
				eventually(t, "it waits", func() bool {
					channels, _ := rdb.PubSubChannels(t.Context(), "redisson_*").Result()
					return len(channels) > 0
				})
				p.signal(syscall.SIGUSR1) // is for commands only
				p.signal(sig)
				if status := p.status(); status != 128+int(sig) {
					t.Errorf("status %d, want %d", status, 128+int(sig))
				}
				if out := p.out.rest(); out != "" {
					t.Errorf("the command ran: %s", out)
				}
				if got := keys(t, rdb); got != held {
					t.Errorf("left in Redis: %s, want %s", got, held)
				}
				eventually(t, "nothing is subscribed", func() bool {
					channels, _ := rdb.PubSubChannels(t.Context(), "redisson_*").Result()
					return len(channels) == 0
				})
			})
		}
	}
}

func TestSignalEndsTheJitter(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "run", "-v", "--jitter", "1000h", "k", "--", "true")
	p.err.await(t, "sleeps for")
	p.signal(syscall.SIGTERM)
	if status := p.status(); status != 143 {
		t.Errorf("status %d, want 143", status)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, tt := range []struct {
		sig  syscall.Signal
		name string
	}{{syscall.SIGTERM, "TERM"}, {syscall.SIGINT, "INT"}, {syscall.SIGHUP, "HUP"}, {syscall.SIGQUIT, "QUIT"}, {syscall.SIGUSR1, "USR1"}, {syscall.SIGUSR2, "USR2"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// The trap tells of the signal, and the lock is held until the command has ended for its own reasons.
			script := "trap 'echo got " + tt.name + "; got=1' " + tt.name + "; echo in; while [ -z \"$got\" ]; do sleep 0.01; done; exit 7"
			p := start(t, at(s), "run", tt.name, "--", "sh", "-c", script)
			p.out.await(t, "in")
			p.signal(tt.sig)
			p.out.await(t, "got "+tt.name)
			if status := p.status(); status != 7 {
				t.Errorf("status %d, want the command's 7", status)
			}
		})
	}
}

// nohup and shells without job control start processes that ignore signals.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := startIn(t, at(s), func(c *exec.Cmd) {
		c.Args = append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
	}, "run", "k", "--", "sh", "-c", "echo in; read -r line; echo $line")
	p.out.await(t, "in")
	p.signal(syscall.SIGHUP)
	if _, err := p.stdin.Write([]byte("still here\n")); err != nil {
		t.Fatal(err)
	}
	p.out.await(t, "still here")
	if status := p.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}
