//go:build unix

package child

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a command that was started.
type Process struct {
	pid              int // also of its group
	warden           *warden
	suspended, wants func()
	ended            chan struct{}
	result           Result // once ended is closed

	tty     *os.File    // the terminal of this session, or nil
	lent    atomic.Bool // the group has been given it
	lending atomic.Bool // lend is at work
	lender  sync.WaitGroup
}

// Start runs a command. Linux kills it when the *thread* that started it ends, so the caller must be locked to one that lives for
// as long as this process: main's. An error of finding or executing the program is one of os/exec.
func Start(c Command) (*Process, error) {
	path, err := exec.LookPath(c.Args[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return nil, err
	}
	p := &Process{suspended: c.Suspended, wants: c.Wants, ended: make(chan struct{})}
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithUs(attr)
	if p.tty, err = os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil && p.foreground() == unix.Getpgrp() && isTerminal(c.Stdin) && isTerminal(c.Stdout) {
		attr.Foreground, attr.Ctty = true, int(p.tty.Fd())
		p.lent.Store(true)
	}
	if p.warden, err = startWarden(); err != nil {
		p.closeTerminal()
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
	err = startFor(p.warden, cmd)
	// This process keeps a lock alive, so what others do to the terminal must not stop it. The command has its own settings by now.
	signal.Ignore(unix.SIGTTIN, unix.SIGTTOU)
	if err != nil {
		p.takeBack()
		p.warden.dismiss()
		return nil, err
	}
	p.pid = cmd.Process.Pid
	_ = cmd.Process.Release() // wait4 tells more than its Wait
	go p.wait()
	return p, nil
}

// isTerminal reports whether a file is the terminal of this session.
func isTerminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// foreground is the terminal's foreground group, or 0 if there is none.
func (p *Process) foreground() int {
	if p.tty == nil {
		return 0
	}
	group, _ := unix.IoctlGetInt(int(p.tty.Fd()), unix.TIOCGPGRP)
	return group
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
	switch {
	case by == unix.SIGTSTP && p.lent.Load():
		if p.suspended != nil {
			p.suspended()
		}
		p.send(unix.SIGCONT)
	case (by == unix.SIGTTIN || by == unix.SIGTTOU) && p.lending.CompareAndSwap(false, true):
		p.lender.Go(p.lend)
	}
}

// lend gives the terminal to a group that wants it, as soon as this process has it. A shell need not say when that is: some continue
// only jobs that are stopped themselves.
func (p *Process) lend() {
	for told := false; ; told = true {
		switch p.foreground() {
		case unix.Getpgrp():
			p.lent.Store(true)
			p.setForeground(p.pid)
			fallthrough
		case p.pid:
			p.lending.Store(false) // it may be stopped again
			p.send(unix.SIGCONT)
			return
		}
		if !told && p.wants != nil {
			p.wants()
		}
		select {
		case <-p.ended:
			return
		case <-time.After(lendPoll):
		}
	}
}

// lendPoll is how often the terminal is looked at that a stopped command wants.
const lendPoll = 50 * time.Millisecond

// Ended is closed when the command has ended. Others of its group may go on.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Result is how the command ended, once it has.
func (p *Process) Result() Result { return p.result }

// Signal passes a signal on to the group.
func (p *Process) Signal(s os.Signal) {
	if sig, ok := s.(syscall.Signal); ok {
		p.send(sig)
	}
}

// Terminate asks the group to end. One that is stopped could not.
func (p *Process) Terminate() {
	adoptOrphans(1)
	p.send(unix.SIGTERM)
	p.send(unix.SIGCONT)
}

// Kill ends the group.
func (p *Process) Kill() { p.send(unix.SIGKILL) }

// send fails if the group is gone, which is as well.
func (p *Process) send(s syscall.Signal) { _ = unix.Kill(-p.pid, s) }

// AwaitGroup waits until the whole group has ended, and reports whether it has within d. The command itself must have ended.
func (p *Process) AwaitGroup(d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(poll) { //nolint:forbidigo // the caller has given d
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

// Close takes the terminal back and sends the warden home. Processes that the command has left in the background go on.
func (p *Process) Close() {
	adoptOrphans(0)
	p.lender.Wait()
	p.takeBack()
	p.warden.dismiss()
}

func (p *Process) takeBack() {
	if p.lent.Load() {
		p.setForeground(unix.Getpgrp())
	}
	p.closeTerminal()
}

func (p *Process) closeTerminal() {
	if p.tty != nil {
		_ = p.tty.Close()
	}
}

// setForeground makes a group the terminal's foreground group. A process outside of that group would be stopped for it,
// but for Start.
func (p *Process) setForeground(group int) {
	_ = unix.IoctlSetPointerInt(int(p.tty.Fd()), unix.TIOCSPGRP, group)
}
