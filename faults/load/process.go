package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The environment of a process of a scenario: its kind, and a setting.
const kindVariable, settingVariable = "LATCHKEY_LOAD_KIND", "LATCHKEY_LOAD_SETTING"

// setting is what a process has to know.
type setting struct {
	Redis, Board string
	Size         size
}

// order is what the program wants of a process: to run for a while, or to close.
type order struct {
	Run   time.Duration
	Close bool
}

// report is the answer to an order. Addr comes with the first one, which nobody asks for.
type report struct {
	Tally tally
	Usage usage
	Addr  string
}

// subject is what runs in a process.
type subject interface {
	run(d time.Duration)
	// close gives back all that is held, and closes the client.
	close() error
}

// maker makes the subject of a process, and returns its address if it is a server.
type maker func(kind string, l *locks) (sub subject, addr string, err error)

// serve is the life of a process: it reports what it has before there is a client, and obeys orders until it is to close.
func serve(kind string, newSubject maker, in io.Reader, out io.Writer) error {
	var s setting
	if err := json.Unmarshal([]byte(os.Getenv(settingVariable)), &s); err != nil {
		return err
	}
	reports := json.NewEncoder(out)
	if err := reports.Encode(report{Usage: measure()}); err != nil {
		return err
	}
	l, err := newLocks(s)
	if err != nil {
		return err
	}
	sub, addr, err := newSubject(kind, l)
	if err != nil {
		return err
	}
	if err := reports.Encode(report{Addr: addr}); err != nil {
		return err
	}
	for orders := json.NewDecoder(in); ; {
		var o order
		if err := orders.Decode(&o); err != nil {
			return err
		}
		if o.Close {
			if err := sub.close(); err != nil {
				l.failed(fmt.Errorf("close: %w", err))
			}
		} else {
			sub.run(o.Run)
		}
		if err := reports.Encode(report{Tally: l.t, Usage: measure()}); err != nil || o.Close {
			return err
		}
	}
}

func newSubject(kind string, l *locks) (sub subject, addr string, err error) {
	switch kind {
	case "crowd":
		return &crowd{l}, "", nil
	case "held":
		return newHeld(l), "", nil
	case "http":
		return newService(l)
	}
	return nil, "", fmt.Errorf("no such kind: %s", kind)
}

// process is a subject as the program sees it.
type process struct {
	cmd     *exec.Cmd
	in      *json.Encoder
	reports *json.Decoder
	base    usage // before there was a client
	addr    string
}

func startProcess(kind string, s setting) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), kindVariable+"="+kind, settingVariable+"="+string(text))
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
	p.in, p.reports = json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	first, err := p.report()
	p.base = first.Usage
	if err != nil {
		return p, err
	}
	second, err := p.report()
	p.addr = second.Addr
	return p, err
}

func (p *process) report() (r report, err error) {
	if err = p.reports.Decode(&r); err != nil {
		err = fmt.Errorf("a process has ended: %w", err)
	}
	return r, err
}

// obey gives an order and waits for the report.
func (p *process) obey(o order) (report, error) {
	if err := p.in.Encode(o); err != nil {
		return report{}, err
	}
	return p.report()
}

// stop ends the process if it has not ended yet.
func (p *process) stop() {
	_ = p.cmd.Process.Kill() // it may be gone already
	_ = p.cmd.Wait()
}
