package play

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	// answerTimeout bounds how long a process may take to answer an order, or to get the lock.
	answerTimeout = 30 * time.Second
	// pollPause is between two tries of somebody who waits.
	pollPause = 10 * time.Millisecond
)

// actor is a process of a play, with a lock of the step. It follows orders, and can be stopped and killed meanwhile.
type actor struct {
	s       *stage
	name    string
	lease   time.Duration
	cmd     *exec.Cmd
	in      io.Writer
	lines   chan string // what it says
	doing   string      // the operation in which it is held
	stopped bool
	ended   bool
}

// actor starts a process whose lock has that lease.
func (s *stage) actor(name string, lease time.Duration) *actor { return s.actorAhead(name, lease, 0) }

// actorAhead starts a process on a machine whose clock is fast.
func (s *stage) actorAhead(name string, lease, ahead time.Duration) *actor {
	a := &actor{s: s, name: name, lease: lease, lines: make(chan string, 16), ended: true}
	if !s.ok() {
		return a
	}
	if ahead > 0 {
		s.tell("%s has a clock that is %v fast", name, ahead)
	}
	r := role{Store: s.props.Store, Lease: lease, Ahead: ahead}
	for _, server := range s.props.Servers {
		r.Servers = append(r.Servers, server.Addr)
	}
	if err := a.start(r); err != nil {
		s.fail(fmt.Errorf("start of %s: %w", name, err))
		return a
	}
	a.ended = false
	s.actors = append(s.actors, a)
	return a
}

func (a *actor) start(r role) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	a.cmd = exec.Command(a.s.props.Program)
	a.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	a.cmd.Stderr = os.Stderr
	a.cmd.SysProcAttr = dieWithParent()
	in, err1 := a.cmd.StdinPipe()
	out, err2 := a.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, a.cmd.Start()); err != nil {
		return err
	}
	a.in = in
	go func() {
		defer close(a.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			a.lines <- lines.Text()
		}
	}()
	return nil
}

// tryLock tries the lock once.
func (a *actor) tryLock() {
	a.say(opLock)
	switch word, reason := a.answer(); {
	case word == yes:
		a.s.tell("%s gets the lock for %v", a.name, a.lease)
	case reason == "":
		a.s.tell("%s is refused", a.name)
	default:
		a.s.fail(fmt.Errorf("%s can't try the lock: %s", a.name, reason))
	}
}

// getsWithin tries the lock until d is over, and then once more. It repeats a try that fails before: a lease may be too
// short for a busy machine, say.
func (a *actor) getsWithin(d time.Duration) bool {
	reason := ""
	for start, last := time.Now(), false; a.s.ok() && !last; time.Sleep(pollPause) {
		last = time.Since(start) > d
		a.say(opLock)
		word, r := a.answer()
		if word == yes {
			a.s.tell("%s gets the lock for %v, after %v", a.name, a.lease, time.Since(start).Round(time.Millisecond))
			return true
		}
		reason = r
	}
	if reason != "" {
		a.s.fail(fmt.Errorf("%s can't try the lock: %s", a.name, reason))
	}
	a.s.tell("%s is refused for %v", a.name, d)
	return false
}

// awaitLock tries the lock until it has it.
func (a *actor) awaitLock() {
	if !a.getsWithin(answerTimeout) {
		a.s.fail(fmt.Errorf("%s did not get the lock within %v", a.name, answerTimeout))
	}
}

// unlock unlocks, whether or not it still has the lock.
func (a *actor) unlock() {
	a.do(opUnlock)
	a.s.tell("%s unlocks", a.name)
}

// read reads the number in the store.
func (a *actor) read() {
	if a.do(opRead) {
		a.s.tell("%s has read the store", a.name)
	} else {
		a.s.tell("%s may not read the store", a.name)
	}
}

// write writes one more than was read.
func (a *actor) write() { a.wrote(a.do(opWrite)) }

func (a *actor) wrote(ok bool) {
	if ok {
		a.s.added++
		a.s.tell("%s has added 1", a.name)
	} else {
		a.s.tell("%s has added nothing, and knows it", a.name)
	}
}

