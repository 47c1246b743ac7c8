package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// server is a private redis-server without persistence.
type server struct {
	addr    string
	version string
	proc    *redistest.Process
	admin   *redis.Client
}

// startServer runs one on a free port. It ends with ctx.
func startServer(ctx context.Context) (*server, error) {
	path, err := exec.LookPath("redis-server") // and no other, as figures name it
	if err != nil {
		return nil, errors.New("there is no redis-server on PATH")
	}
	s := &server{}
	s.proc, err = redistest.Launch(ctx, nil, func(port string) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
			"--daemonize", "no", "--loglevel", "warning", "--dir", os.TempDir(), "--maxclients", "20000")
		cmd.SysProcAttr = redistest.Apart()
		return cmd, nil
	})
	if err != nil {
		return nil, err
	}
	s.addr = s.proc.Addr
	s.admin = redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	info, err := s.info(ctx, "server")
	if err != nil {
		s.stop()
		return nil, err
	}
	s.version = info["redis_version"]
	return s, nil
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
	if err := s.proc.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	sleep(ctx, d)
	return s.proc.Signal(syscall.SIGCONT)
}

// stop ends the process, also a frozen one, and waits for it.
func (s *server) stop() {
	_ = s.admin.Close()
	s.proc.Kill()
}

// calls says what the server has executed, also within scripts, and for how long it has run scripts.
type calls struct {
	executed map[string]int64
	scripts  time.Duration
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
		if name == "evalsha" || name == "eval" {
			c.scripts += time.Duration(usec) * time.Microsecond
		}
	}
	return c, err
}

// reset begins to count anew.
func (s *server) reset(ctx context.Context) error { return s.admin.ConfigResetStat(ctx).Err() }
