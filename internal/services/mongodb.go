package services

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// secantus is a server of MongoDB's protocol on MongoDB's storage engine that the Python package index has: https://secantusdb.com
const secantus = "secantusd-py"

// SecantusInstall is how it gets to where MongoDB looks for it, if it is not on PATH.
const SecantusInstall = "python3 -m venv ~/.cache/latchkey/secantusdb && ~/.cache/latchkey/secantusdb/bin/pip install secantusdb==0.7.0b3"

// MongoProgram returns what MongoDB starts: the program that LATCHKEY_MONGODB_SERVER names, mongod, or SecantusDB. It reports whether that is a mongod.
func MongoProgram() (path string, mongod bool, err error) {
	if path = os.Getenv("LATCHKEY_MONGODB_SERVER"); path != "" {
		return path, !strings.Contains(filepath.Base(path), "secantus"), nil
	}
	if path, err := exec.LookPath("mongod"); err == nil {
		return path, true, nil
	}
	cache, _ := os.UserCacheDir()
	path, err = program(secantus, "python3-venv, and then: "+SecantusInstall, filepath.Join(cache, "latchkey", "secantusdb", "bin", secantus))
	return path, false, err
}

// MongoDB starts a server of MongoDB's protocol: a mongod alone, or SecantusDB, which calls itself a replica set of one. It knows the
// commands for tests, such as configureFailPoint.
func MongoDB(o Options) (*Server, error) {
	path, mongod, err := MongoProgram()
	if err != nil {
		return nil, err
	}
	sp := spec{path: path, options: o, end: syscall.SIGTERM, answers: mongoAnswers}
	sp.args = func(s *Server) []string {
		host, port := s.HostPort()
		args := []string{"--port", port}
		if mongod {
			args = append(args, "--bind_ip", host, "--dbpath", s.Dir, "--quiet", "--setParameter", "enableTestCommands=1")
		} else {
			args = append(args, "--host", host, "--storage-path", filepath.Join(s.Dir, "data"), "--cache-size", "64M",
				"--log-level", "WARNING", "--enable-test-commands")
		}
		return args
	}
	return launch("mongodb", sp, func(*Server) error { return nil })
}

// mongoHello is {hello: 1, $db: "admin"} in an OP_MSG.
const mongoHello = "\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00" + "\x00\x00\x00\x00" + "\x00" +
	"\x1f\x00\x00\x00" + "\x10hello\x00\x01\x00\x00\x00" + "\x02$db\x00\x06\x00\x00\x00admin\x00" + "\x00"

// mongoAnswers asks for anything, as the port is open long before a server serves.
func mongoAnswers(ctx context.Context, s *Server) error {
	head, err := ask(ctx, s.Addr, mongoHello, 16)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(head[12:]) != 2013 {
		return errors.New("services: no answer of MongoDB")
	}
	return nil
}
