package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// The Java program, and what Maven makes of it.
const (
	javaDir   = "java"
	targetDir = "java/target"
)

// warmJVM is how long the JVM works before anything of it is measured, at each of its workloads.
const warmJVM = 3 * time.Second

// javaCommand is the command that runs the worker for Redisson. It is built if its sources are newer than what is there.
func javaCommand(ctx context.Context, say func(string, ...any)) ([]string, error) {
	runtime, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("there is no JDK on PATH")
	}
	if built, err := upToDate(); err != nil {
		return nil, err
	} else if !built {
		say("building the worker for Redisson; the first time, Maven fetches it")
		if err := maven(ctx); err != nil {
			return nil, err
		}
	}
	classes := filepath.Join(targetDir, "classes") + string(filepath.ListSeparator) + filepath.Join(targetDir, "lib", "*")
	return []string{runtime, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", classes, "latchkey.Bench"}, nil
}

// upToDate reports whether what Maven made is newer than its sources.
func upToDate() (bool, error) {
	made, err := os.Stat(stamp)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, source := range []string{"pom.xml", "src/main/java/latchkey/Bench.java"} {
		info, err := os.Stat(filepath.Join(javaDir, source))
		if err != nil {
			return false, fmt.Errorf("the sources of the worker for Redisson: %w", err)
		}
		if info.ModTime().After(made.ModTime()) {
			return false, nil
		}
	}
	return true, nil
}

// stamp is written when a build has succeeded.
const stamp = targetDir + "/built"

// maven builds from what is already here, and only if that is not enough fetches the rest.
func maven(ctx context.Context) error {
	program, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("there is a JDK but no Maven on PATH")
	}
	repository, err := filepath.Abs(filepath.Join(targetDir, "repository"))
	if err != nil {
		return err
	}
	var out []byte
	for _, mode := range [][]string{{"-o"}, nil} {
		cmd := exec.CommandContext(ctx, program, append(mode, "-q", "-B", "-Dmaven.repo.local="+repository, "package")...)
		cmd.Dir = javaDir
		cmd.SysProcAttr = redistest.Apart()
		if out, err = cmd.CombinedOutput(); err == nil {
			return os.WriteFile(stamp, nil, 0o644)
		}
	}
	return fmt.Errorf("mvn package: %w\n%s", err, out)
}

// warmUpJVM has the JVM compile what it is going to run.
func (b *bench) warmUpJVM(ctx context.Context, p *process) error {
	for i, j := range []job{{Callers: 1}, {Callers: 64}, {Callers: 64, OneKey: true, Away: 2}} {
		j.Do, j.Addr, j.Key, j.Millis = "load", b.server.addr, fmt.Sprint("warm:", i), int(warmJVM.Milliseconds())
		if _, err := p.do(ctx, j, warmJVM+patience); err != nil {
			return err
		}
	}
	return nil
}
