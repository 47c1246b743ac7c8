package play

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take to answer.
const startTimeout = 20 * time.Second

// startServers starts what a step needs on this machine, and returns what ends it again.
func startServers(ctx context.Context, step Step) (props Props, end func() error, err error) {
	var servers []*server
	end = func() error {
		var errs []error
		for _, s := range servers {
			errs = append(errs, s.kill(), os.RemoveAll(s.dir))
		}
		return errors.Join(errs...)
	}
	if props.Program, err = os.Executable(); err != nil {
		return props, nil, err
	}
	for i := range 1 + max(1, step.Servers) {
		s, err := newServer(step.Durable && i > 0)
		if err == nil {
			servers = append(servers, s)
			err = s.start(ctx)
		}
		if err != nil {
			return props, nil, errors.Join(err, end())
		}
		if i == 0 {
			props.Store = s.addr
		} else {
			props.Servers = append(props.Servers, Server{s.addr, func() error { return errors.Join(s.kill(), s.start(ctx)) }})
		}
	}
	return props, end, nil
}

// server is a redis-server process.
type server struct {
	addr, dir string
	command   []string
	cmd       *exec.Cmd
}

// DurableArgs make a redis-server write each change to its disk before it answers.
var DurableArgs = []string{"--appendonly", "yes", "--appendfsync", "always"}

func newServer(durable bool) (*server, error) {
	program, err := exec.LookPath(cmp.Or(os.Getenv("LATCHKEY_REDIS_SERVER"), "redis-server"))
	if err != nil {
		return nil, fmt.Errorf("the plays need servers of their own: install redis-server, or name it in LATCHKEY_REDIS_SERVER: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "evolution")
	if err != nil {
		return nil, err
	}
	s := &server{addr: l.Addr().String(), dir: dir, command: []string{program, "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--loglevel", "warning", "--dir", dir}}
	if durable {
		s.command = append(s.command, DurableArgs...)
	}
	return s, nil
}

// start returns when the server answers.
func (s *server) start(ctx context.Context) error {
	cmd := exec.Command(s.command[0], s.command[1:]...)
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, dieWithParent()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rdb := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer rdb.Close()
	for {
		err := rdb.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server at %s does not answer: %w", s.addr, errors.Join(ctx.Err(), err))
		case <-time.After(pollPause):
		}
	}
}

func (s *server) kill() error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // reports the signal that ended it
	s.cmd = nil
	if errors.Is(err, os.ErrProcessDone) { // an interrupt ends all processes
		return nil
	}
	return err
}
