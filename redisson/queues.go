package redisson

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// After a failover, or a restart from older data, the queues of fair locks have waiters again that were served long ago, and others would wait
// for each of them as for a dead one. So a client removes its own: when its connection has broken, and when it hears that one is at the head,
// from a refusal, or on its own channel from whoever finds a free lock that waits for one. It listens there for as long as what it has left
// behind may come back.

// queueMemory is how long a client remembers that it has stood in a queue.
const queueMemory = time.Hour

// mostQueues bounds the names that are remembered: each is looked at when the connection has broken.
const mostQueues = 100

// stoodLocked notes that ho has got in line, if it gets in any.
func (s *claims) stoodLocked(ho *holder) {
	if !ho.queues {
		return
	}
	now := present()
	if _, known := s.queues[ho.name()]; known || len(s.queues) < mostQueues {
		s.queues[ho.name()] = now
	}
	s.attendLocked(now)
}

// stands reports whether that is the holder of somebody who waits for a fair lock.
func (l *lines) stands(name, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[lineID{name: name, kind: lock.Fair, alone: id}] != nil
}

// rememberedLocked reports whether a queue may have somebody of this client.
func (s *claims) rememberedLocked() bool {
	now := present()
	maps.DeleteFunc(s.queues, func(_ string, last instant) bool { return now.sub(last) > queueMemory })
	return len(s.queues) > 0
}

// sweepAll removes those of this client who wait no more from all queues that are remembered.
func (c *Client) sweepAll() {
	c.claims.mu.Lock()
	names := slices.Sorted(maps.Keys(c.claims.queues))
	c.claims.mu.Unlock()
	for _, name := range names {
		c.sweep(c.ctx, time.Now().Add(c.timeout), name)
	}
}

// sweep removes those from the queue of a fair lock who wait no more, of this client, and reports whether there were any. If the lock is free
// and has another client's waiter at its head, that client is asked to do the same. Who stands there now, and is not among those who wait when
// the answer comes, is over: a waiter has its line in this process before it gets in that one.
func (c *Client) sweep(ctx context.Context, by time.Time, name string) (swept bool) {
	for over := []any(nil); ; {
		a := c.road.Ask(ctx, by, call{Script: fairOwn, Keys: fairKeys(name), Args: append([]any{c.id + ":", lockChannel(name)}, over...)})
		if a.Err != nil || len(a.List) == 0 {
			return swept
		}
		swept, over = swept || len(over) > 0, nil
		for _, id := range a.List[1:] {
			if id, ok := id.(string); ok && !c.lines.stands(name, id) {
				over = append(over, id)
			}
		}
		if len(over) > 0 {
			continue
		}
		if head, _ := a.List[0].(string); head != "" && clientOf(head) != c.id {
			go c.background(func() {
				c.tell(context.WithoutCancel(ctx), name, []toldOf{{clientOf(head), sweeping + " " + name}})
			})
		}
		return swept
	}
}

// doubt looks after the head of a queue that a refusal has named, and reports whether somebody was removed.
func (c *Client) doubt(ctx context.Context, by time.Time, name string, heads []any) bool {
	if len(heads) == 0 {
		return false
	}
	head, _ := heads[0].(string)
	return !c.lines.stands(name, head) && c.sweep(ctx, by, name)
}
