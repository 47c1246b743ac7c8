package redisson

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// task is a call to make.
type task struct {
	of      any // a holder or a retry of the watchdog; of a release among several, a function that takes the answer
	call    call
	version int32 // of a holder's counts
	due     instant
	why     change        // of these
	first   bool          // of a retry's attempts
	whole   bool          // the holder goes
	free    bool          // and nobody keeps the lock, which passes within the client
	next    *hold         // to which the lock passes
	to      *place        // of the waiter for it, which the answer notifies
	pace    time.Duration // of the turns of a streak that is over
}

// pack is the tasks that travel as one call: one, or many that run the same script.
type pack []task

// packSize bounds a pack, so that the server does nothing else for no longer than half a millisecond. A renewal in a larger one is not
// cheaper.
const packSize = 50

// kin is the common key of tasks that can travel together: the script, and in a cluster the slot.
type kin struct {
	script *script
	keys   int
	slot   int
}

// bundle cuts all into parts of at most packSize that have a key in common. One that does not fit is a part of its own.
func bundle[P ~[]T, T any, K comparable](all P, keyOf func(T) (key K, fits bool)) (parts []P) {
	last := map[K]int{} // of parts
	for _, one := range all {
		key, fits := keyOf(one)
		if i, some := last[key]; fits && some && len(parts[i]) < packSize {
			parts[i] = append(parts[i], one)
			continue
		}
		if parts = append(parts, P{one}); fits {
			last[key] = len(parts) - 1
		}
	}
	return parts
}

// alone returns a pack for each task.
func alone(tasks pack) []pack { return slices.Collect(slices.Chunk(tasks, 1)) }

// together returns packs of tasks for one server: of one task each once a server has refused a pack, as it may refuse the next one too.
// In a cluster, the keys of a script have to be in one slot. A removal goes alone at first: it is mostly the only
// one that finds something, and a proxy that sends all keys where the first one is would have none of the others found.
func (c *Client) together(tasks pack) []pack {
	if c.apart.Load() {
		return alone(tasks)
	}
	return packed(tasks, c.topology.Cluster())
}

// packed returns packs of as many tasks as can travel together.
func packed(tasks pack, cluster bool) []pack {
	return bundle(tasks, func(t task) (k kin, fits bool) {
		k = kin{script: t.call.Script, keys: len(t.call.Keys)}
		if cluster {
			k.slot = pubsub.Slot(t.call.Keys[0])
		}
		return k, many[k.script] != nil && !t.first && (k.script != lockUpdate || k.keys == 1) // which has no token
	})
}

// call returns the question of all tasks of p.
func (p pack) call() call {
	if len(p) == 1 {
		return p[0].call
	}
	all := call{Script: many[p[0].call.Script]}
	for _, t := range p {
		all.Keys, all.Args = append(all.Keys, t.call.Keys...), append(all.Args, t.call.Args...)
	}
	all.Args = append(all.Args, len(p))
	return all
}

// callsOf returns the questions of packs.
func callsOf(packs []pack) []call {
	all := make([]call, len(packs))
	for i, p := range packs {
		all[i] = p.call()
	}
	return all
}

// openAll returns the tasks of packs that have answers, with these, and the tasks that have to ask for themselves.
func (c *Client) openAll(packs []pack, all []answer) (tasks pack, said []answer, again pack) {
	for i, p := range packs {
		done, answers, unsaid := p.open(all[i])
		if all[i].Err != nil && len(unsaid) > 0 {
			c.apart.Store(true)
		}
		tasks, said, again = append(tasks, done...), append(said, answers...), append(again, unsaid...)
	}
	return tasks, said, again
}

// open is openAll for one pack. A task has to ask for itself if its renewal or release did not find the holder at the
// key: a proxy that sends all keys where the first one is must not make a holder seem gone. The same holds if the
// server refuses the call, perhaps for the sake of another task.
func (p pack) open(a answer) (tasks pack, answers []answer, again pack) {
	switch {
	case len(p) == 1, a.Failed():
		return p, slices.Repeat([]answer{a}, len(p)), nil
	case a.Err != nil, len(a.Values) < len(p):
		return nil, nil, p
	}
	for i, t := range p {
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

// ReleaseAll gives back holds of one call together, as [lock.Locker] says: in one round trip to each master, and all of them
// under the bounds of one Release.
func (c *Client) ReleaseAll(ctx context.Context, holds []lock.Hold) error {
	return releaseAll(ctx, holds)
}

// releaseAll is ReleaseAll, for holds of any clients.
func releaseAll(ctx context.Context, holds []lock.Hold) error {
	errs, together := make([]error, len(holds)), map[*Client]pack{}
	var parts sync.WaitGroup
	for i, one := range holds {
		own, ok := one.(interface{ inner() *hold })
		if !ok || own.inner().around != nil {
			parts.Go(func() { errs[i] = one.Release(ctx) })
			continue
		}
		h := own.inner()
		t, lost := h.depart(0)
		errs[i] = lost
		if t.call.Script != nil {
			t.of = func(a answer) { errs[i] = cmp.Or(lost, h.end(t, a)) }
			together[h.c] = append(together[h.c], t)
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(together), func(a, b *Client) int { return cmp.Compare(a.id, b.id) }) {
		for _, part := range pubsub.ByMaster(c.topology, together[c], func(t task) string { return t.call.Keys[0] }) {
			parts.Go(func() { c.finish(ctx, part) })
		}
	}
	parts.Wait()
	return errors.Join(errs...)
}

// finish performs releases at one master, in their order. It repeats those that have to ask for themselves.
func (c *Client) finish(ctx context.Context, tasks pack) {
	ctx, cancel := c.attending(ctx)
	defer cancel()
	for packs := c.together(tasks); len(packs) > 0; packs = alone(tasks) {
		answers := c.askAll(ctx, time.Now().Add(c.timeout), callsOf(packs))
		done, said, again := c.openAll(packs, answers)
		for i, t := range done {
			t.of.(func(answer))(said[i])
		}
		tasks = again
	}
}
