package clock_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/clock"
	"github.com/latchkey-go/latchkey/internal/redistest"
)

// A program that goes by the clock sees its steps, and the process that sets it does not.
func TestStep(t *testing.T) {
	c, err := clock.New(t.TempDir())
	if errors.Is(err, clock.ErrNoCompiler) {
		redistest.Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		if err := c.Step(ahead); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		cmd := exec.Command("date", "+%s")
		cmd.Env = append(os.Environ(), c.Env()...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if got := time.Unix(seconds, 0).Sub(before) - max(ahead, 0); err != nil || got.Abs() > 10*time.Second {
			t.Errorf("date is %v ahead after a step of %v: %v", got, ahead, err)
		}
		if d := time.Since(before.Round(0)); d > 10*time.Second {
			t.Errorf("this process' clock is %v ahead", d)
		}
	}
}
