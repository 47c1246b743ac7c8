package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/internal/exampletest"
)

func TestNoPieceIsLost(t *testing.T) {
	exampletest.Prints(t, run, "200 moves, and still 200 pieces")
}
