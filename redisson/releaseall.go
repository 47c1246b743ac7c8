package redisson

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// ReleaseAll gives back holds of one call together, as [lock.Locker] says: in one round trip to each master, and all of them
// under the bounds of one Release. A lock that passes to a waiter of this client at once has a question of its own, at the same time.
func (c *Client) ReleaseAll(ctx context.Context, holds []lock.Hold) error {
	errs := make([]error, len(holds))
	var together []releasing
	var parts sync.WaitGroup
	for i, h := range holds {
		own, ok := h.(interface{ inner() *hold })
		if !ok || own.inner().c != c {
			errs[i] = h.Release(ctx)
			continue
		}
		d, lost := own.inner().depart(0)
		if errs[i] = lost; d.hold == nil {
			continue
		}
		if d.task.turn > 0 {
			parts.Go(func() { errs[i] = d.confirm(ctx) })
			continue
		}
		together = append(together, releasing{d, &errs[i]})
	}
	for _, b := range pubsub.ByMaster(c.topology, together, func(r releasing) string { return r.task.call.Keys[0] }) {
		parts.Go(func() { c.finish(ctx, b) })
	}
	parts.Wait()
	return errors.Join(errs...)
}

// releasing is the release of one of many holds.
type releasing struct {
	pendingRelease
	err *error // where it goes; already set if the hold was lost before
}

// finish performs releases at one master, in their order.
func (c *Client) finish(ctx context.Context, b []releasing) {
	ctx, cancel := c.attending(ctx)
	defer cancel()
	tasks := make([]task, len(b))
	for i, r := range b {
		tasks[i] = r.task
		tasks[i].of = i
	}
	c.askPacked(ctx, c.together(tasks), func(t task, a answer) {
		r := b[t.of.(int)]
		*r.err = cmp.Or(*r.err, r.end(ctx, a))
	})
}

// askPacked asks one master what packs have, and tells of each task what was answered. Those that have to ask for themselves are asked again.
func (c *Client) askPacked(ctx context.Context, packs []pack, answered func(task, answer)) {
	calls := make([]call, len(packs))
	for i, p := range packs {
		calls[i] = p.call
	}
	var again []task
	for i, a := range c.askAll(ctx, time.Now().Add(c.timeout), calls) {
		tasks, answers, unsaid := packs[i].open(a)
		for i, t := range tasks {
			answered(t, answers[i])
		}
		again = append(again, unsaid...)
	}
	if len(again) > 0 {
		c.askPacked(ctx, alone(again), answered)
	}
}
