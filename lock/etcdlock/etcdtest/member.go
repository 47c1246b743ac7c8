package etcdtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/latchkey-go/latchkey/internal/services"
)

// Member is one server, in a process of its own. Its methods are for one goroutine.
type Member struct {
	// Endpoint is its host:port for clients.
	Endpoint string

	peer  string // its host:port for the other members
	link  *link
	setup setup
	cmd   *exec.Cmd
	stdin io.Closer
	gone  chan struct{} // closed when cmd has ended
	said  *tail
}

// Run starts a member that has ended again, at the same address and with the data that it left, and waits until it answers. It needs
// a majority of the others for that.
func (m *Member) Run() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m.setup)
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Env = append(withoutProxy(os.Environ()), variable+"="+string(text), "HTTP_PROXY=http://"+m.link.addr(), "NO_PROXY=127.0.0.1")
	cmd.SysProcAttr = services.DieWithParent(syscall.SIGKILL) // also a member that is paused
	m.said = new(tail)
	cmd.Stderr = m.said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if m.stdin, err = cmd.StdinPipe(); err != nil { // it ends with us, at the latest
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines, gone := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(gone)
		defer close(lines)
		if s := bufio.NewScanner(stdout); s.Scan() {
			lines <- s.Text()
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait() // reports the signal that ended it
	}()
	m.cmd, m.gone = cmd, gone
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return ready(ctx, lines, m)
}

// withoutProxy returns the environment without what could lead the members' traffic elsewhere.
func withoutProxy(env []string) (kept []string) {
	for _, line := range env {
		name, _, _ := strings.Cut(line, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
		default:
			kept = append(kept, line)
		}
	}
	return kept
}

// Pause stops the process as SIGSTOP does: connections stay open and nothing is answered. Resume lets it go on.
func (m *Member) Pause() error { return m.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (m *Member) Resume() error { return m.cmd.Process.Signal(syscall.SIGCONT) }

// Kill ends the process as SIGKILL does, also a paused one. Its data stays.
func (m *Member) Kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	<-m.gone
	_ = m.stdin.Close()
}

// Cut takes the member away from the others, but not from its clients. Heal ends that.
func (m *Member) Cut() { m.link.set(true) }

// Heal ends a Cut.
func (m *Member) Heal() { m.link.set(false) }

// tail keeps the last of what a member says.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const longestTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > longestTail {
		t.text.Next(longestTail / 2)
	}
	return t.text.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
