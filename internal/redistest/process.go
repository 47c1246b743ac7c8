package redistest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/internal/services"
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

// Launch runs a server on a free port, and those so far above are free, too; command makes its command line. Somebody else can take a port between the moment when it is
// seen to be free and the moment when the server listens, so Launch tries again with the next one.
func Launch(ctx context.Context, above []int, command func(port string) (*exec.Cmd, error)) (*Process, error) {
	const tries = 5
	for i := 1; ; i++ {
		port, err := services.Port(above...)
		if err != nil {
			return nil, err
		}
		cmd, err := command(port)
		if err != nil {
			return nil, err
		}
		p, err := Run(ctx, net.JoinHostPort("127.0.0.1", port), cmd)
		if err == nil || i == tries || !errors.Is(err, services.ErrEnded) {
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
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := services.Await(ctx, p.gone, p.answers); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%s at %s: %w", cmd.Path, addr, err)
	}
	return p, nil
}

// Apart is for the children of a program: the kernel kills them when it dies, where it can, and the terminal's Ctrl-C does not reach them, as
// the program ends them.
func Apart() *syscall.SysProcAttr {
	attr := services.DieWithParent(syscall.SIGKILL)
	attr.Setpgid = true
	return attr
}

// answers asks the process whether it is there, and has loaded what it has kept.
func (p *Process) answers(ctx context.Context) error {
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	defer rdb.Close()
	info, err := rdb.Info(ctx).Result()
	if err == nil && (!strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", p.cmd.Process.Pid)) || strings.Contains(info, "loading:1")) {
		err = errors.New("it is not this server, or loads")
	}
	return err
}

// Signal sends a signal to the process.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill ends the process as SIGKILL does, also one that is stopped, and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.gone
}
