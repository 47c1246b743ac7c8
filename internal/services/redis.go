package services

import (
	"bufio"
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
)

// Redis starts a redis-server. Tests of packages that stand on Redis have internal/redistest, which knows Sentinel and Cluster, too.
func Redis(o Options) (*Server, error) {
	path, err := exec.LookPath("redis-server") // which may be a link to a program that goes by the name of the link
	if err != nil {
		return nil, fmt.Errorf("%w: there is no redis-server; on Debian: apt-get install redis-server", ErrMissing)
	}
	sp := spec{end: syscall.SIGTERM, answers: redisAnswers}
	sp.command = func(s *Server) *exec.Cmd {
		host, port := s.HostPort()
		args := []string{"--bind", host, "--port", port, "--save", "", "--dir", s.Dir}
		if o.Durable {
			args = append(args, "--appendonly", "yes", "--appendfsync", "always")
		}
		cmd := exec.Command(path, append(args, o.Args...)...)
		cmd.Env = append(os.Environ(), o.Env...)
		return cmd
	}
	return launch("redis", sp, func(*Server) error { return nil })
}

// redisAnswers asks for the number of the process, so that no other server at that port is taken for ours.
func redisAnswers(ctx context.Context, s *Server) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if pid, ok := strings.CutPrefix(lines.Text(), "process_id:"); ok && pid == strconv.Itoa(s.PID()) {
			return nil
		}
	}
	return errors.New("services: that is not the redis-server")
}
