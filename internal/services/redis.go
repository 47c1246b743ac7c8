package services

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// Redis starts a redis-server. Tests of packages that stand on Redis have internal/redistest, which knows Sentinel and Cluster, too.
func Redis(o Options) (*Server, error) {
	path, err := exec.LookPath("redis-server") // which may be a link to a program that goes by the name of the link
	if err != nil {
		return nil, fmt.Errorf("%w: there is no redis-server; on Debian: apt-get install redis-server", ErrMissing)
	}
	sp := spec{path: path, options: o, end: syscall.SIGTERM, answers: redisAnswers}
	sp.args = func(s *Server) []string {
		host, port := s.HostPort()
		return []string{"--bind", host, "--port", port, "--save", "", "--dir", s.Dir}
	}
	return launch("redis", sp, func(*Server) error { return nil })
}

// redisAnswers asks for the number of the process, so that no other server at that port is taken for ours.
func redisAnswers(ctx context.Context, s *Server) error {
	info, err := ask(ctx, s.Addr, "INFO server\r\nQUIT\r\n", 0)
	if err == nil && !strings.Contains(string(info), fmt.Sprintf("\nprocess_id:%d\r", s.cmd.Process.Pid)) {
		err = errors.New("services: that is not the redis-server")
	}
	return err
}
