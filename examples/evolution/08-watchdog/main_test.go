package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestSlowWorkKeepsItsLock(t *testing.T) {
	playtest.Closed(t, step, play.SlowWork)
}

func TestAStoppedHolderIsNotToldOfItsLoss(t *testing.T) {
	playtest.Hole(t, step, play.StoppedHolder, "ann and bob hold the lock at once")
}

func TestAServerForgetsALiveLock(t *testing.T) {
	playtest.Hole(t, step, play.ForgetfulServer, "ann and bob hold the lock at once")
}
