// Package services starts private servers for tests, examples and benchmarks: real processes on free ports, with their data in a
// temporary directory. A server ends with Stop, and at the latest with the process that started it. The package needs nothing but the
// standard library and the server's own programs, which are found on PATH or where Debian puts them.
//
// LATCHKEY_REQUIRE, a comma-separated list, names the services whose absence makes a test fail. Tests are skipped otherwise; see [Start].
// LATCHKEY_SERVICES, another, names those that may be started, if it is set; the others count as not installed.
package services

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ErrMissing says that the program of a server is not installed.
var ErrMissing = errors.New("services: not installed")

// servicesVariable names the services that may be started.
const servicesVariable = "LATCHKEY_SERVICES"

// Options changes how a server is started. Its zero value is a server for tests: data survives the end of the process, but not that of
// the machine.
type Options struct {
	// Args are added to the server's command line.
	Args []string
	// Env is added to the server's environment.
	Env []string
}

// A Starter starts a server: [Postgres], [MariaDB] and so on.
type Starter func(Options) (*Server, error)

// Start starts a server for a test, and stops it when the test ends. If its program is missing, the test is skipped, or fails if
// LATCHKEY_REQUIRE names the service.
func Start(tb testing.TB, name string, start Starter, o Options) *Server {
	tb.Helper()
	s, err := start(o)
	switch {
	case errors.Is(err, ErrMissing) && !Required(name):
		tb.Skipf("needs %s: %v (or set LATCHKEY_REQUIRE=%s to make this a failure)", name, err, name)
	case err != nil:
		tb.Fatalf("%s: %v", name, err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// Required reports whether LATCHKEY_REQUIRE names the service.
func Required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("LATCHKEY_REQUIRE"), ","), name)
}

// program finds a program on PATH, or else the last match of the patterns, which is that of the newest version.
func program(name, debianPackage string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.EvalSymlinks(path)
	}
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			slices.Sort(found)
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: there is no %s; on Debian: apt-get install %s", ErrMissing, name, debianPackage)
}
