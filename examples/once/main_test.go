package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestItIsSetUpOnce(t *testing.T) {
	exampletest.Prints(t, run, "the schema was created 1 time(s)")
}
