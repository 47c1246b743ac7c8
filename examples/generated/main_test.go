package main

import (
	"os/exec"
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestNoSeatIsSoldTwice(t *testing.T) {
	exampletest.Prints(t, run, "100 tickets for 100 seats; 200 customers came too late; 0 seats are free", "Metropolis: seat ")
}

func TestGeneratedCodeIsUpToDate(t *testing.T) {
	if out, err := exec.Command("go", "tool", "latchkey-gen", "-check").CombinedOutput(); err != nil {
		t.Errorf("go tool latchkey-gen -check: %v\n%s", err, out)
	}
}
