package redisson

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// FairLock returns the fair lock of that name, Redisson's getFairLock: a Lock that serves its waiters in the order in which
// they came, whatever process they are in. Each waiter has a deadline in the queue, which it moves as long as it lives: a process that died
// keeps the others waiting once, for its wait and a second, or for FairLockWaitTimeout if that is less. TryLock without a wait does not
// queue, and takes the lock only if nobody else is in line.
func (c *Client) FairLock(name string) *Lock { return c.newLock(name, lock.Fair) }

// fair keeps the waiters of a lock in a list, with deadlines in a sorted set, by the server's clock. Each has a channel of
// its own, on which the release before it announces its turn.
type fair struct{ plain }

func fairKeys(name string) []string { return []string{name, fairQueue(name), fairDeadlines(name)} }

func (fair) enter(ho *holder, lease time.Duration) call {
	return call{Script: fairAcquire, Keys: fairKeys(ho.name()), Args: []any{ho.id, millis(lease), millis(ho.patience), ho.queues}}
}

func (fair) exit(ho *holder, successor string, kept time.Duration) call {
	return call{Script: fairRelease, Keys: fairKeys(ho.name()), Args: []any{ho.id, millis(ho.patience), lockChannel(ho.name()), successor, millis(kept)}}
}

// After a failover, or a restart from older data, the queues of fair locks have waiters again that were served long ago, and others would wait
// for each of them as for a dead one. So a client removes its own: when its connection has broken, and when it hears that one is at the head,
// from a refusal, or on its own channel from whoever finds a free lock that waits for one. It listens there for as long as what it has left
// behind may come back.

// stands reports whether that is the holder of somebody who waits for a fair lock.
func (l *localQueues) stands(name, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := queueID{name: name, kind: lock.Fair, alone: id}
	return l.byID[own] != nil || l.asking[own]
}

// sweepAll removes those of this client who wait no more from all queues that are remembered.
func (c *Client) sweepAll() {
	for _, name := range c.listener.remembered() {
		c.sweep(c.ctx, time.Now().Add(c.timeout), name)
	}
}

// sweep removes those from the queue of a fair lock who wait no more, of this client, and reports whether there were any. If the lock is free
// and has another client's waiter at its head, that client is asked to do the same. Who stands there now, and is not among those who wait when
// the answer comes, is over: a waiter stands in a local queue before it gets in the fair one.
func (c *Client) sweep(ctx context.Context, by time.Time, name string) (swept bool) {
	for over := []any(nil); ; {
		a := c.road.Ask(ctx, by, call{Script: fairOwn, Keys: fairKeys(name), Args: append([]any{c.id + ":", lockChannel(name)}, over...)})
		if a.Err != nil || len(a.List) == 0 {
			return swept
		}
		swept, over = swept || len(over) > 0, nil
		for _, id := range a.List[1:] {
			if id, ok := id.(string); ok && !c.queues.stands(name, id) {
				over = append(over, id)
			}
		}
		if len(over) > 0 {
			continue
		}
		if head, _ := a.List[0].(string); head != "" && clientOf(head) != c.id {
			go c.background(func() { c.tell(context.WithoutCancel(ctx), name, a.List[:1], sweeping) })
		}
		return swept
	}
}

// doubt looks after the head of a queue that a refusal has named, and reports whether somebody was removed.
func (c *Client) doubt(ctx context.Context, by time.Time, name string, heads []any) bool {
	head, _ := heads[0].(string)
	return !c.queues.stands(name, head) && c.sweep(ctx, by, name)
}
