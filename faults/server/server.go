// Package server runs private Redis servers: processes that can be stopped, killed, and started again with what they have kept.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// startTimeout bounds how long a server may take to answer for the first time.
	startTimeout = 20 * time.Second
	// User and Password are those of the workers, so that a fault may change what they are allowed to do.
	User, Password = "worker", "secret"
)

// Config says what server to start.
type Config struct {
	// Name is what histories call it.
	Name string
	// Dir is its folder; it is made.
	Dir string
	// Keep has it keep each write in a file before it answers, so that it loses nothing when it is killed.
	Keep bool
	// Args are added to the command line, and Env to the environment.
	Args, Env []string
	// Sentinel makes it one, with these lines as its configuration.
	Sentinel []string
	// Cluster makes it a node of a cluster.
	Cluster bool
}

// Server is a redis-server of this program.
type Server struct {
	Name string
	Addr string
	Dir  string
	// Bus is the port on which the nodes of a cluster talk.
	Bus string
	// Admin is a client for the program's own questions. It is not the workers' user.
	Admin *redis.Client

	path string
	args []string
	env  []string
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// errTaken says that a server could not have its port.
var errTaken = errors.New("another process has its port, or its redis.log says why it ended")

// Start runs a server on a free port.
func Start(ctx context.Context, c Config) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on PATH")
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s := &Server{Name: c.Name, Dir: c.Dir, Addr: net.JoinHostPort("127.0.0.1", port), path: path, env: append(os.Environ(), c.Env...)}
		if c.Cluster {
			if s.Bus, err = freePort(); err != nil {
				return nil, err
			}
		}
		if s.args, err = c.arguments(port, s.Bus); err != nil {
			return nil, err
		}
		s.Admin = adminOf(s.Addr)
		if err = s.Run(ctx); err == nil {
			return s, nil
		}
		s.Close()
		if try == 5 || !errors.Is(err, errTaken) {
			return nil, fmt.Errorf("redis-server %s at %s: %w", c.Name, s.Addr, err)
		}
	}
}

func adminOf(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true, MinIdleConns: 2,
		DialTimeout: time.Second, DialerRetries: 1, ReadTimeout: 10 * time.Second})
}

func (c Config) arguments(port, bus string) ([]string, error) {
	if c.Sentinel != nil {
		conf := filepath.Join(c.Dir, "sentinel.conf")
		lines := append([]string{"port " + port, "bind 127.0.0.1", "dir " + c.Dir, "loglevel warning", "logfile " + filepath.Join(c.Dir, "redis.log")}, c.Sentinel...)
		return []string{conf, "--sentinel"}, os.WriteFile(conf, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no", "--loglevel", "warning", "--dir", c.Dir,
		"--logfile", filepath.Join(c.Dir, "redis.log"), "--user", "default", "on", "nopass", "~*", "&*", "+@all",
		"--user", User, "on", ">" + Password, "~*", "&*", "+@all"}
	if c.Keep {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	if c.Cluster {
		args = append(args, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "1000",
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0")
	}
	return append(args, c.Args...), nil
}

// Run starts the process, again after Kill, and waits until it answers.
func (s *Server) Run(ctx context.Context) error {
	s.cmd, s.gone = exec.Command(s.path, s.args...), make(chan struct{})
	s.cmd.Env, s.cmd.Stderr, s.cmd.SysProcAttr = s.env, os.Stderr, apart()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait() // reports the signal that ended it
		close(gone)
	}(s.cmd, s.gone)
	return s.answers(ctx)
}

// answers waits until this very process answers and has loaded what it has kept.
func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	own := fmt.Sprintf("process_id:%d\r\n", s.cmd.Process.Pid)
	for {
		info, err := s.Admin.Info(ctx).Result()
		if strings.Contains(info, own) && !strings.Contains(info, "loading:1") {
			return nil
		}
		select {
		case <-s.gone:
			return errTaken
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Move starts a killed server again at another address.
func (s *Server) Move(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	s.args[slices.Index(s.args, "--port")+1] = port
	_ = s.Admin.Close()
	s.Addr = net.JoinHostPort("127.0.0.1", port)
	s.Admin = adminOf(s.Addr)
	return s.Run(ctx)
}

// Kill ends the process as SIGKILL does, and returns when it is gone.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.gone
}

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Close ends the process for good.
func (s *Server) Close() {
	_ = s.Admin.Close()
	if s.cmd != nil && s.cmd.Process != nil {
		s.Kill()
	}
}

// HostPort returns the two parts of Addr.
func (s *Server) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
