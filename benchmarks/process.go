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
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// process is a worker as the program sees it: one of this program's, or the one in Java.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // closed when it has ended
}

// errHung says that a peer did not come back and was ended, errEnded that it has ended by itself.
var (
	errHung  = errors.New("cut off")
	errEnded = errors.New("its process has ended")
)

// workerFlag has the program be a worker.
const workerFlag = "-worker"

// startProcess runs a worker. It ends with ctx.
func startProcess(ctx context.Context, command []string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), lines: make(chan []byte, 1)}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = redistest.Apart()
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in = in
	go p.listen(out)
	return p, nil
}

// own is the command that runs this program as a worker.
func own(name string) ([]string, error) {
	program, err := os.Executable()
	return []string{program, workerFlag, name}, err
}

func (p *process) listen(out io.Reader) {
	defer close(p.lines)
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		p.lines <- append([]byte{}, s.Bytes()...)
	}
	_ = p.cmd.Wait() // reports the signal that ended it
}

// do has the worker do a job. One that is not back in time is ended, and the error matches errHung.
func (p *process) do(ctx context.Context, j job, limit time.Duration) (result, error) {
	var r result
	text, err := json.Marshal(j)
	if err != nil {
		return r, err
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return r, fmt.Errorf("%w: %w", errEnded, err)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return r, errEnded
		}
		if err := json.Unmarshal(line, &r); err != nil {
			return r, fmt.Errorf("it answers %q: %w", line, err)
		}
	case <-ctx.Done():
		return r, context.Cause(ctx)
	case <-timer.C:
		p.stop()
		return r, fmt.Errorf("%w: it was not back after %v", errHung, limit)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// stop ends the process and waits for it.
func (p *process) stop() {
	_ = p.in.Close()
	_ = p.cmd.Process.Kill() // it may be gone already
	for range p.lines {      // until listen has waited for it
	}
}
