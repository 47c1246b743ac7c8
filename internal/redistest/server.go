// Package redistest gives tests a Redis of their own: a real redis-server process that can be paused, killed and started
// again, a proxy that cuts connections at the worst moment, and miniredis where no server can be had.
//
// Three variables of the environment decide:
//
//   - LATCHKEY_REDIS_SERVER is the program that is started as a server, such as the path of a redis-server or valkey-server
//     of another version. Without it, that is redis-server on PATH.
//   - LATCHKEY_REDIS is the host:port of a running server with an empty database 0, for tests that need nothing but a
//     server ([Any]). One test at a time uses it.
//   - LATCHKEY_REQUIRE=redis makes a missing redis-server a failure, where otherwise tests are skipped or run on miniredis.
package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take to answer its first PING.
const startTimeout = 20 * time.Second

// Server is a Redis for one test. The methods that act on its process are there for servers from Start only.
type Server struct {
	// Addr is its host:port on the loopback interface.
	Addr string
	// Real says that it is a redis-server and not miniredis.
	Real bool

	args []string
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// Start runs a private redis-server on a free port, without persistence, and stops it when the test ends. Where there is
// none, the test is skipped, or fails if LATCHKEY_REQUIRE says so. The args are added to the command line.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return start(tb, FreePort, args)
}

