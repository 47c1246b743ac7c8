// Package redistest gives tests a Redis of their own: a real redis-server process that can be paused, killed and
// started again, a proxy that cuts connections at the worst moment, and miniredis where there is no server.
//
// Two variables of the environment decide:
//
//   - LATCHKEY_REDIS_SERVER is the program that is started as a server, such as the path of a redis-server or valkey-server
//     of another version. Without it, that is redis-server on PATH.
//   - LATCHKEY_REQUIRE=redis makes a missing redis-server a failure, where otherwise tests are skipped or run on miniredis.
package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/redis/go-redis/v9"
)

// Server is a Redis for one test. The methods that act on its process are there for servers from Start only.
type Server struct {
	// Addr is its host:port on the loopback interface.
	Addr string
	// Real says that it is a redis-server and not miniredis.
	Real bool

	args []string
	proc *Process
}

// Start runs a private redis-server on a free port, without persistence, and stops it when the test ends. Where there is
// none, the test is skipped, or fails if LATCHKEY_REQUIRE says so. The args are added to the command line.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, nil, args)
}

func start(tb testing.TB, above []int, args []string) *Server {
	tb.Helper()
	path := program(tb)
	return launch(tb, above, func(port string) []string {
		return append([]string{path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--daemonize", "no", "--loglevel", "warning", "--dir", tb.TempDir()}, args...)
	})
}

// launch runs a server on a free port and stops it when the test ends.
func launch(tb testing.TB, above []int, command func(port string) []string) *Server {
	tb.Helper()
	s := &Server{Real: true}
	var err error
	s.proc, err = Launch(context.Background(), above, func(port string) (*exec.Cmd, error) {
		s.args = command(port)
		return s.command(), nil
	})
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s.Addr = s.proc.Addr
	tb.Cleanup(s.stop)
	return s
}

func (s *Server) command() *exec.Cmd {
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.SysProcAttr = services.DieWithParent(syscall.SIGKILL)
	return cmd
}

// Any gives a test that needs no more than scripts and pub/sub what there is: a private server, or miniredis.
func Any(tb testing.TB) *Server {
	tb.Helper()
	if _, err := Program(); err == nil || required() {
		return Start(tb)
	}
	return startMini(tb)
}

// Client returns a client of the server, closed when the test ends. The changes are applied to its options.
func (s *Server) Client(tb testing.TB, changes ...func(*redis.Options)) *redis.Client {
	tb.Helper()
	opts := &redis.Options{Addr: s.Addr}
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClient(opts)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// HostPort returns the two parts of Addr.
func (s *Server) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}

// Has reports whether the server knows a command.
func (s *Server) Has(tb testing.TB, command string) bool {
	tb.Helper()
	known, err := s.Client(tb).Do(context.Background(), "command", "info", command).Slice()
	if err != nil || len(known) != 1 {
		tb.Fatalf("redistest: command info %s: %v, %v", command, known, err)
	}
	return known[0] != nil
}

// Pause stops the process as SIGSTOP does: connections stay open and nothing is answered.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGSTOP)
	stat := fmt.Sprintf("/proc/%d/stat", s.proc.cmd.Process.Pid) // a busy machine takes a while to stop it
	for text, err := os.ReadFile(stat); err == nil && !bytes.Contains(text, []byte(") T ")); text, err = os.ReadFile(stat) {
	}
}

// Resume lets a paused process go on.
func (s *Server) Resume(tb testing.TB) { tb.Helper(); s.signal(tb, syscall.SIGCONT) }

// Kill ends the process as SIGKILL does. All data is gone.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.running(tb).Kill()
	s.proc = nil
}

// Restart starts a killed server again, empty, at the same address.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	var err error
	if s.proc, err = Run(context.Background(), s.Addr, s.command()); err != nil {
		tb.Fatalf("redistest: restart: %v", err)
	}
}

// running is the process of a server that has one.
func (s *Server) running(tb testing.TB) *Process {
	tb.Helper()
	if s.proc == nil {
		tb.Fatal("redistest: this server is no running process of the test")
	}
	return s.proc
}

func (s *Server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if err := s.running(tb).Signal(sig); err != nil {
		tb.Fatalf("redistest: signal %v: %v", sig, err)
	}
}

// stop ends the process, also a paused one, and reaps it.
func (s *Server) stop() {
	if s.proc != nil {
		s.proc.Kill()
	}
}

// FreePort is [services.Port] for a test.
func FreePort(tb testing.TB) string {
	tb.Helper()
	port, err := services.Port()
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	return port
}

// program is Program for a test that can't do without: where there is none, the test is skipped or fails.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := Program()
	if err != nil {
		Missing(tb, fmt.Errorf("needs servers of its own: %w", err))
	}
	return path
}

// NeedServers is for a test that runs servers by itself, and ends it where there is no program for them: see [Missing].
func NeedServers(tb testing.TB) { tb.Helper(); _ = program(tb) }

// Missing ends a test that can't do without a tool that is not installed. It is skipped, or fails if LATCHKEY_REQUIRE names redis.
func Missing(tb testing.TB, tool error) {
	tb.Helper()
	if required() {
		tb.Fatalf("redistest: %v, and it is required", tool)
	}
	tb.Skipf("%v (install it, or set LATCHKEY_REQUIRE=redis to make this a failure)", tool)
}

// required reports whether LATCHKEY_REQUIRE names redis. A program that is named is required, too.
func required() bool {
	return os.Getenv(programVariable) != "" || services.Required("redis")
}
