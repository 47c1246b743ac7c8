//go:build !unix

package child

import (
	"os"
	"os/exec"
	"time"
)

// Process is a command that was started. Here it has no group: what it starts itself is not ended with it.
type Process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	result Result
}

// Start runs a command.
func Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Env = c.Env
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
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait()
		p.result.Status = cmd.ProcessState.ExitCode()
	}()
	return p, nil
}

// Ended is closed when the command has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Result is how the command ended, once it has.
func (p *Process) Result() Result { return p.result }

// Signal passes a signal on, as far as there are any.
func (p *Process) Signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// Terminate is Kill: there is nothing gentler.
func (p *Process) Terminate() { p.Kill() }

// Kill ends the command.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// AwaitGroup has nothing to wait for.
func (p *Process) AwaitGroup(time.Duration) bool { return true }

// Close does nothing.
func (p *Process) Close() {}

// Serve does nothing.
func Serve() {}

// Serves reports whether this process is one of those of this package: there are none.
func Serves() bool { return false }
