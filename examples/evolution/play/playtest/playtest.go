// Package playtest performs the plays of a step in its tests, on redis-server processes of their own.
package playtest

import (
	"os"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// Main is TestMain of a step. The processes of its plays are the test binary, started again.
func Main(m *testing.M, step play.Step) {
	play.ActIfActor(step)
	os.Exit(m.Run())
}

// Hole performs a play that ends badly, and expects that it does so for this reason.
func Hole(t *testing.T, step play.Step, p play.Play, want string) {
	t.Helper()
	t.Parallel()
	if got := perform(t, step, p); got != want {
		t.Errorf("%s: the hole is %q, want %q", p.Name, got, want)
	}
}

// Closed performs a play that ended badly in an earlier step, and expects that it does not in this one.
func Closed(t *testing.T, step play.Step, p play.Play) {
	t.Helper()
	t.Parallel()
	if got := perform(t, step, p); got != "" {
		t.Errorf("%s: still %s", p.Name, got)
	}
}

func perform(t *testing.T, step play.Step, p play.Play) (hole string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	props := play.Props{Program: program, Store: redistest.Start(t).Addr}
	var args []string
	if step.Durable {
		args = play.DurableArgs
	}
	for range max(1, step.Servers) {
		s := redistest.Start(t, args...)
		props.Servers = append(props.Servers, play.Server{Addr: s.Addr, Restart: func() error {
			s.Kill(t)
			s.Restart(t)
			return nil
		}})
	}
	hole, err = play.Perform(t.Context(), storyTo(t), step, props, p)
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return hole
}

// story is a test's log as a writer of whole lines.
type story struct{ t *testing.T }

func storyTo(t *testing.T) story { return story{t} }

func (s story) Write(line []byte) (int, error) {
	s.t.Log(strings.TrimSpace(string(line)))
	return len(line), nil
}
