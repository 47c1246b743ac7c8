package redisson

import "slices"

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

// together returns packs of tasks for one server: of one task each in a cluster, where the keys of a script have to be in one slot, and once
// a server has refused a pack, as it may refuse the next one too.
func (c *Client) together(tasks []task) []pack {
	if c.topology.Cluster() != nil || c.apart.Load() {
		return alone(tasks)
	}
	return packed(tasks)
}

// packed returns packs of as many tasks as can travel together.
func packed(tasks []task) (packs []pack) {
	var simple, others []task
	for _, t := range tasks {
		if t.call.Script == lockUpdate && len(t.call.Keys) == 1 {
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
		all := call{Script: lockUpdates, Keys: make([]string, 0, len(some)), Args: make([]any, 0, 3*len(some))}
		for _, t := range some {
			all.Keys, all.Args = append(all.Keys, t.call.Keys...), append(all.Args, t.call.Args...)
		}
		packs = append(packs, pack{all, some})
	}
	return packs
}

// refused reports whether the server's answer is an error that may be for the sake of one key, which need not be that of all.
func (p pack) refused(a answer) bool {
	return p.call.Script == lockUpdates && a.Err != nil && !a.Failed()
}

// open returns the tasks of p with an answer to each. Those that have to ask for themselves are in again: the holder of one is not at
// the key, which is to be said of nobody because of a proxy that sends all keys where the first one is, or the server refuses the call.
func (p pack) open(a answer) (tasks []task, answers []answer, again []task) {
	switch {
	case p.call.Script != lockUpdates:
		return p.tasks, []answer{a}, nil
	case p.refused(a), a.Err == nil && len(a.Values) < len(p.tasks):
		return nil, nil, p.tasks
	case a.Err != nil:
		return p.tasks, slices.Repeat([]answer{a}, len(p.tasks)), nil
	}
	for i, t := range p.tasks {
		if a.Values[i] <= 0 {
			again = append(again, t)
			continue
		}
		one := a
		one.Values = []int64{1, a.Values[i], 0}
		tasks, answers = append(tasks, t), append(answers, one)
	}
	return tasks, answers, again
}
