//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a command that was started.
type Process struct {
	pid       int // also of its group
	tty       int // the file of the terminal, or -1
	warden    *warden
	suspended func()
	ended     chan struct{}
	result    Result // once ended is closed
}

// Start runs a command. Linux kills it when the *thread* that started it ends, so the caller must be locked to one that lives for
// as long as this process: main's. An error of finding or executing the program is one of os/exec.
func Start(c Command) (*Process, error) {
	path, err := exec.LookPath(c.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	p := &Process{tty: -1, suspended: c.Suspended, ended: make(chan struct{})}
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(attr)
	if c.Stdin != nil && hasTerminal(int(c.Stdin.Fd())) {
		p.tty = int(c.Stdin.Fd())
		attr.Foreground, attr.Ctty = true, p.tty
	}
	if p.warden, err = startWarden(); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Path: path, Args: c.Args, Env: c.Env, SysProcAttr: attr}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
	if err := cmd.Start(); err != nil {
		p.warden.dismiss()
		return nil, err
	}
	p.pid = cmd.Process.Pid
	p.warden.watch(p.pid)
	_ = cmd.Process.Release() // wait4 tells more than its Wait
	go p.wait()
	return p, nil
}

// hasTerminal reports whether a file is a terminal whose foreground group is this process's.
func hasTerminal(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func (p *Process) wait() {
	defer close(p.ended)
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(p.pid, &ws, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil: // nobody else waits for it, so this can't be
			p.result = Result{Status: 255}
			return
		case ws.Stopped():
			p.stopped(ws.StopSignal())
		case ws.Signaled():
			p.result = Result{128 + int(ws.Signal()), ws.Signal()}
			return
		default:
			p.result = Result{Status: ws.ExitStatus()}
			return
		}
	}
}

// stopped continues a command that the terminal has stopped. Another process that stops it has its reasons.
func (p *Process) stopped(by syscall.Signal) {
	if p.tty < 0 || by != unix.SIGTSTP {
		return
	}
	if p.suspended != nil {
		p.suspended()
	}
	p.send(unix.SIGCONT)
}

// Ended is closed when the command has ended. Others of its group may go on.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Result is how the command ended, once it has.
func (p *Process) Result() Result { return p.result }

// Signal passes a signal on to the group. After SIGCONT, a group that was started in the background gets the terminal if we have
// it now.
func (p *Process) Signal(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if sig == unix.SIGCONT && p.tty < 0 && hasTerminal(0) {
		p.tty = 0
		setForeground(p.tty, p.pid)
	}
	p.send(sig)
}

// Terminate asks the group to end. One that is stopped could not.
func (p *Process) Terminate() {
	adoptOrphans()
	p.send(unix.SIGTERM)
	p.send(unix.SIGCONT)
}

// Kill ends the group.
func (p *Process) Kill() { p.send(unix.SIGKILL) }

// send fails if the group is gone, which is as well.
func (p *Process) send(s syscall.Signal) { _ = unix.Kill(-p.pid, s) }

// AwaitGroup waits until the whole group has ended, and reports whether it has within d. The command itself must have ended.
func (p *Process) AwaitGroup(d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(poll) {
		for pid := 1; pid > 0; {
			pid, _ = unix.Wait4(-p.pid, nil, unix.WNOHANG, nil)
		}
		if errors.Is(unix.Kill(-p.pid, 0), unix.ESRCH) {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
	}
}

// Close takes the terminal back and sends the warden home. What the command has left in the background goes on.
func (p *Process) Close() {
	if p.tty >= 0 {
		setForeground(p.tty, unix.Getpgrp())
	}
	p.warden.dismiss()
}

// setForeground makes a group the terminal's foreground group. Who is not in it would be stopped for that by SIGTTOU.
func setForeground(tty, group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, group)
	signal.Reset(unix.SIGTTOU)
}
