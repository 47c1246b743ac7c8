package check

import (
	"cmp"
	"maps"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/latchkey-go/latchkey/faults/history"
)

// latchOperations is how many operations of a latch are checked at most: its waits beyond that are left out, which is sound, as
// they change nothing.
const latchOperations = 100

// latchModel is a latch that is set, counted down, and waited for. Its state is the count.
var latchModel = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, input, _ any) (bool, any) {
		switch e := input.(history.Event); e.Op {
		case history.Set:
			return true, e.Limit
		case history.Count:
			return true, max(0, state.(int)-1)
		}
		return state == 0, state
	},
}

// latchModels checks each latch that was set, and whose servers lost no data. A count that failed is taken for done: that only lets
// more waits end.
func (t *timeline) latchModels() {
	byKey := map[string][]porcupine.Operation{}
	for _, e := range t.others {
		if e.Kind != "latch" || e.Op != history.Set && e.Op != history.Count {
			continue
		}
		op := porcupine.Operation{ClientId: len(byKey[e.Keys[0]]), Input: e, Call: cmp.Or(e.Since, e.At), Return: e.At}
		byKey[e.Keys[0]] = append(byKey[e.Keys[0]], op)
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		ops, waits, lost := byKey[key], []*call(nil), false
		for _, c := range t.byKey[key] {
			lost = lost || len(t.lossesOf(c)) > 0
			if c.entered != 0 && len(ops) < latchOperations {
				ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: c.ask, Call: c.ask.At, Return: c.entered})
				waits = append(waits, c)
			}
		}
		if lost {
			continue
		}
		switch porcupine.CheckOperationsTimeout(latchModel, ops, windowTime) {
		case porcupine.Unknown:
			t.result.Undecided++
			continue
		case porcupine.Illegal:
			t.violation("model", "%q is no latch:%s", key, t.tellAll(waits))
		}
		t.result.Histories["latch"]++
	}
}
