package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestALateUnlockSeesTheOtherOwner(t *testing.T) {
	playtest.Closed(t, step, play.LateUnlock)
}

func TestTheOwnerChangesBetweenGetAndDel(t *testing.T) {
	playtest.Hole(t, step, play.StoppedUnlock, "bob and carl hold the lock at once")
}
