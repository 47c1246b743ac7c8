package worker

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/faults/lockset"
)

// add adds its owner to a set, under the lock of that: it reads the set, waits, and writes it. Without a fence, the
// store does not get the token of the lock. At the end of a round it stays until it was inside.
func (c *caller) add(t target, end, fenced bool) {
	t.lock = c.w.clients[0].FencedLock(t.keys[0])
	for {
		ctx, a, cancel := c.attempt()
		if end {
			ctx, a = context.Background(), attempt{wait: -1}
		}
		st := c.take(ctx, t, a)
		cancel()
		if st != nil {
			c.enter(st)
			c.update(st, c.owner, fenced)
			c.leave(st)
		}
		if !end || st != nil && st.in {
			return
		}
		c.begin()
	}
}

// update is what the section is for. A write that the store does not acknowledge, such as one that comes too late, need not be there.
func (c *caller) update(st *stay, element string, fenced bool) (ok bool) {
	if !st.good {
		return false
	}
	fence := int64(0)
	if fenced {
		fence = token(st)
	}
	return lockset.New(c.w.store, Set(st.keys[0])).Add(context.Background(), st.call, fence, element, func() {
		c.w.place.Adding.Add(1)
		defer c.w.place.Adding.Add(-1)
		time.Sleep(time.Duration(500+c.rng.IntN(1500)) * time.Microsecond)
	}) == nil
}

// Set is the name of the set that a lock guards.
func Set(key string) string { return "elements of " + key }
