package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestTheFirstCommandSaysWhenTheLockEnds(t *testing.T) {
	playtest.Closed(t, step, play.KilledBetween)
}

func TestAFastClockTakesALiveLock(t *testing.T) {
	playtest.Hole(t, step, play.FastClock, "ann and bob hold the lock at once")
}