// inside reports whether it believes that it holds the lock.
func (a *actor) inside() bool { return a.do(inside) }

// noticesWithin reports whether it hears within d that it holds the lock no more.
func (a *actor) noticesWithin(d time.Duration) bool {
	for start, last := time.Now(), false; a.s.ok() && !last; time.Sleep(pollPause) {
		last = time.Since(start) > d
		if !a.inside() {
			a.s.tell("%s notices that the lock is lost", a.name)
			return true
		}
	}
	a.s.tell("%s has noticed nothing after %v", a.name, d)
	return false
}

// holdAt lets it begin the operation of a point and holds it there.
func (a *actor) holdAt(at point) {
	if !a.comesTo(at) {
		a.s.fail(fmt.Errorf("%s never came to the point where it %s", a.name, at.told))
	}
}

// comesTo is holdAt for an operation that may end before the point.
func (a *actor) comesTo(at point) bool {
	a.do(shut + " " + at.String())
	a.say(at.op)
	if word, _ := a.answer(); word != held {
		return false
	}
	a.doing = at.op
	a.s.tell("%s %s", a.name, at.told)
	return true
}

// stop stops the process as SIGSTOP does, and returns when it stands still.
func (a *actor) stop() {
	a.signal(syscall.SIGSTOP)
	if !a.s.ok() {
		return
	}
	if err := awaitStopped(a.cmd.Process.Pid); err != nil {
		a.s.fail(fmt.Errorf("%s does not stop: %w", a.name, err))
	}
	a.stopped = true
	a.s.tell("%s is stopped", a.name)
}

// awaitStopped waits until a child process stands still.
func awaitStopped(pid int) error {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			return fmt.Errorf("it has ended: %v", status)
		}
	}
}

// resume lets a process go on that is stopped, or held, or both. It returns when the operation is done in which it was, and
// reports whether that has succeeded.
func (a *actor) resume() bool {
	a.s.tell("%s goes on", a.name)
	if a.stopped {
		a.signal(syscall.SIGCONT)
		a.stopped = false
	}
	if a.doing == "" {
		return true
	}
	ok := a.do(pass)
	if a.doing == opWrite {
		a.wrote(ok)
	}
	a.doing = ""
	return ok
}

// kill kills the process as SIGKILL does.
func (a *actor) kill() {
	if !a.s.ok() {
		return
	}
	if err := a.end(); err != nil {
		a.s.fail(err)
	}
	a.s.tell("%s is killed", a.name)
}

func (a *actor) end() error {
	if a.ended {
		return nil
	}
	a.ended = true
	if err := a.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for range a.lines { // until the pipe is closed
	}
	_ = a.cmd.Wait() // reports the signal that ended it
	return nil
}

func (a *actor) signal(sig syscall.Signal) {
	if !a.s.ok() {
		return
	}
	if err := a.cmd.Process.Signal(sig); err != nil {
		a.s.fail(fmt.Errorf("%s: signal %v: %w", a.name, sig, err))
	}
}

// do gives an order and reports whether the answer is yes.
func (a *actor) do(order string) bool {
	a.say(order)
	word, _ := a.answer()
	return word == yes
}

func (a *actor) say(order string) {
	if !a.s.ok() {
		return
	}
	if _, err := fmt.Fprintln(a.in, order); err != nil {
		a.s.fail(fmt.Errorf("%s: %s: %w", a.name, order, err))
	}
}

// answer returns what it says next: a word, and perhaps a reason.
func (a *actor) answer() (word, reason string) {
	if !a.s.ok() {
		return no, ""
	}
	select {
	case line, open := <-a.lines:
		word, reason, _ = strings.Cut(line, " ")
		if !open || word == failed {
			a.s.fail(fmt.Errorf("%s has ended or can't go on: %s", a.name, reason))
		}
		return word, reason
	case <-a.s.ctx.Done():
	case <-time.After(answerTimeout):
		a.s.fail(fmt.Errorf("%s does not answer within %v", a.name, answerTimeout))
	}
	return no, ""
}