func start(tb testing.TB, freePort func(testing.TB) string, args []string) *Server {
	tb.Helper()
	path := program(tb)
	return launch(tb, freePort, func(port string) []string {
		return append([]string{path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--daemonize", "no", "--loglevel", "warning", "--dir", tb.TempDir()}, args...)
	})
}

// launch runs a server on a free port and stops it when the test ends. Somebody else can take a port between the moment
// when it is seen to be free and the moment when the server listens, so launch tries again with the next one.
func launch(tb testing.TB, freePort func(testing.TB) string, command func(port string) []string) *Server {
	tb.Helper()
	const tries = 5
	s := &Server{Real: true}
	for i := 1; ; i++ {
		port := freePort(tb)
		s.Addr, s.args = net.JoinHostPort("127.0.0.1", port), command(port)
		err := s.run(tb)
		if err == nil {
			break
		}
		s.stop(tb)
		if i == tries || !errors.Is(err, errTaken) {
			tb.Fatalf("redistest: redis-server at %s: %v", s.Addr, err)
		}
	}
	tb.Cleanup(func() { s.stop(tb) })
	return s
}

// Any gives a test that needs no more than scripts and pub/sub what there is: the server of LATCHKEY_REDIS, a private
// one, or miniredis.
func Any(tb testing.TB) *Server {
	tb.Helper()
	if addr := os.Getenv("LATCHKEY_REDIS"); addr != "" {
		return borrow(tb, addr)
	}
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

// StartTLS is Start with a second port, at the address secure, for TLS with the files of the certificate, which it trusts as well,
// and of its key. Where the server was built without TLS, the test is skipped.
func StartTLS(tb testing.TB, cert, key string) (s *Server, secure string) {
	tb.Helper()
	path, port := program(tb), FreePort(tb)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, path, "--port", "0", "--tls-port", port, "--dir", tb.TempDir()).CombinedOutput()
	switch text := string(said); {
	case strings.Contains(text, "Failed finding TLS support"), strings.Contains(text, "Bad directive"):
		tb.Skip("this server was built without TLS")
	case !strings.Contains(text, "No tls-cert-file configured"):
		tb.Fatalf("redistest: a server without a certificate ended with %v and said %s", err, text)
	}
	s = Start(tb, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	return s, net.JoinHostPort("127.0.0.1", port)
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
func (s *Server) Pause(tb testing.TB) { tb.Helper(); s.signal(tb, syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume(tb testing.TB) { tb.Helper(); s.signal(tb, syscall.SIGCONT) }

// Kill ends the process as SIGKILL does. All data is gone.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.signal(tb, syscall.SIGKILL)
	<-s.gone
	s.cmd = nil
}

// Restart starts a killed server again, empty, at the same address.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.run(tb); err != nil {
		tb.Fatalf("redistest: restart of redis-server at %s: %v", s.Addr, err)
	}
}

func (s *Server) signal(tb testing.TB, sig syscall.Signal) {
	tb.Helper()
	if s.cmd == nil {
		tb.Fatal("redistest: this server is no running process of the test")
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		tb.Fatalf("redistest: signal %v: %v", sig, err)
	}
}

// errTaken says that a server could not have its port.
var errTaken = errors.New("another process has a port of this server")

// run starts the process and waits until it answers.
func (s *Server) run(tb testing.TB) error {
	tb.Helper()
	cmd, gone := exec.Command(s.args[0], s.args[1:]...), make(chan struct{})
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait() // reports the signal that ended it
		close(gone)
	}()
	s.cmd, s.gone = cmd, gone
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return s.answers(ctx)
}

// stop ends the process, also a paused one, and reaps it.
func (s *Server) stop(tb testing.TB) {
	if s.cmd == nil {
		return
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tb.Logf("redistest: stop %s: %v", s.Addr, err)
	}
	<-s.gone
}

// answers waits until the process answers. That something does at its address is not enough: without its port the process
// ends, and the server that has the port is another test's.
func (s *Server) answers(ctx context.Context) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer rdb.Close()
	own := fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)
	for {
		info, err := rdb.Info(ctx, "server").Result()
		if strings.Contains(info, own) {
			return nil
		}
		select {
		case <-s.gone:
			return fmt.Errorf("%w, or it ended for another reason: see its output", errTaken)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// borrow waits for its turn on a server that other tests use too. The turn ends with the test, and the database is then
// empty again.
func borrow(tb testing.TB, addr string) *Server {
	tb.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	const turn = "latchkey:redistest:turn"
	for {
		ok, err := rdb.SetNX(ctx, turn, os.Getpid(), 10*time.Minute).Result()
		if err != nil {
			tb.Fatalf("redistest: LATCHKEY_REDIS=%s: %v", addr, err)
		}
		if ok {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n, err := rdb.DBSize(ctx).Result(); err != nil || n != 1 {
		_ = rdb.Del(ctx, turn).Err()
		_ = rdb.Close()
		tb.Fatalf("redistest: LATCHKEY_REDIS=%s must have an empty database 0 (keys: %d, error: %v)", addr, n-1, err)
	}
	tb.Cleanup(func() {
		_ = rdb.FlushDB(context.Background()).Err()
		_ = rdb.Close()
	})
	return &Server{Addr: addr, Real: true}
}

// given holds the ports that free was asked about.
var given sync.Map

// Ports lie from lowPort to highPort, below those that systems give to outgoing connections: of these, another test can make
// one on the port before the server is up.
const lowPort, highPort = 10000, 30000

// FreePort returns a port on which nobody listens at the moment, and which it has not returned before.
func FreePort(tb testing.TB) string {
	tb.Helper()
	for {
		if port := lowPort + rand.N(highPort-lowPort); free(tb, port) {
			return strconv.Itoa(port)
		}
	}
}

// free reports whether nobody listens on the port, and has answered so only once.
func free(tb testing.TB, port int) bool {
	tb.Helper()
	if _, again := given.LoadOrStore(port, true); again {
		return false
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case err == nil:
		_ = l.Close()
	case !errors.Is(err, syscall.EADDRINUSE):
		tb.Fatalf("redistest: %v", err)
	}
	return err == nil
}

// programVariable names the server's program in the environment.
const programVariable = "LATCHKEY_REDIS_SERVER"

// Program finds the program of a server: that of LATCHKEY_REDIS_SERVER, or redis-server on PATH.
func Program() (path string, err error) {
	return exec.LookPath(cmp.Or(os.Getenv(programVariable), "redis-server"))
}

// program is Program for a test that can't do without: where there is none, the test is skipped or fails.
func program(tb testing.TB) string {
	tb.Helper()
	path, err := Program()
	switch {
	case err != nil && required():
		tb.Fatalf("redistest: a server is required, but %v", err)
	case err != nil:
		tb.Skipf("needs servers of its own, but %v (install redis-server, or set LATCHKEY_REQUIRE=redis to make this a failure)", err)
	}
	return path
}

// required reports whether LATCHKEY_REQUIRE, a comma-separated list, names redis. A program that is named is required, too.
func required() bool {
	return os.Getenv(programVariable) != "" || slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), "redis")
}
