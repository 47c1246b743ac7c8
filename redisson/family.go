package redisson

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// family is the scripts of one sort of lock. It sees only those fields of a holder that never change.
//
// The scripts enter and update answer {1, the lease that they left, a fencing token or 0}. No script of ours shortens a
// lease that others rely on, so these answers stay true whatever arrives late or twice; the one exception says so.
type family interface {
	// enter takes the lock for a new holder, with a count of one.
	enter(ho *holder, lease time.Duration) call
	// update sets the counts of a holder that has the lock, and makes its lease at least so long.
	update(ho *holder, c counts, lease time.Duration, why change) call
	// exit takes the holder away, also out of any queue. A successor, if it is not empty, keeps the lock for a while.
	exit(ho *holder, successor string, kept time.Duration) call
}

// handsOver reports whether the locks of f can pass from one hold to the next one of the same client without being free in between: the
// holder stays in Redis, and another call has it.
func handsOver(f family) bool {
	_, ok := f.(plain)
	return ok
}

// counts are the numbers of a holder's holds: of all, and of the kinds that matter to its family.
type counts struct {
	all, reads, writes, fenced int
	added                      time.Duration // the lease of a re-entry
}

func (c *counts) add(k lock.Kind) {
	c.all++
	switch k {
	case lock.Read:
		c.reads++
	case lock.Write:
		c.writes++
	case lock.Fenced:
		c.fenced++
	}
}

// change is why counts are updated.
type change uint8

const (
	renewal    change = iota // or release of a part, or the lock passes on
	reentry                  // a writer's lease is added
	fencing                  // another fenced hold, a re-entry or the next one: the token is counted up
	shortening               // release of a part of the writing: the lease is cut
)

// familyOf returns the family that serves a kind, and nil if there is none.
func (c *Client) familyOf(k lock.Kind) family {
	switch k {
	case lock.Exclusive, lock.Fenced, lock.Spin:
		return plain{c.tokenTTL}
	case lock.Fair:
		return fair{plain{c.tokenTTL}}
	case lock.Read, lock.Write:
		return readWrite{}
	case lock.Permit:
		return onlyPermit
	}
	return nil
}

// plain is Redisson's re-entrant lock. A fenced one counts up a token with each acquire, and the waiters of a spin lock poll, as it sends no
// messages.
type plain struct {
	tokenTTL time.Duration // see FencingTokenTTL
}

func (p plain) enter(ho *holder, lease time.Duration) call {
	cl := call{Script: lockAcquire, Keys: ho.keys[:], Args: []any{ho.id, millis(lease)}}
	if ho.kind == lock.Fenced {
		cl.Keys, cl.Args = append(cl.Keys, tokenKey(ho.name())), append(cl.Args, millis(p.tokenTTL))
	}
	return cl
}

// update also keeps the counter of a fenced hold alive: the hold may last longer than counters are kept.
func (p plain) update(ho *holder, c counts, lease time.Duration, why change) call {
	cl := call{Script: lockUpdate, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), c.all}}
	if c.fenced > 0 && (why == fencing || p.tokenTTL > 0) {
		cl.Keys, cl.Args = append(cl.Keys, tokenKey(ho.name())), append(cl.Args, millis(p.tokenTTL), why == fencing)
	}
	return cl
}

func (plain) exit(ho *holder, successor string, kept time.Duration) call {
	cl := call{Script: lockRelease, Keys: ho.keys[:], Args: []any{ho.id, ho.queueID().channel(), successor, millis(kept)}}
	if ho.kind != lock.Spin {
		cl.Keys, cl.Spare = append(cl.Keys, wakeName(ho.name())), 1
	}
	return cl
}

// duration converts a number of milliseconds from Redis. A number too great for a Duration becomes the longest one.
func duration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// millis is a time as an argument. It rounds up, so that a lease in Redis is never shorter than the one counted here.
func millis(d time.Duration) any {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return int64(ms)
}

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

// stands reports whether id is the holder of a call that waits for the fair lock.
func (l *localQueues) stands(name, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := queueID{name: name, kind: lock.Fair, alone: id}
	return l.byID[own] != nil || l.asking[own]
}

// sweepAll removes this client's waiters that wait no more from all queues that it remembers.
func (c *Client) sweepAll() {
	for _, name := range c.listener.remembered() {
		c.sweep(c.ctx, time.Now().Add(c.timeout), name)
	}
}

// sweep removes waiters of this client that wait no more from the queue of a fair lock, and reports whether there were
// any. If the lock is free and has another client's waiter at its head, the script notifies that client, which does the
// same. A waiter of this client that stands there, and is not among those who wait when the answer comes, is over: a
// waiter stands in a local queue before it gets in the fair one.
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
