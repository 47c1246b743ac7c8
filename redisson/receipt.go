package redisson

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/reply"
	"github.com/redis/go-redis/v9"
)

// ErrPending says that Redis has not answered a change, such as a Release, and that the client goes on trying to have it
// made, for two minutes at least, while the caller goes on. Making the change again would make it twice.
var ErrPending = errors.New("redisson: change is pending")

// A lock is set to what it should be, so that a script may run twice. A number that others change too has to be added to,
// and so must know which requests it has seen: each but a refused acquire leaves a receipt, a key beside the number. An
// attempt that finds the receipt of its own request changes nothing and answers what the receipt says; one that finds a
// later request's receipt was delayed on its way, and does nothing.
//
// A request has a slot of its own while it is under way. The next request in the slot replaces the receipt, so that a
// client leaves no more of them at one object than it had requests at a time, and none once their life is over.

//go:embed receipt.lua
var receiptSource string

// receiptLife is how long a receipt lasts at least: how long a copy of a request may be on its way, and how long the
// client tries to learn what became of it.
const receiptLife = 2 * time.Minute

// request is one change to a number.
type request struct {
	slot   int
	number int64  // grows with each request of the client
	key    string // of the receipt
}

// receipts gives out slots.
type receipts struct {
	mu    sync.Mutex
	last  int64
	slots []slot
}

type slot struct {
	taken bool
	rests time.Time // until then, a copy of its last request may still arrive
}

// request starts a change to the object of that name; conclude must be called once for it.
func (c *Client) request(name string) request {
	r := c.receipts.next()
	r.key = receiptKey(name, c.id, r.slot)
	return r
}

func (rs *receipts) next() request {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.last++
	now := time.Now()
	for i := range rs.slots {
		if s := &rs.slots[i]; !s.taken && !now.Before(s.rests) {
			s.taken = true
			return request{slot: i, number: rs.last}
		}
	}
	rs.slots = append(rs.slots, slot{taken: true})
	return request{slot: len(rs.slots) - 1, number: rs.last}
}

// conclude gives the slot of a request back. If copies of it may still be on their way, that is not before the receipt's
// life is over: the receipt keeps them from running.
func (c *Client) conclude(r request, inDoubt bool) {
	c.receipts.mu.Lock()
	defer c.receipts.mu.Unlock()
	s := slot{}
	if inDoubt {
		s.rests = time.Now().Add(c.receiptLife())
	}
	c.receipts.slots[r.slot] = s
}

func (c *Client) receiptLife() time.Duration { return max(receiptLife, 20*c.timeout) }

// once is the call of a script that begins with receipt.lua.
func (c *Client) once(r request, s script, keys []string, args ...any) call {
	return call{s, append(keys, r.key), append(args, r.number, millis(c.receiptLife()))}
}

// take performs a call that takes something for its caller, and has undo put it back if the caller does not stay for it or
// if it is not known what became of it.
func (c *Client) take(ctx context.Context, r request, cl, undo call) answer {
	a := c.ask(ctx, cl, func(a answer) {
		if a.inDoubt || a.took() {
			c.insist(r, undo)
			return
		}
		c.conclude(r, false)
	})
	if a.late {
		return a
	}
	gone := firstCause(ctx, c.ctx)
	switch {
	case a.took() && gone == nil:
		c.conclude(r, a.inDoubt)
		return a
	case a.took():
		a.err = gone
	case !a.inDoubt:
		c.conclude(r, false)
		return a
	}
	c.start(func() { c.insist(r, undo) })
	return a
}

// took tells whether a call that takes something is known to have done so.
func (a answer) took() bool { return a.err == nil && a.values[0] != 0 }

// change performs a call that is to have its effect even if its caller does not stay for it. Unless Redis refuses it, it
// goes on in the background, and the error matches ErrPending.
func (c *Client) change(ctx context.Context, r request, cl call) (answer, error) {
	a := c.ask(ctx, cl, func(a answer) {
		if !c.settled(r, a) {
			c.insist(r, cl)
		}
	})
	if !a.late {
		if c.settled(r, a) {
			return a, a.err
		}
		c.start(func() { c.insist(r, cl) })
	}
	return a, fmt.Errorf("%w: %w", ErrPending, a.err)
}

// settled concludes the request of a change that Redis has answered.
func (c *Client) settled(r request, a answer) bool {
	if a.err != nil && !final(a.err) {
		return false
	}
	c.conclude(r, a.inDoubt)
	return true
}

// insist repeats a call until Redis answers it, for as long as its request has a receipt. After Close it is tried twice.
func (c *Client) insist(r request, cl call) {
	defer c.conclude(r, true)
	end := time.Now().Add(c.receiptLife())
	pause := pollInterval
	for last := false; !c.answered(cl) && !last; {
		last = !sleep(c.ctx, pause) || time.Now().After(end)
		pause = min(2*pause, time.Second)
	}
}

func (c *Client) answered(cl call) bool {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	a := c.perform(ctx, cl)
	return a.err == nil || final(a.err)
}

// final tells whether a call that failed with err would fail again, as far as time goes. Memory may become free.
func final(err error) bool {
	return reply.IsReply(err) && !reply.Transient(err) && !redis.HasErrorPrefix(err, "OOM") || errors.Is(err, redis.ErrClosed)
}
