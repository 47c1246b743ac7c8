package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
)

// ErrPending says that Redis has not answered a change, such as a Release, and that the client goes on trying to have it
// made, for two minutes at least or until it is closed, while the caller goes on. Making the change again would make it twice.
var ErrPending = errors.New("redisson: change is pending")

// A lock is set to what it should be, so that a script may run twice. What others change too, such as a number of permits,
// must know which requests it has seen: each leaves a receipt, a key beside it, and so do an acquire that is refused and a forced
// release. An attempt that finds the receipt of its own request changes nothing and answers what the receipt says; one that finds a later
// request's receipt was delayed on its way, and does nothing.
//
// A request has a slot of its own while it is under way. The next request in the slot replaces the receipt, so that a
// client leaves no more of them at one object than it had requests at a time, and none once their life is over.

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
	// resting are those at which a copy of the last request may still arrive, in the order in which that ends. After an outage they can be
	// very many.
	resting []restingSlot
}

type restingSlot struct {
	slot  int
	until time.Time
}

// request starts a change to the object of that name; conclude must be called once for it.
func (c *Client) request(name string) request {
	r := c.receipts.next()
	r.receipt = receiptKey(name, c.id, r.slot)
	return r
}

func (rs *receipts) next() request {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last++
	number := rs.last<<20 | int64(randomBits()>>12)
	rs.wakeLocked(time.Now())
	if last := len(rs.free) - 1; last >= 0 {
		slot := rs.free[last]
		rs.free = rs.free[:last]
		return request{slot: slot, number: number}
	}
	rs.slots++
	return request{slot: rs.slots - 1, number: number}
}

// wakeLocked frees the slots that have rested.
func (rs *receipts) wakeLocked(now time.Time) {
	for len(rs.resting) > 0 && !now.Before(rs.resting[0].until) {
		rs.free = append(rs.free, rs.resting[0].slot)
		rs.resting = rs.resting[1:]
	}
}

// conclude gives the slot of a request back. If copies of the request may still arrive, the slot rests until the receipt's life is
// over: the receipt keeps them from running.
func (c *Client) conclude(r request, inDoubt bool) {
	var rest time.Duration
	if inDoubt {
		rest = 2 * c.receiptLife() // the client tries to learn what became of it for the first half
	}
	c.receipts.giveBack(r.slot, rest)
}

// giveBack lets a slot rest, for 0 or as long as all that rest.
func (rs *receipts) giveBack(slot int, rest time.Duration) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rest > 0 {
		rs.resting = append(rs.resting, restingSlot{slot, time.Now().Add(rest)})
	} else {
		rs.free = append(rs.free, slot)
	}
}

func (c *Client) receiptLife() time.Duration { return max(receiptLife, 20*c.timeout) }

// once is the call of a script that begins with receipt.lua. Its last key is the receipt, so that a cluster refuses it for a while when one
// master has the object and another one the receipt, as the slot is on the move: the receipt would be missed, and a second one would keep
// the first from moving.
func (c *Client) once(r request, s *script, keys []string, args ...any) call {
	return call{Script: s, Keys: append(keys, r.receipt), Args: append(args, c.noted(r)...)}
}

// noted is what a script is told of its receipt.
func (c *Client) noted(r request) []any { return []any{r.receipt, r.number, millis(c.receiptLife())} }

// take performs a call that takes something for its caller, who stays until by, and has undo put it back if the caller has gone
// or if no attempt was answered. An answer is about all attempts: its receipt keeps those that are late from taking anything. A close
// waits for it and for what it has to undo.
func (c *Client) take(ctx context.Context, by time.Time, r request, cl, undo call) answer {
	if err := c.claims.begin(); err != nil {
		c.conclude(r, false)
		return answer{Err: err}
	}
	defer c.claims.end()
	a := c.road.Ask(ctx, by, cl)
	took := a.Err == nil && a.Values[0] > 0
	if gone := cmp.Or(context.Cause(ctx), context.Cause(c.ctx)); gone != nil && took {
		a.Err, a.Doubts = gone, 1
	}
	c.conclude(r, a.Doubts > 0)
	if a.Err != nil && a.Doubts > 0 {
		c.claims.retry(undo, present().add(c.receiptLife()))
	}
	return a
}

// change runs a script of once that is to have its effect even if its caller does not stay for it. The first key is the object. Unless Redis refuses it, it
// goes on in the background, and the error matches ErrPending. A close waits for it. After one there is no background: the call is on its
// way before the caller leaves, and the error of one that is not answered matches ErrClosed.
func (c *Client) change(ctx context.Context, s *script, keys []string, args ...any) (answer, error) {
	r := c.request(keys[0])
	cl := c.once(r, s, keys, args...)
	closed := c.claims.begin()
	if closed == nil {
		defer c.claims.end()
	}
	ctx, cancel := c.attending(ctx)
	defer cancel()
	a := c.road.AskSoon(ctx, cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	switch {
	case a.Err == nil || final(a.Err):
		return a, a.Err
	case closed != nil:
		return a, fmt.Errorf("%w: %w", closed, a.Err)
	}
	c.claims.retry(cl, present().add(c.receiptLife()))
	return a, fmt.Errorf("%w: %w", ErrPending, a.Err)
}

// remove deletes the keys of the object of that name, and reports whether there were any.
func (c *Client) remove(ctx context.Context, name string, keys ...string) (bool, error) {
	if err := c.checkName(name); err != nil {
		return false, err
	}
	a, err := c.change(ctx, deleteKeys, keys)
	return err == nil && a.Values[0] > 0, err
}

// final reports whether a call that failed with err would fail again, as far as time goes. A shortage may end.
func final(err error) bool {
	return lasting(err) && !reply.Classify(err).Passes
}
