package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a private redis-server without persistence.
type server struct {
	addr    string
	version string
	cmd     *exec.Cmd
	gone    chan struct{}
	admin   *redis.Client
}

// startServer runs one on a free port. If another process takes the port first, it says so and tries the next one.
func startServer(ctx context.Context, say func(string, ...any)) (*server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on PATH")
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := launch(ctx, path, port)
		if err == nil || try == 5 {
			return s, err
		}
		say("redis-server on port %s: %v; another port is tried", port, err)
	}
}

func launch(ctx context.Context, path, port string) (*server, error) {
	s := &server{addr: net.JoinHostPort("127.0.0.1", port), gone: make(chan struct{})}
	s.cmd = exec.CommandContext(ctx, path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--loglevel", "warning", "--dir", os.TempDir(), "--maxclients", "20000")
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = apart()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // reports the signal that ended it
		close(s.gone)
	}()
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	if err := s.answers(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// answers waits until this very process answers: with its port in use it ends, and another server may have answered.
func (s *server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		info, err := s.info(try, "server")
		cancel()
		if err == nil && info["process_id"] == strconv.Itoa(s.cmd.Process.Pid) {
			s.version = info["redis_version"]
			return nil
		}
		select {
		case <-s.gone:
			return errors.New("it has ended; its port is in use, or it says above why")
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// info returns a section of INFO by field.
func (s *server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.admin.Info(ctx, section).Result()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// freeze stops the process for d, as a machine that is suspended does.
func (s *server) freeze(ctx context.Context, d time.Duration) error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	sleep(ctx, d)
	return s.cmd.Process.Signal(syscall.SIGCONT)
}

// stop ends the process, also a frozen one, and waits for it.
func (s *server) stop() {
	_ = s.admin.Close()
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.gone
}

// calls says what the server has executed, also within scripts, and for how long it has run scripts.
type calls struct {
	executed map[string]int64
	scripts  time.Duration
	all      time.Duration
}

// calls reads commandstats. The numbers only grow, until the next reset.
func (s *server) calls(ctx context.Context) (calls, error) {
	c := calls{executed: map[string]int64{}}
	stats, err := s.info(ctx, "commandstats")
	for name, value := range stats {
		name, ok := strings.CutPrefix(name, "cmdstat_")
		var n, usec int64
		if _, err := fmt.Sscanf(value, "calls=%d,usec=%d", &n, &usec); !ok || err != nil || name == "info" || name == "config|resetstat" {
			continue
		}
		c.executed[name] = n
		d := time.Duration(usec) * time.Microsecond
		if name == "evalsha" || name == "eval" {
			c.scripts += d
		}
		c.all += d
	}
	return c, err
}

// reset begins to count anew.
func (s *server) reset(ctx context.Context) error { return s.admin.ConfigResetStat(ctx).Err() }

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
