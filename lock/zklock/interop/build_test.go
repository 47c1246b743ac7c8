package interop

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// The Java program and what Maven makes of it, seen from this folder.
const (
	javaDir   = "java"
	targetDir = "java/target"
)

// build returns the class path of the Java program, built once a process and only if its sources are not what it was last built from.
var build = sync.OnceValues(func() (classPath string, err error) {
	unlock, err := lockTarget()
	if err != nil {
		return "", err
	}
	defer unlock()
	classPath = filepath.Join(targetDir, "classes") + string(filepath.ListSeparator) + filepath.Join(targetDir, "lib", "*")
	sources, err := fingerprint()
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(targetDir, "built-from")
	if last, err := os.ReadFile(stamp); err == nil && bytes.Equal(last, sources) {
		return classPath, nil
	}
	if err := maven(); err != nil {
		return "", err
	}
	return classPath, os.WriteFile(stamp, sources, 0o600)
})

// maven builds from what is already here, and only if that is not enough fetches the rest.
func maven() error {
	repository, err := filepath.Abs(filepath.Join(targetDir, "repository"))
	if err != nil {
		return err
	}
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command("mvn", append(args, "-q", "-B", "-Dmaven.repo.local="+repository, "package")...)
		cmd.Dir = javaDir
		return cmd.CombinedOutput()
	}
	if _, err := run("-o"); err == nil {
		return nil
	}
	if out, err := run(); err != nil {
		return fmt.Errorf("mvn package: %w\n%s", err, out)
	}
	return nil
}

// fingerprint is a digest of all that the program is built from.
func fingerprint() ([]byte, error) {
	h := sha256.New()
	err := filepath.WalkDir(javaDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && filepath.Clean(path) == filepath.Clean(targetDir):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return err
	})
	return []byte(hex.EncodeToString(h.Sum(nil))), err
}

// lockTarget keeps other processes from building at the same time.
func lockTarget() (unlock func(), err error) {
	if err := os.MkdirAll(targetDir, 0o750); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(targetDir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
