package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestTwoProcessesHaveTwoMutexes(t *testing.T) {
	playtest.Hole(t, step, play.TwoMachines, "ann and bob hold the lock at once")
}
