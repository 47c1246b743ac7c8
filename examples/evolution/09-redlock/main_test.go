package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestAStoppedHolderIsToldOfItsLoss(t *testing.T) {
	playtest.Closed(t, step, play.StoppedHolder)
}

func TestTheMajorityRemembersALiveLock(t *testing.T) {
	playtest.Closed(t, step, play.ForgetfulServer)
}

func TestAWriteAfterAPauseUndoesAnother(t *testing.T) {
	playtest.Hole(t, step, play.StoppedWriter, "2 were added, and the store has 1")
}

func TestAWriteAfterAPauseIsUndone(t *testing.T) {
	playtest.Hole(t, step, play.WriterAfterReader, "2 were added, and the store has 1")
}
