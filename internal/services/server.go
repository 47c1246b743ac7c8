package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// startTimeout bounds how long a server may take until it answers.
const startTimeout = 60 * time.Second

// Server is a running server. Its methods are for one goroutine.
type Server struct {
	// Addr is its host:port on the loopback interface.
	Addr string
	// Dir is its own directory, which Stop removes.
	Dir string

	spec spec
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
	said *tail
}

// spec describes a sort of server.
type spec struct {
	path    string
	args    func(s *Server) []string
	options Options // with arguments that come after these
	answers func(ctx context.Context, s *Server) error
	user    *syscall.Credential // nil for our own
	end     syscall.Signal      // has it end at once, with nothing left behind
}

// launch gives a server a port and a directory, prepares it there, and starts it.
func launch(name string, sp spec, prepare func(*Server) error) (*Server, error) {
	if may := os.Getenv(servicesVariable); may != "" && !slices.Contains(strings.Split(may, ","), name) {
		return nil, fmt.Errorf("%w: %s=%s does not name %s", ErrMissing, servicesVariable, may, name)
	}
	dir, err := os.MkdirTemp("", "latchkey-"+name+"-")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, spec: sp}
	if sp.user != nil {
		err = os.Chown(dir, int(sp.user.Uid), int(sp.user.Gid))
	}
	if err == nil {
		err = prepare(s)
	}
	for range 5 { // somebody else may take a port that was free
		if err != nil {
			break
		}
		s.Addr = net.JoinHostPort("127.0.0.1", FreePort())
		if err = s.Run(); err == nil {
			return s, nil
		}
		if strings.Contains(s.said.String(), "in use") {
			err = nil
		}
	}
	s.Stop()
	if err == nil {
		err = errors.New("services: no free port")
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// HostPort returns the two parts of Addr.
func (s *Server) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}

// Run starts a server that has ended again, at the same address and with the data that it left, and waits until it answers.
func (s *Server) Run() error {
	cmd := exec.Command(s.spec.path, append(s.spec.args(s), s.spec.options.Args...)...)
	cmd.Env = append(append(os.Environ(), "HOME="+s.Dir), s.spec.options.Env...) // no configuration of the user's
	cmd.Dir, s.said = s.Dir, new(tail)
	cmd.Stdout, cmd.Stderr = s.said, s.said
	cmd.SysProcAttr = DieWithParent(s.spec.end)
	cmd.SysProcAttr.Credential = s.spec.user
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	s.cmd, s.gone = cmd, gone
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := Await(ctx, gone, func(ctx context.Context) error { return s.spec.answers(ctx, s) }); err != nil {
		_ = s.End()
		return fmt.Errorf("%w; it said:\n%s", err, s.said)
	}
	return nil
}

// ErrEnded says that a server has ended before it could answer.
var ErrEnded = errors.New("the server ended, perhaps as another process has its port: see its output")

// Await returns when a server answers, or is gone. That something answers at its address is not enough: without its port a server ends, and
// the one that has the port is somebody else's.
func Await(ctx context.Context, gone <-chan struct{}, answers func(context.Context) error) error {
	for {
		err := answers(ctx)
		select {
		case <-gone:
			return ErrEnded
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ask says something to a server, and returns the first n bytes that it says, or all until it hangs up if n is 0.
func ask(ctx context.Context, addr, question string, n int) ([]byte, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, question); err != nil {
		return nil, err
	}
	if n == 0 {
		return io.ReadAll(c)
	}
	answer := make([]byte, n)
	_, err = io.ReadFull(c, answer)
	return answer, err
}

// Pause stops the process as SIGSTOP does: connections stay open and nothing is answered. Resume lets it go on. They act on all
// processes of the server.
func (s *Server) Pause() error { return s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() error { return s.signal(syscall.SIGCONT) }

// Kill ends all processes of the server as SIGKILL does.
func (s *Server) Kill() error {
	err := s.signal(syscall.SIGKILL)
	<-s.gone
	return err
}

// End has the server end in order, and waits for that.
func (s *Server) End() error {
	_ = s.signal(syscall.SIGCONT)
	if err := s.cmd.Process.Signal(s.spec.end); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.gone:
		return nil
	case <-time.After(20 * time.Second):
		return s.Kill()
	}
}

// Stop ends the server and removes its data.
func (s *Server) Stop() {
	if s.cmd != nil {
		_ = s.End()
	}
	_ = os.RemoveAll(s.Dir)
}

// signal sends sig to the process and to all below it: a server may have one for each connection, and put them in sessions of
// their own.
func (s *Server) signal(sig syscall.Signal) error {
	below := children(s.cmd.Process.Pid)
	err := s.cmd.Process.Signal(sig)
	for _, pid := range below {
		_ = syscall.Kill(pid, sig) // it may just have ended
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// children returns the processes below a process, where /proc lists them.
func children(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
				all = append(all, children(child)...)
			}
		}
	}
	return all
}

// someone returns the credential of the first of the users that there is, for servers that refuse to run as root. It is nil if this
// process is not root's.
func someone(names ...string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, fmt.Errorf("services: none of the users %v is there, and the server refuses to run as root", names)
}

// given holds the ports for which free was called.
var given sync.Map

// Ports lie from lowPort to highPort, below those that systems give to outgoing connections: of these, another process can make
// one on the port before the server is up.
const lowPort, highPort = 10000, 30000

// Port returns a port on which nobody listens at the moment, and which it has not returned before. So are those that lie so far above.
func Port(above ...int) (string, error) {
	above = append(above, 0)
	for {
		n, all := lowPort+rand.N(highPort-lowPort-slices.Max(above)), true
		for _, d := range above {
			ok, err := free(n + d)
			if err != nil {
				return "", err
			}
			all = all && ok
		}
		if all {
			return strconv.Itoa(n), nil
		}
	}
}

// free reports whether nobody listens on the port, and has answered so only once.
func free(port int) (bool, error) {
	if _, again := given.LoadOrStore(port, true); again {
		return false, nil
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case err == nil:
		return true, l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		return false, nil
	}
	return false, err
}

// FreePort is Port for callers that can do without errors, and try again.
func FreePort() string {
	for {
		if port, err := Port(); err == nil {
			return port
		}
	}
}

// tail keeps the last of what a server says.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const longestTail = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-longestTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
