package sqllock_test

import (
	"flag"
	"os"
	"testing"
)

// The test binary is its own second process: see child_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(child(role))
	}
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "4") // most of the time is spent waiting; the flag is there
	}
	code := m.Run()
	stopServers()
	os.Exit(code)
}
