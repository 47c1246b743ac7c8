package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestTheLockOfADeadHolderExpires(t *testing.T) {
	playtest.Closed(t, step, play.KilledHolder)
}

func TestADeathBeforeExpireKeepsTheLock(t *testing.T) {
	playtest.Hole(t, step, play.KilledBetween, "nobody can have the lock, and Redis keeps it for ever")
}
