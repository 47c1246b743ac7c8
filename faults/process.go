package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// process is a worker as the program sees it.
type process struct {
	worker.Setup
	cmd *exec.Cmd
	in  io.WriteCloser

	replies chan worker.Reply // closed when it has ended
	dead    bool              // killed by the program
	writing sync.Mutex
}

// workerVariable has the program be a worker; its value is the Setup in JSON.
const workerVariable = "LATCHKEY_FAULTS_WORKER"

// errEnded says that a worker has ended by itself.
var errEnded = errors.New("a worker has ended by itself; it says above why")

// startWorker runs a command as a worker; without one, it runs this program.
func startWorker(s worker.Setup, command []string) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if command == nil {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = []string{program}
	}
	p := &process{Setup: s, cmd: exec.Command(command[0], command[1:]...), replies: make(chan worker.Reply, 8)}
	p.cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, redistest.Apart()
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out)
	return p, nil
}

func (p *process) listen(out io.Reader) {
	defer close(p.replies)
	for d := json.NewDecoder(bufio.NewReader(out)); ; {
		var r worker.Reply
		if d.Decode(&r) != nil {
			break
		}
		p.replies <- r
	}
	_ = p.cmd.Wait() // reports the signal that ended it
}

// order tells the worker what to do. One that was killed does nothing.
func (p *process) order(o worker.Order) error {
	if p.dead {
		return nil
	}
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("%w: %s: %w", errEnded, p.Name, err)
	}
	return nil
}

// await waits for the reply to a heal or an end.
func (p *process) await(ctx context.Context, do string) error {
	if p.dead {
		return nil
	}
	select {
	case r, ok := <-p.replies:
		switch {
		case !ok:
			return fmt.Errorf("%w: %s", errEnded, p.Name)
		case r.Do != do:
			return fmt.Errorf("worker %s replies to %q in place of %q", p.Name, r.Do, do)
		case r.Error != "":
			return fmt.Errorf("worker %s: %s: %s", p.Name, do, r.Error)
		}
		return nil
	case <-ctx.Done():
		return &hungError{p.Name, do}
	}
}

// hungError says that a worker did not come back in time.
type hungError struct{ name, do string }

func (e *hungError) Error() string { return "worker " + e.name + " did not come back from " + e.do }

func (p *process) signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// kill ends the process as SIGKILL does, and waits for it.
func (p *process) kill() {
	p.dead = true
	_ = p.cmd.Process.Kill() // it may be gone already
	for range p.replies {    // until listen has waited for it
	}
}
