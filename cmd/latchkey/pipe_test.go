package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Whoever reads our messages has gone, as in "latchkey run -v k -- true 2>&1 | head -1". The lock is given back all the same, and a
// command that writes to such a pipe ends over it as it would without us.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for _, tt := range []struct {
		name, command string
		status        int
	}{
		{"the messages", "exit 3", 3},
		{"the output", "while :; do echo y; done", 128 + 13},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			p := startIn(t, at(s), func(c *exec.Cmd) { c.Stdout, c.Stderr = w, w }, "run", "-v", tt.name, "--", "sh", "-c", tt.command)
			_ = w.Close()
			if status := p.status(); status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			if n := s.Client(t).Exists(t.Context(), tt.name).Val(); n != 0 {
				t.Error("the lock is left behind")
			}
		})
	}
}

func TestListOfLessThanNothing(t *testing.T) {
	t.Parallel()
	if status, _, err := result(t, at(redistest.Start(t)), "ls", "--limit", "-1"); status != 64 {
		t.Errorf("status %d, %s, want 64", status, err)
	}
}
