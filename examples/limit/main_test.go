package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestNoMoreThanTheLimit(t *testing.T) {
	exampletest.Prints(t, run, "30 reports made, at most 3 at once")
}
