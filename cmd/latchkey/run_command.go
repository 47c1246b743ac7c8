package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/child"
	"github.com/latchkey-go/latchkey/lock"
)

// ending is how a command ended.
type ending struct {
	status int
	signal os.Signal // that ended the command, or nil
	lost   error     // why the lock ended before the command did, or nil
	killed bool      // because it, or another process of its group, did not heed SIGTERM
}

// reaping is how long the processes of a group may take to be gone that was killed.
const reaping = time.Second

func (e ending) exit() error {
	if e.status == 0 {
		return nil
	}
	return &exit{status: e.status, event: "ended"}
}

// command runs the command under a hold. The error says that it could not be started.
func (j *job) command(ctx context.Context, h lock.Hold) (ending, error) {
	signals, giveBack := takeSignals(ctx)
	defer giveBack()
	if err := context.Cause(ctx); err != nil { // it came while the lock did
		return ending{}, err
	}
	p, err := child.Start(child.Command{Args: j.args, Env: j.environment(h), Stdin: j.in, Stdout: j.out.File, Stderr: j.err,
		Suspended: j.notSuspended, Wants: func() {
			j.say("wants-terminal", 0, "the command holds the lock and waits for the terminal: bring it to the foreground", nil)
		}})
	if err != nil {
		return ending{}, notStarted(err)
	}
	defer p.Close()
	for {
		select {
		case s := <-signals:
			if slices.Contains(suspending, s) { // which would stop the renewals, and not the command, as that has a group of its own
				j.notSuspended()
			} else {
				j.told = j.told || slices.Contains(endingSignals, s)
				p.Signal(s)
			}
		case <-p.Ended():
			end := ending{status: p.Result().Status, signal: p.Result().Signal}
			if context.Cause(h.Context()) != nil { // both at once
				j.endGroup(p, &end, h)
			}
			return end, nil
		case <-h.Context().Done():
			end := ending{}
			j.endGroup(p, &end, h)
			return end, nil
		}
	}
}

func (j *job) notSuspended() {
	j.say("not-suspended", 0, "a command that holds a lock can't be suspended: others wait", nil)
}

// endGroup ends a command whose lock is lost, and all that it has started.
func (j *job) endGroup(p *child.Process, end *ending, h lock.Hold) {
	end.lost = context.Cause(h.Context())
	until := time.Now().Add(j.grace)
	alarm := j.alarm(h, end.lost)
	p.Terminate()
	select {
	case <-p.Ended():
	case <-time.After(time.Until(until)):
		end.killed = true
		p.Kill()
		<-p.Ended()
	}
	if !p.AwaitGroup(time.Until(until)) {
		end.killed = true
		p.Kill()
		p.AwaitGroup(reaping)
	}
	end.status, end.signal = p.Result().Status, p.Result().Signal
	alarm()
}

// alarm starts the command of --on-lost. The function that it returns waits for it.
func (j *job) alarm(h lock.Hold, lost error) (wait func()) {
	if j.onLost == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh", "-c", j.onLost)
	cmd.Env = append(j.environment(h), reasonVariable+"="+lost.Error())
	cmd.Stdout, cmd.Stderr = j.out.File, j.err
	if err := cmd.Start(); err != nil {
		cancel()
		j.say("on-lost", 0, fmt.Sprintf("--on-lost: %v", err), nil)
		return func() {}
	}
	return func() {
		defer cancel()
		late := time.AfterFunc(max(j.grace, time.Second), cancel)
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			j.say("on-lost", 0, fmt.Sprintf("--on-lost: %v", err), nil)
		}
	}
}

// notStarted has the statuses of a shell.
func notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &exit{statusNotFound, "not-found", err}
	}
	return &exit{statusNoExec, "not-executable", err}
}

func hasName(entry, name string) bool { return strings.HasPrefix(entry, name+"=") }
