package main

import (
	"testing"

	"github.com/latchkey-go/latchkey/examples/evolution/play"
	"github.com/latchkey-go/latchkey/examples/evolution/play/playtest"
)

func TestMain(m *testing.M) { playtest.Main(m, step) }

func TestTheStoreRefusesALateWrite(t *testing.T) {
	playtest.Closed(t, step, play.StoppedWriter)
}

func TestTheStoreRefusesAWriteAfterALaterRead(t *testing.T) {
	playtest.Closed(t, step, play.WriterAfterReader)
}

// What the steps before have closed stays closed. Between two commands nobody can be caught here: each operation is one script.
func TestEarlierHolesStayClosed(t *testing.T) {
	for _, p := range []play.Play{play.TwoMachines, play.KilledHolder, play.FastClock, play.LateUnlock, play.SlowWork,
		play.StoppedHolder, play.ForgetfulServer} {
		t.Run(p.Name, func(t *testing.T) { playtest.Closed(t, step, p) })
	}
}
