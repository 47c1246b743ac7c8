// Package server runs private Redis servers: processes that can be stopped, killed, and started again with what they have kept.
package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/internal/services"
	"github.com/redis/go-redis/v9"
)

// User and Password are those of the workers, so that a fault may change what they are allowed to do.
const User, Password = "worker", "secret"

// Config says what server to start.
type Config struct {
	// Name is what histories call it.
	Name string
	// Dir is its folder; it is made.
	Dir string
	// Keep has it keep each write in a file before it answers, so that it loses nothing when it is killed. Without it, it comes back with
	// nothing, not even the dump that a replica gets when it begins.
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
	// Spare is where Move brings it.
	Spare string
	// Bus is the port on which the nodes of a cluster talk.
	Bus string
	// Admin is a client for the program's own questions. It is not the workers' user.
	Admin *redis.Client

	args []string
	env  []string
	proc *redistest.Process
}

// Start runs a server on a free port.
func Start(ctx context.Context, c Config) (*Server, error) {
	path, err := redistest.Program()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, err
	}
	s := &Server{Name: c.Name, Dir: c.Dir, env: append(os.Environ(), c.Env...)}
	s.proc, err = redistest.Launch(ctx, nil, func(port string) (*exec.Cmd, error) {
		if c.Cluster {
			if s.Bus, err = services.Port(); err != nil {
				return nil, err
			}
		}
		args, err := c.arguments(port, s.Bus)
		s.args = append([]string{path}, args...)
		return s.command(), err
	})
	if err != nil {
		return nil, fmt.Errorf("%s, which logs to %s: %w", c.Name, filepath.Join(c.Dir, "redis.log"), err)
	}
	s.Addr = s.proc.Addr
	s.Admin = adminOf(s.Addr)
	spare, err := services.Port()
	s.Spare = net.JoinHostPort("127.0.0.1", spare)
	return s, err
}

func (s *Server) command() *exec.Cmd {
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Env, cmd.SysProcAttr = s.env, redistest.Apart()
	return cmd
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
	args := []string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--rdb-del-sync-files", "yes", "--daemonize", "no", "--loglevel", "warning", "--dir", c.Dir,
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

// Run starts the process again after Kill, and waits until it answers.
func (s *Server) Run(ctx context.Context) (err error) {
	proc, err := redistest.Run(ctx, s.Addr, s.command())
	if err == nil {
		s.proc = proc
	}
	return err
}

// Move starts a killed server again at its other address.
func (s *Server) Move(ctx context.Context) error {
	_ = s.Admin.Close()
	s.Addr, s.Spare = s.Spare, s.Addr
	_, s.args[slices.Index(s.args, "--port")+1] = s.HostPort()
	s.Admin = adminOf(s.Addr)
	return s.Run(ctx)
}

// Kill ends the process as SIGKILL does, and returns when it is gone.
func (s *Server) Kill() { s.proc.Kill() }

// Signal sends a signal to the process.
func (s *Server) Signal(sig syscall.Signal) error { return s.proc.Signal(sig) }

// Close ends the process for good.
func (s *Server) Close() {
	_ = s.Admin.Close()
	s.Kill()
}

// HostPort returns the two parts of Addr.
func (s *Server) HostPort() (host, port string) {
	host, port, _ = net.SplitHostPort(s.Addr)
	return host, port
}
