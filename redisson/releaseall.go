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
		if !ok {
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

// finish performs releases at one master, in their order. Those that have to ask for themselves are asked again.
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
