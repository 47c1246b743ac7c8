// Package clock gives servers a wall clock that can be set.
package clock

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed preload/clock.c
var source []byte

// Clock is the wall clock of the servers that have its Env.
type Clock struct {
	library string
	file    *os.File
	ahead   time.Duration
}

// ErrNoCompiler says that there is no C compiler to make the library with.
var ErrNoCompiler = errors.New("there is no C compiler")

// New makes a clock that is right, with its files in dir.
func New(dir string) (*Clock, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return nil, ErrNoCompiler
	}
	text, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(text, source, 0o600); err != nil {
		return nil, err
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O2", "-o", library, text).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cc: %w\n%s", err, out)
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		return nil, err
	}
	c := &Clock{library: library, file: file}
	return c, c.Step(0)
}

// Env is what a process has in its environment that goes by the clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "LATCHKEY_CLOCK=" + c.file.Name()}
}

// Step sets the clock on by d, or back.
func (c *Clock) Step(d time.Duration) error {
	c.ahead += d
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.ahead)), 0)
	return err
}

// Close gives the clock's file back.
func (c *Clock) Close() error { return c.file.Close() }
