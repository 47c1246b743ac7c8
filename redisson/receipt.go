package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ErrPending says that Redis has not answered a change, such as a Release, and that the client goes on trying to have it
// made, for two minutes at least or until it is closed, while the caller goes on. Making the change again would make it twice.
var ErrPending = errors.New("redisson: change is pending")

// named is the common part of all objects: a name and a client.
type named struct {
	c    *Client
	name string // as given
	key  string // as mapped
}

func (c *Client) named(name string) named { return named{c: c, name: name, key: c.mapName(name)} }

// Name returns the name of the object as it was given.
func (o *named) Name() string { return o.name }

// check refuses a question that Redis must not get: with an empty name, or a number of permits that is not between
// those two.
func (o *named) check(n, least, most int64) error {
	err := o.c.checkName(o.name)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("redisson: %d permits are not between %d and %d", n, least, most)
	}
	return err
}

// await waits until try succeeds. Calls that want as many permits of one kind of object stand in one local queue; a
// smaller request passes a larger one.
func (o *named) await(ctx context.Context, kind lock.Kind, n int64, wait time.Duration, try func(by time.Time) (bool, time.Duration, error)) error {
	if err := cmp.Or(context.Cause(ctx), context.Cause(o.c.ctx)); err != nil {
		return err
	}
	w := &waiter{c: o.c, ctx: ctx, start: time.Now(), try: try}
	return w.run(queueID{name: o.key, kind: kind, permits: n}, wait)
}

// taken is the result of a TryAcquire.
func taken(err error) (bool, error) {
	return err == nil, unlessBusy(err)
}

// remove deletes the object with these keys, and reports whether there were any.
func (o *named) remove(ctx context.Context, keys ...string) (bool, error) {
	if err := o.c.checkName(o.name); err != nil {
		return false, err
	}
	return o.c.change(ctx, deleteKeys, keys)
}

// A script sets a lock to its new state, so that it may run twice. A script for data that others change too, such as a
// number of permits, must know which requests it has seen: each leaves a receipt, a key beside the data, and so do an
// acquire that is refused and a forced release. An attempt that finds the receipt of its own request changes nothing
// and answers what the receipt says; one that finds a later request's receipt was delayed on its way, and does nothing.
//
// A request has a slot of its own while it is under way. The next request in the slot replaces the receipt, so that a
// client leaves no more of them at one object than it had requests at a time, and none once their life is over. A slot of which a copy
// of the last request may still arrive is not used again: the receipt keeps the copy from running.

// receiptLife is how long a receipt lasts at least: how long a copy of a request may be on its way, and how long the
// client tries to learn what became of it.
const receiptLife = 2 * time.Minute

// request is one change to a number.
type request struct {
	slot    int
	number  int64  // grows with each request of the client, by 2^20 or so: by more than Lua loses of it
	receipt string // its key
}

// receipts gives out slots.
type receipts struct {
	mu    sync.Mutex
	last  int64
	slots int   // that there are
	free  []int // the one used last is the last
}

// request starts a change to the object of that name; conclude must be called once for it.
func (c *Client) request(name string) request {
	rs := &c.receipts
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last += 2
	r := request{slot: rs.slots, number: rs.last<<20 | int64(randomBits()>>12)}
	if last := len(rs.free) - 1; last >= 0 {
		r.slot, rs.free = rs.free[last], rs.free[:last]
	} else {
		rs.slots++
	}
	r.receipt = receiptKey(name, c.id, r.slot)
	return r
}

// undo returns the request that undoes r. As it is a later one in the slot, a copy of r that arrives after it does
// nothing.
func (r request) undo() request {
	r.number += 1 << 20
	return r
}

// conclude gives the slot of a request back, unless copies of the request may still arrive.
func (c *Client) conclude(r request, inDoubt bool) {
	if inDoubt {
		return
	}
	c.receipts.mu.Lock()
	defer c.receipts.mu.Unlock()
	c.receipts.free = append(c.receipts.free, r.slot)
}

func (c *Client) receiptLife() time.Duration { return max(receiptLife, 20*c.timeout) }

// once is the call of a script that begins with receipt.lua. Its last key is the receipt, so that a cluster refuses it for a while when one
// master has the object and another one the receipt, as the slot is on the move: the receipt would be missed, and a second one would keep
// the first from moving.
func (c *Client) once(r request, s *script, keys []string, args ...any) call {
	return call{Script: s, Keys: append(keys, r.receipt), Args: append(args, c.noted(r)...)}
}

// noted returns the arguments of a script about its receipt.
func (c *Client) noted(r request) []any { return []any{r.receipt, r.number, millis(c.receiptLife())} }

