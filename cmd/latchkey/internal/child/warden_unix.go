//go:build unix

package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// wardenName is the name of a warden's process.
const wardenName = "latchkey-warden"

// The words that a warden reads from its pipe, a line each: the first from a starter, the last from the process that it
// belongs to.
const (
	wordWatch = "watch " // and the number of a group
	wordDone  = "done"
)

// warden is our end of the pipe of another process.
type warden struct {
	pipe *os.File
	cmd  *exec.Cmd
}

func startWarden() (*warden, error) {
	self, err := self()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := &exec.Cmd{
		Path: self,
		Args: []string{wardenName},
		Env:  append(os.Environ(), "GOMAXPROCS=1"),
		// A session of its own keeps it from what the terminal sends to groups.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		Stdin:       r,
	}
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("no process to watch over the command: %w", err)
	}
	return &warden{w, cmd}, nil
}

// dismiss ends the warden, and waits for it.
func (w *warden) dismiss() {
	fmt.Fprintln(w.pipe, wordDone)
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}

// Serves reports whether this process is a warden or a starter.
func Serves() bool { return os.Args[0] == wardenName || os.Args[0] == starterName }

// Serve does nothing in a process of another kind. In a warden or a starter, it does all the work, and does not return.
func Serve() {
	switch os.Args[0] {
	case wardenName:
		watch()
	case starterName:
		becomeCommand()
	}
}

// watch kills a group if the process ends to which this warden belongs.
func watch() {
	setName(wardenName)
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	group := 0
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		if words.Text() == wordDone {
			os.Exit(0)
		}
		group, _ = strconv.Atoi(strings.TrimPrefix(words.Text(), wordWatch))
	}
	if group > 1 {
		_ = unix.Kill(-group, unix.SIGKILL)
	}
	os.Exit(0)
}
