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

// wardenName is what a process is called that is a warden.
const wardenName = "latchkey-warden"

// What a warden reads from its pipe, a line each.
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
	self, err := os.Executable()
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

func (w *warden) watch(group int) { fmt.Fprintf(w.pipe, "%s%d\n", wordWatch, group) }

// dismiss ends the warden, and waits for it.
func (w *warden) dismiss() {
	fmt.Fprintln(w.pipe, wordDone)
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}

// Warden does nothing in a process that is none. In a warden, it does all its work and ends the process.
func Warden() {
	if os.Args[0] != wardenName {
		return
	}
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
