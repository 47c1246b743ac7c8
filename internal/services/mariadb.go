package services

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"syscall"
)

// MariaDB starts a MariaDB with the user root, who needs no password, and the database test.
func MariaDB(o Options) (*Server, error) {
	path, err := program("mariadbd", "mariadb-server", "/usr/sbin/mariadbd", "/usr/sbin/mysqld")
	if err != nil {
		return nil, err
	}
	install, err := program("mariadb-install-db", "mariadb-server")
	if err != nil {
		return nil, err
	}
	who, err := someone("mysql", "nobody")
	if err != nil {
		return nil, err
	}
	sp := spec{path: path, options: o, user: who, end: syscall.SIGTERM, answers: mariaAnswers}
	sp.args = func(s *Server) []string {
		_, port := s.HostPort()
		// A server removes what it takes for its own old files from the directory for temporary ones.
		return []string{"--no-defaults", "--tmpdir=" + s.Dir, "--datadir=" + s.data(), "--port=" + port, "--bind-address=127.0.0.1", "--skip-name-resolve",
			"--socket=" + filepath.Join(s.Dir, "sock"), "--pid-file=" + filepath.Join(s.Dir, "pid"), "--innodb-buffer-pool-size=32M",
			"--innodb-log-file-size=16M", "--max-connections=200", "--skip-log-bin", "--innodb-fast-shutdown=2",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"}
	}
	return launch("mariadb", sp, func(s *Server) error {
		return prepare(s, exec.Command(install, "--no-defaults", "--datadir="+s.data(), "--auth-root-authentication-method=normal",
			"--skip-name-resolve", "--innodb-log-file-size=16M"))
	})
}

// mariaAnswers reads the first byte of the greeting, which comes when the server takes connections.
func mariaAnswers(ctx context.Context, s *Server) error {
	head, err := ask(ctx, s.Addr, "", 5)
	if err != nil {
		return err
	}
	if head[4] != 10 { // not a greeting of protocol 10, but an error
		return errors.New("services: MariaDB is not ready")
	}
	return nil
}
