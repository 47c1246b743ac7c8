package redisson

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Replace announces a call that is about to Acquire r with the context turn, and replaces those that were announced before at
// the key of r, by this client or others, as [lock.Locker] says. Redisson has nothing like it: its holders, and calls that were not
// announced, are not told and only waited for.
//
// Calls of other clients are told by a message, at once. One that misses it, because its connection broke, is told when
// it next looks: after a quarter of a second while messages can't be had, and a third of its watchdog's timeout otherwise. Of
// newcomers at the same time, Redis says which is the newest, and one of them stays. A call that learns nothing while Redis does not
// answer goes on until it does; its lock ends as ever. What Redis has lost, by a failover or a FLUSHALL, is
// settled by who looks first: of several that would be the newest one stays, which may then be an older one.
//
// Replace costs one command before the lock is asked for, and one or two in the background. It stays for the answer as long as an
// Acquire of r. Without one, it returns the error of an outage, and the announcement may still come to pass.
func (c *Client) Replace(ctx context.Context, r lock.Request) (newest context.Context, leave func(), err error) {
	name := c.mapName(r.Key)
	if err := cmp.Or(r.Validate(), c.checkSlot(name), context.Cause(ctx)); err != nil {
		return nil, nil, err
	}
	if err := c.registry.begin(); err != nil {
		return nil, nil, err
	}
	defer c.registry.end()
	if outer, _ := c.ancestor(ctx, lockID{name, r.Kind.Family()}, r.Kind); outer != nil {
		return ctx, func() {}, nil // whether it may re-enter, Acquire will tell
	}
	if err := c.announce(ctx, name, r.Wait); err != nil {
		return nil, nil, err
	}
	t := &turn{name: name}
	t.ctx, t.end = context.WithCancelCause(ctx)
	if older, ok := c.turns.Swap(name, t); ok {
		older.(*turn).end(lock.ErrReplaced)
	}
	c.background(func() { c.watchTurn(t) })
	return t.ctx, func() { c.endTurn(t, context.Canceled) }, nil
}

// announce has Redis note this client as the one that the newest call at a lock is of.
func (c *Client) announce(ctx context.Context, name string, wait time.Duration) error {
	r := c.request(name)
	cl := c.once(r, newestAnnounce, []string{newestName(name)}, c.id, millis(c.receiptLife()), newestName(name))
	a := c.road.Ask(ctx, time.Now().Add(c.patience(wait)), cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	return a.Err
}

// turn is a call that was announced. Redis knows only which client has the newest call; which call of a client that is, the client knows.
type turn struct {
	name string
	ctx  context.Context
	end  context.CancelCauseFunc
}

// endTurn ends t, unless it has ended.
func (c *Client) endTurn(t *turn, why error) {
	c.turns.CompareAndDelete(t.name, t)
	t.end(why)
}

// watchTurn ends t when a call of another client comes. The state of the channel is noted before Redis is asked, so that no message is missed.
// The first round leaves it to the confirmation of the subscription to ask, because messages before it are lost.
func (c *Client) watchTurn(t *turn) {
	messages := c.subscriber.Subscribe(newestName(t.name))
	defer messages.Close()
	for first := true; ; first = false {
		changed, live := messages.Changed()
		pause := pollInterval
		if (live || !first) && c.stillNewest(t) && live {
			pause = c.registry.timeout / 3
		}
		select {
		case <-changed:
		case <-t.ctx.Done():
			return
		case <-time.After(pause):
		case <-c.ctx.Done():
			return
		}
	}
}

// stillNewest asks whether a call of this client is still the newest at the lock of t, and ends t if it is not. It reports whether
// Redis has said that it is.
func (c *Client) stillNewest(t *turn) bool {
	a := c.query(t.ctx, call{Script: newestLook, Keys: []string{newestName(t.name)}, Args: []any{c.id, millis(c.receiptLife())}})
	if a.Err == nil && a.Values[0] == 0 {
		c.endTurn(t, lock.ErrReplaced)
	}
	return a.Yes()
}
