package redisson

import (
	"slices"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// pack is the watchdog's tasks that travel as one call. It is one task with its own call, or many that run the same script.
type pack struct {
	call  call
	tasks []task
}

// packSize bounds a pack, so that the server does nothing else for no longer than half a millisecond. A renewal in a larger one is not
// cheaper.
const packSize = 50

// kin is what travels together: with the same script, and in a cluster to the same slot.
type kin struct {
	script *script
	keys   int
	slot   int
}

// alone returns a pack for each task.
func alone(tasks []task) []pack {
	packs := make([]pack, len(tasks))
	for i, t := range tasks {
		packs[i] = pack{t.call, tasks[i : i+1 : i+1]}
	}
	return packs
}

// together returns packs of tasks for one server: of one task each once a server has refused a pack, as it may refuse the next one too.
// In a cluster, the keys of a script have to be in one slot. A removal goes alone at first: it is mostly the only
// one that finds something, and a proxy that sends all keys where the first one is would have none of the others found.
func (c *Client) together(tasks []task) []pack {
	if c.apart.Load() {
		return alone(tasks)
	}
	return packed(tasks, c.topology.Cluster())
}

// packed returns packs of as many tasks as can travel together.
func packed(tasks []task, cluster bool) (packs []pack) {
	last := map[kin]int{} // of packs
	for _, t := range tasks {
		k := kin{script: t.call.Script, keys: len(t.call.Keys)}
		if cluster {
			k.slot = pubsub.Slot(t.call.Keys[0])
		}
		fits := many[k.script] != nil && !t.first && (k.script != lockUpdate || len(t.call.Keys) == 1) // which has no token
		if i, some := last[k]; fits && some && len(packs[i].tasks) < packSize {
			packs[i].tasks = append(packs[i].tasks, t)
			continue
		}
		if packs = append(packs, pack{t.call, []task{t}}); fits {
			last[k] = len(packs) - 1
		}
	}
	for i, p := range packs {
		if len(p.tasks) == 1 {
			continue
		}
		all := call{Script: many[p.call.Script]}
		for _, t := range p.tasks {
			all.Keys, all.Args = append(all.Keys, t.call.Keys...), append(all.Args, t.call.Args...)
		}
		all.Args = append(all.Args, len(p.tasks))
		packs[i].call = all
	}
	return packs
}

// refused reports whether the server's answer is an error that may be for the sake of one key, which need not be that of all.
func (p pack) refused(a answer) bool { return len(p.tasks) > 1 && a.Err != nil && !a.Failed() }

// open returns the tasks of p with an answer to each. Those that have to ask for themselves are in again: the holder of one that renews or releases
// is not at the key, which is to be said of nobody because of a proxy that sends all keys where the first one is, or the server refuses the call.
func (p pack) open(a answer) (tasks []task, answers []answer, again []task) {
	switch {
	case len(p.tasks) == 1:
		return p.tasks, []answer{a}, nil
	case p.refused(a), a.Err == nil && len(a.Values) < len(p.tasks):
		return nil, nil, p.tasks
	case a.Err != nil:
		return p.tasks, slices.Repeat([]answer{a}, len(p.tasks)), nil
	}
	for i, t := range p.tasks {
		one := a
		switch v := a.Values[i]; {
		case v > 0:
			one.Values = []int64{1, v - 1, 0}
		case t.call.Script == lockUpdate, t.whole && a.Doubts == 0: // with a doubt, an attempt before has done it
			again = append(again, t)
			continue
		default:
			one.Values = []int64{0}
		}
		tasks, answers = append(tasks, t), append(answers, one)
	}
	return tasks, answers, again
}
