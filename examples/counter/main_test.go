package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestNoUpdateIsLost(t *testing.T) {
	exampletest.Prints(t, run, "with a guard:    1000 of 1000")
}
