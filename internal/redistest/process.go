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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take to answer its first question.
const startTimeout = 20 * time.Second

// Process is a running redis-server or sentinel. It is for programs, which have no testing.TB; tests have a [Server].
type Process struct {
	// Addr is its host:port on the loopback interface.
	Addr string

	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// programVariable names the server's program in the environment.
const programVariable = "LATCHKEY_REDIS_SERVER"

// Program finds the program of a server: that of LATCHKEY_REDIS_SERVER, or redis-server on PATH.
func Program() (path string, err error) {
	return exec.LookPath(cmp.Or(os.Getenv(programVariable), "redis-server"))
}

// ErrTaken says that a server could not have its port, or that it ended for another reason, which its output says.
var ErrTaken = errors.New("another process has a port of this server, or it ended for another reason: see its output")

// Launch runs a server on a free port; command makes its command line. Somebody else can take a port between the moment when it is
// seen to be free and the moment when the server listens, so Launch tries again with the next one.
func Launch(ctx context.Context, freePort func() (string, error), command func(port string) (*exec.Cmd, error)) (*Process, error) {
	const tries = 5
	for i := 1; ; i++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		cmd, err := command(port)
		if err != nil {
			return nil, err
		}
		p, err := Run(ctx, net.JoinHostPort("127.0.0.1", port), cmd)
		if err == nil || i == tries || !errors.Is(err, ErrTaken) {
			return p, err
		}
	}
}

// Run starts a server that listens at addr, and waits until it answers and has loaded what it has kept. On an error, the process
// has ended.
func Run(ctx context.Context, addr string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{Addr: addr, cmd: cmd, gone: make(chan struct{})}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // reports the signal that ended it
		close(p.gone)
	}()
	if err := p.answers(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s at %s: %w", cmd.Path, addr, err)
	}
	return p, nil
}

// answers waits until the process answers. That something does at its address is not enough: without its port the process
// ends, and the server that has the port is somebody else's.
func (p *Process) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	defer rdb.Close()
	own := fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid)
	for {
		info, err := rdb.Info(ctx).Result()
		if strings.Contains(info, own) && !strings.Contains(info, "loading:1") {
			return nil
		}
		select {
		case <-p.gone:
			return ErrTaken
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill ends the process as SIGKILL does, also one that is stopped, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.gone
}

// given holds the ports that free was asked about.
var given sync.Map

// Ports lie from lowPort to highPort, below those that systems give to outgoing connections: of these, another process can make
// one on the port before the server is up.
const lowPort, highPort = 10000, 30000

// Port returns a port on which nobody listens at the moment, and which it has not returned before.
func Port() (string, error) { return port(0) }

// port is Port where the ports that lie so far above are wanted, too.
func port(above ...int) (string, error) {
	for {
		n, all := lowPort+rand.N(highPort-lowPort-above[len(above)-1]), true
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
