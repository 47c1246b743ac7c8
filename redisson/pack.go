package redisson

import (
	"slices"

	"github.com/latchkey-go/latchkey/internal/reply"
)

// pack is the watchdog's tasks that travel as one call. It is one task with its own call, or renewals of locks without tokens.
type pack struct {
	call  call
	tasks []task
}

// packSize bounds a pack, so that the server does nothing else for no longer than a quarter of a millisecond. A renewal in a larger
// one is not cheaper.
const packSize = 50

// alone returns a pack for each task.
func alone(tasks []task) []pack {
	packs := make([]pack, len(tasks))
	for i, t := range tasks {
		packs[i] = pack{t.call, tasks[i : i+1 : i+1]}
	}
	return packs
}

// packed returns packs of tasks for one server that is no node of a cluster, where the keys of a script have to be in one slot.
func packed(tasks []task) (packs []pack) {
	var simple, others []task
	for _, t := range tasks {
		if t.call.script == lockUpdate && len(t.call.keys) == 1 {
			simple = append(simple, t)
		} else {
			others = append(others, t)
		}
	}
	packs = alone(others)
	for some := range slices.Chunk(simple, packSize) {
		if len(some) == 1 {
			return append(packs, alone(some)...)
		}
		all := call{lockUpdates, make([]string, 0, len(some)), make([]any, 0, 3*len(some))}
		for _, t := range some {
			all.keys, all.args = append(all.keys, t.call.keys...), append(all.args, t.call.args...)
		}
		packs = append(packs, pack{all, some})
	}
	return packs
}

// open returns the tasks of p with an answer to each. Those that have to ask for themselves are in again: the holder of one is not at
// the key, which is to be said of nobody because of a proxy that sends all keys where the first one is, or the server refuses the call
// for the sake of one of its keys, which need not be theirs.
func (p pack) open(a answer) (tasks []task, answers []answer, again []task) {
	switch {
	case p.call.script != lockUpdates:
		return p.tasks, []answer{a}, nil
	case a.err == nil && len(a.values) < len(p.tasks), a.err != nil && reply.IsReply(a.err) && !reply.Transient(a.err):
		return nil, nil, p.tasks
	case a.err != nil:
		return p.tasks, slices.Repeat([]answer{a}, len(p.tasks)), nil
	}
	for i, t := range p.tasks {
		if a.values[i] <= 0 {
			again = append(again, t)
			continue
		}
		one := a
		one.values = []int64{1, a.values[i], 0}
		tasks, answers = append(tasks, t), append(answers, one)
	}
	return tasks, answers, again
}
