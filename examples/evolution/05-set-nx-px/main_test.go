package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestTheClockOfRedisDecides(t *testing.T) {
	playtest.Closed(t, step, play.FastClock)
}

func TestALateUnlockFreesTheLockOfAnother(t *testing.T) {
	playtest.Hole(t, step, play.LateUnlock, "bob and carl hold the lock at once")
}
