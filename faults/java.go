package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// javaDir is the program in Java, seen from this module. It is built beside the module's source.
const javaDir = "../redisson/interop/java"

// errNoJava says that Redisson can't play.
var errNoJava = errors.New("no Redisson: it needs a JDK 17 and Maven")

// javaCommand builds the program in Java, with the version of Redisson that its pom.xml names, and returns what runs its worker.
func javaCommand(ctx context.Context) ([]string, error) {
	java, err := exec.LookPath("java")
	mvn, err2 := exec.LookPath("mvn")
	if err := errors.Join(err, err2); err != nil {
		return nil, errNoJava
	}
	target, err := filepath.Abs(filepath.Join(javaDir, "target"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join(target, "lock")) // the interop tests build there, too
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	build := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, mvn, append(args, "-q", "-B", "-Dmaven.repo.local="+filepath.Join(target, "repository"), "-Dredisson.version="+redissonVersion, "package")...)
		cmd.Dir = javaDir
		return cmd.CombinedOutput()
	}
	if _, err := build("-o"); err != nil { // from what is here already
		if out, err := build(); err != nil {
			return nil, fmt.Errorf("mvn package: %w\n%s", err, out)
		}
	}
	dir := filepath.Join(target, redissonVersion)
	return []string{java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp",
		filepath.Join(dir, "classes") + string(filepath.ListSeparator) + filepath.Join(dir, "lib", "*"), "latchkey.Faults"}, nil
}

const redissonVersion = "4.7.0"
