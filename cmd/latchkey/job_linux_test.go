package main

import (
	"os/exec"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// What people do with jobs at a terminal, with the shells that they have there.

// atShell types a script into a shell with job control, whose terminal it is. The script finds latchkey as $0.
func atShell(t *testing.T, test func(t *testing.T, s *redistest.Server, script func(string) *terminal)) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(err)
			}
			s := redistest.Start(t)
			test(t, s, func(text string) *terminal {
				return startOnTerminal(t, at(s), "exec "+shell+` -c "$1" "$0"`, "set -m; "+text)
			})
		})
	}
}

// A command in the background wants the terminal, and is stopped for that. It gets what is typed once the user has said fg. Shells differ
// in whether they send SIGCONT to a job that is not stopped itself.
func TestBackgroundCommandGetsTheTerminal(t *testing.T) {
	atShell(t, func(t *testing.T, s *redistest.Server, script func(string) *terminal) {
		x := script(`"$0" run k -- sh -c 'echo asks; read -r a; echo "the command got $a"; exit 7' &
			read -r go; fg %1; echo "fg ended with $?"; read -r last; echo "the shell got $last"`)
		x.out.await(t, "asks")
		x.out.await(t, "waits for the terminal: bring it to the foreground")
		x.press("fg now\n") // to the shell, which has the terminal
		x.press("hello\n")
		x.out.await(t, "the command got hello")
		x.out.await(t, "fg ended with 7")
		x.press("bye\n")
		x.out.await(t, "the shell got bye")
		if status := x.status(); status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

// A program behind a pipe, such as a pager, keeps the terminal, and Ctrl-C reaches the command.
func TestPagerKeepsTheTerminal(t *testing.T) {
	atShell(t, func(t *testing.T, s *redistest.Server, script func(string) *terminal) {
		x := script(`"$0" run k -- sh -c 'trap "echo interrupted; exit 3" INT; echo begun; while :; do sleep 0.1; done' | {
			trap "" INT; read -r line; echo "the pager got $line"; read -r key </dev/tty; echo "the pager was told $key"; cat; }; read -r last; echo "the shell got $last"`)
		x.out.await(t, "the pager got begun")
		x.press("down\n")
		x.out.await(t, "the pager was told down")
		x.press(ctrlC)
		x.out.await(t, "interrupted")
		x.press("bye\n")
		x.out.await(t, "the shell got bye")
	})
}

// A command whose input is no terminal asks the user for something, as ssh does for a password.
func TestCommandAsksAtTheTerminal(t *testing.T) {
	atShell(t, func(t *testing.T, s *redistest.Server, script func(string) *terminal) {
		x := script(`echo data | "$0" run k -- sh -c 'echo password?; read -r p </dev/tty; read -r d; echo "$p and $d"'; read -r last; echo "the shell got $last"`)
		x.out.await(t, "password?")
		x.press("secret\n")
		x.out.await(t, "secret and data")
		x.press("bye\n")
		x.out.await(t, "the shell got bye")
	})
}

// Ctrl-Z stops the group that has the terminal. If that is ours, and not the command's, the lock would end while the command goes on.
func TestCtrlZDoesNotEndTheLock(t *testing.T) {
	atShell(t, func(t *testing.T, s *redistest.Server, script func(string) *terminal) {
		x := script(`"$0" run --watchdog 600ms k -- sh -c 'echo begun; sleep 60' </dev/null`)
		x.out.await(t, "begun")
		x.press(ctrlZ)
		x.out.await(t, "can't be suspended")
		rdb := s.Client(t)
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if rdb.Exists(t.Context(), "k").Val() == 0 {
				t.Fatal("the lock has ended, and the command has not")
			}
		}
		x.press(ctrlC)
		eventually(t, "it has ended", func() bool { return keys(t, rdb) == "" })
	})
}