// take performs a call that takes something for its caller, who stays until by. It has undo put it back if the caller
// has gone or if no attempt got an answer. An answer is about all attempts: its receipt keeps those that are late from
// taking anything. A close waits for the call and its undo.
func (c *Client) take(ctx context.Context, by time.Time, r request, cl, undo call) answer {
	if err := c.registry.begin(); err != nil {
		c.conclude(r, false)
		return answer{Err: err}
	}
	defer c.registry.end()
	a := c.road.Ask(ctx, by, cl)
	took := a.Err == nil && a.Values[0] > 0
	if gone := cmp.Or(context.Cause(ctx), context.Cause(c.ctx)); gone != nil && took {
		a.Err, a.Doubts = gone, 1
	}
	c.conclude(r, a.Doubts > 0)
	if a.Err != nil && a.Doubts > 0 {
		c.registry.retry(undo, present().add(c.receiptLife()))
	}
	return a
}

// change runs a script of once that must have its effect even if its caller does not stay for it, and reports whether
// it had one. The first key is the object. Unless Redis refuses it, it goes on in the background, and the error matches
// ErrPending. A close waits for it. After a close there is no background: the call is on its way before the caller
// leaves, and the error of one without an answer matches ErrClosed.
func (c *Client) change(ctx context.Context, s *script, keys []string, args ...any) (bool, error) {
	r := c.request(keys[0])
	cl := c.once(r, s, keys, args...)
	closed := c.registry.begin()
	if closed == nil {
		defer c.registry.end()
	}
	ctx, cancel := c.attending(ctx)
	defer cancel()
	a := c.road.AskSoon(ctx, cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	switch {
	case a.Err == nil:
		return a.Values[0] > 0, nil
	case final(a.Err):
		return false, a.Err
	case closed != nil:
		return false, fmt.Errorf("%w: %w", closed, a.Err)
	}
	c.registry.retry(cl, present().add(c.receiptLife()))
	return false, fmt.Errorf("%w: %w", ErrPending, a.Err)
}

// maxCount is the largest whole number that Lua can count with.
const maxCount = 1 << 53

// CountDownLatch is Redisson's RCountDownLatch: waiters wait until others have counted it down to zero. It can be set
// again then.
//
// It is only a name and a client, free to make and safe for concurrent use. No count is lost or counted twice when an
// answer of Redis is lost on the way; see [ErrPending].
type CountDownLatch struct{ named }

// CountDownLatch returns the latch of that name. An empty name is refused by the latch's methods. So is, in a Redis
// Cluster, a name with braces: Redisson's channel for it is in another slot then.
func (c *Client) CountDownLatch(name string) *CountDownLatch { return &CountDownLatch{c.named(name)} }

// TrySetCount gives a latch that is at zero the count n, at least 1, and reports whether it did.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int64) (bool, error) {
	if n < 1 || n > maxCount {
		return false, fmt.Errorf("redisson: count %d of a latch is not between 1 and %d", n, int64(maxCount))
	}
	return l.change(ctx, numberSet, "1", n, 0)
}

// CountDown counts down by one; at zero all waiters are notified. A latch at zero stays there. It goes out even if ctx has
// ended; ctx bounds only the wait for the answer.
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	_, err := l.change(ctx, latchDown)
	return err
}

// Delete removes the latch, which makes its count zero, and reports whether there was one. As with Redisson, waiters are not
// notified; those of this package notice within a third of the watchdog's timeout.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) {
	return l.change(ctx, deleteKeys)
}

func (l *CountDownLatch) change(ctx context.Context, s *script, args ...any) (bool, error) {
	if err := l.check(); err != nil {
		return false, err
	}
	return l.c.change(ctx, s, []string{l.key}, append([]any{l.channel()}, args...)...)
}

// Count returns the count; 0 for a latch that was never set, and 2^53 for any larger one, which Java can set.
func (l *CountDownLatch) Count(ctx context.Context) (int64, error) {
	if err := l.check(); err != nil {
		return 0, err
	}
	n, err := l.c.number(ctx, l.name, l.key)
	return max(0, n), err
}

// Await waits until the count is zero, as long as ctx; bound it with a context's deadline. A latch that is set again at
// once was open all the same, to all whose subscription had been confirmed. The error is the cause of ctx, or says why
// Redis did not answer.
func (l *CountDownLatch) Await(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	return l.await(ctx, latchQueue, 0, -1, func(by time.Time) (bool, time.Duration, error) {
		a := l.c.road.Ask(ctx, by, call{Script: latchAwait, Keys: []string{l.key}, Args: nil})
		return a.Err == nil && a.Values[0] == 0, -1, a.Err
	})
}

func (l *CountDownLatch) channel() string { return latchChannel(l.key) }

// check refuses an empty name, and in a cluster one with a hash tag of its own: Redisson's channel for it is in another slot.
func (l *CountDownLatch) check() error { return l.c.checkName(l.name, l.channel()) }

// hearLocked has a waiter for a latch hear when that is opened: it may have been set again by the time that somebody asks.
func (l *localQueues) hearLocked(p *place) {
	if p.queue.id.kind == latchQueue && p.ear == nil {
		p.ear = l.subscriber.Receive(p.queue.channel)
	}
}

// opened reports whether a latch was opened after its waiter began to listen.
func (p *place) opened() bool {
	if p.ear == nil {
		return false
	}
	messages, _ := p.ear.Read()
	return slices.Contains(messages, "0")
}
