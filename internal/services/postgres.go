package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Postgres starts a PostgreSQL with the superuser and the database postgres, who needs no password.
func Postgres(o Options) (*Server, error) {
	sp, err := postgres(o)
	if err != nil {
		return nil, err
	}
	return launch("postgres", sp, func(s *Server) error {
		return prepare(s, s.program("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8",
			"--locale=C", "--no-sync", "--no-instructions"))
	})
}

// PostgresStandby starts a hot standby of the PostgreSQL at primary: a copy that follows it and can be read.
func PostgresStandby(primary *Server, o Options) (*Server, error) {
	sp, err := postgres(o)
	if err != nil {
		return nil, err
	}
	host, port := primary.HostPort()
	return launch("postgres", sp, func(s *Server) error {
		return prepare(s, s.program("pg_basebackup", "-D", s.data(), "-h", host, "-p", port, "-U", "postgres", "-R", "-X", "stream",
			"--checkpoint=fast", "--no-sync"))
	})
}

// Promote makes a standby a primary, and returns when it can be written.
func (s *Server) Promote() error {
	return prepare(s, s.program("pg_ctl", "promote", "-D", s.data(), "-w"))
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// program is another one of the server's package.
func (s *Server) program(name string, args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(filepath.Dir(s.spec.path), name), args...)
}

func postgres(o Options) (spec, error) {
	path, err := program("postgres", "postgresql", "/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return spec{}, err
	}
	who, err := someone("postgres", "nobody")
	sp := spec{path: path, options: o, user: who, end: syscall.SIGQUIT, answers: postgresAnswers}
	sp.args = func(s *Server) []string {
		_, port := s.HostPort()
		return []string{"-D", s.data(), "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "max_connections=200", "-c", "shared_buffers=16MB", "-c", "logging_collector=off",
			"-c", "fsync=off", "-c", "full_page_writes=off"}
	}
	return sp, err
}

// postgresAnswers logs in. A server that still starts refuses that.
func postgresAnswers(ctx context.Context, s *Server) error {
	const startup = "\x00\x00\x00\x29" + "\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00"
	first, err := ask(ctx, s.Addr, startup, 1)
	if err != nil {
		return err
	}
	if first[0] != 'R' { // not about authentication, but an error such as "the database system is starting up"
		return errors.New("services: PostgreSQL is not ready")
	}
	return nil
}

// prepare runs a program of the server's package as the server's user.
func prepare(s *Server, cmd *exec.Cmd) error {
	cmd.Dir, cmd.SysProcAttr = s.Dir, &syscall.SysProcAttr{Credential: s.spec.user}
	cmd.Env = append(os.Environ(), "TMPDIR="+s.Dir) // where a MariaDB that starts removes what others have there
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, out)
	}
	return nil
}
