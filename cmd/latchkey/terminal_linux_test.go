package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"golang.org/x/sys/unix"
)

// terminal is a program on a terminal of its own.
type terminal struct {
	*program
	keys *os.File // what is typed
}

// startOnTerminal runs latchkey as the leader of a session, whose terminal has no echo. A shell script that is not empty is run in its
// place; it finds latchkey as $0 "$@".
func startOnTerminal(t *testing.T, redisURL, script string, args ...string) *terminal {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	settings, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	check(err)
	settings.Lflag &^= unix.ECHO
	check(unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, settings))
	p := startIn(t, redisURL, func(c *exec.Cmd) {
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if script != "" {
			c.Args = append([]string{"sh", "-c", script, c.Path}, c.Args[1:]...)
			c.Path = "/bin/sh"
		}
	}, args...)
	check(slave.Close())
	p.out = newLines(master)
	t.Cleanup(func() { _ = master.Close() })
	return &terminal{p, master}
}

func (x *terminal) press(text string) {
	x.t.Helper()
	if _, err := x.keys.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

func TestCommandHasTheTerminal(t *testing.T) {
	s := redistest.Start(t)
	x := startOnTerminal(t, at(s), "", "run", "k", "--", "sh", "-c", "echo in; read -r a; echo got $a; read -r b; echo got $b; read -r c")
	x.out.await(t, "in")
	x.press("one\n")
	x.out.await(t, "got one")
	// Others wait for the lock of a command that is suspended, and nobody renews it. So it is not.
	x.press(ctrlZ)
	x.out.await(t, "can't be suspended")
	x.press("two\n")
	x.out.await(t, "got two")
	x.press(ctrlC)
	if status := x.status(); status != 130 {
		t.Errorf("after Ctrl-C: status %d, want 130", status)
	}
	if got := keys(t, s.Client(t)); got != "" {
		t.Errorf("left in Redis: %s", got)
	}
}

func TestCtrlCEndsTheWait(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	stock(t, rdb)
	x := startOnTerminal(t, at(s), "", "run", "--wait", "forever", "order:42", "--", "true")
	eventually(t, "it waits", func() bool {
		channels, _ := rdb.PubSubChannels(t.Context(), "redisson_lock__channel*").Result()
		return len(channels) > 0
	})
	x.press(ctrlC)
	if status := x.status(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
}

// A script goes on to use the terminal after its line with latchkey.
func TestTerminalIsGivenBack(t *testing.T) {
	s := redistest.Start(t)
	x := startOnTerminal(t, at(s), `"$0" "$@"; read -r line; echo back $line`, "run", "k", "--", "true")
	x.press("hello\n")
	x.out.await(t, "back hello")
	if status := x.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestFreeAsks(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	for _, tt := range []struct {
		name, answer string
		status       int
		says         string
		left         int64
	}{
		{"yes", "y\n", 0, "order:42 is freed", 0},
		{"no", "n\n", 1, "not freed", 1},
		{"nothing", "\n", 1, "not freed", 1},
		{"too late", "yes\n", 1, "has other holders now", 1},
		{"interrupted", ctrlC, 130, "ended by signal", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rdb.FlushAll(t.Context())
			stock(t, rdb)
			x := startOnTerminal(t, at(s), "", "free", "order:42")
			x.out.await(t, "holder    "+javaClient+":31, 2 holds")
			x.out.await(t, "listeners") // the last line before the question
			if tt.name == "too late" {
				rdb.Del(t.Context(), "order:42")
				rdb.HSet(t.Context(), "order:42", goClient+":9", "1")
			}
			x.press(tt.answer)
			if status := x.status(); status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			if out := x.out.rest(); !strings.Contains(out, tt.says) {
				t.Errorf("it said %q, want %q", out, tt.says)
			}
			if n := rdb.Exists(t.Context(), "order:42").Val(); n != tt.left {
				t.Errorf("%d locks are left, want %d", n, tt.left)
			}
		})
	}
}

func TestFreeShowsTheHolderWhereItAsks(t *testing.T) {
	s := redistest.Start(t)
	stock(t, s.Client(t))
	file := filepath.Join(t.TempDir(), "out")
	x := startOnTerminal(t, at(s), `"$0" "$@" >`+file, "free", "-o", "json", "order:42")
	x.out.await(t, "holder    "+javaClient+":31, 2 holds")
	x.press("y\n")
	if status := x.status(); status != 0 {
		t.Errorf("status %d: %s", status, x.out.rest())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) || !strings.HasPrefix(string(text), `{"freed":{"key":"order:42"`) {
		t.Errorf("the output is %s", text)
	}
}

func TestWatchDrawsOnATerminal(t *testing.T) {
	s := redistest.Start(t)
	stock(t, s.Client(t))
	x := startOnTerminal(t, at(s), "", "watch", "--interval", "20ms")
	x.out.await(t, "8 locks")
	x.out.await(t, "order:42")
	s.Client(t).Del(t.Context(), "order:42")
	x.out.await(t, "7 locks")
	x.press(ctrlC)
	if status := x.status(); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
}

// A long search says on the terminal how far it is, on a line that is gone before anything else is written.
func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	few, many := redistest.Start(t), redistest.Start(t)
	stock(t, few.Client(t))
	pipe := many.Client(t).Pipeline()
	for i := range sortedRows + 100 {
		pipe.HSet(t.Context(), fmt.Sprint("many:", i), goClient+":1", 1)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, script string
		s            *redistest.Server
		want         string // in the last line
	}{
		{"a table", `"$0" ls; echo said`, few, "write"},
		{"a table of many", `"$0" ls; echo said`, many, "many:"},
		{"JSON on the terminal", `"$0" ls -o json; echo said`, few, `"type":`},
		{"a table that goes elsewhere", `"$0" ls >/dev/null; echo said`, few, "said"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			front := tt.s.Front(t)
			front.Delay(60 * time.Millisecond) // for each question and each answer
			x := startOnTerminal(t, "redis://"+front.Addr, tt.script)
			// What a line becomes on the screen: it is erased from its beginning on.
			x.out.await(t, "said")
			said := x.out.got.String()
			lines := strings.Split(strings.TrimSpace(said), "\n")
			shown := 0
			for i, line := range lines {
				at := strings.LastIndex(line, eraseLine)
				if at >= 0 {
					shown += strings.Count(line[:at], "looking for locks: ")
					lines[i] = line[at+len(eraseLine):]
				}
			}
			if shown == 0 || strings.Contains(strings.Join(lines, "\n"), "looking") {
				t.Errorf("the line was shown %d times, and left on the screen is\n%s", shown, strings.Join(lines, "\n"))
			}
			if !strings.Contains(lines[max(0, len(lines)-2)]+lines[len(lines)-1], tt.want) {
				t.Errorf("no %q at the end of\n%s", tt.want, said)
			}
		})
	}
}

func TestLsTellsHowFarItIs(t *testing.T) {
	s := redistest.Start(t)
	stock(t, s.Client(t))
	s.Fill(t, 20_000)
	all := int(s.Client(t).DBSize(t.Context()).Val())
	p := s.Front(t)
	p.Delay(20 * time.Millisecond) // so that it takes 40ms for 1,000 keys, three times
	x := startOnTerminal(t, "redis://"+p.Addr, "", "ls", "order:*")
	line := x.out.await(t, "KEY") // there is no end of a line before
	if !regexp.MustCompile(`looking for locks: \d so far, in [1-9]\d* of ` + itoa(all) + ` keys, 1s`).MatchString(line) {
		t.Errorf("it said %q", line)
	}
	x.out.await(t, "order:42")
	if status := x.status(); status != 0 {
		t.Errorf("status %d", status)
	}
}
