package redisson

import (
	"cmp"
	"context"
	"sync"
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
	if err := c.claims.begin(); err != nil {
		return nil, nil, err
	}
	defer c.claims.end()
	if outer, _ := c.ancestor(ctx, lockID{name, r.Kind.Family()}, r.Kind); outer != nil {
		return ctx, func() {}, nil // whether it may re-enter, Acquire will tell
	}
	if err := c.announce(ctx, name, r.Wait); err != nil {
		return nil, nil, err
	}
	newest, end := context.WithCancelCause(ctx)
	t := &turn{name: name, end: end}
	if c.turns.begin(t) {
		c.background(func() { c.watchTurns(t.place) })
	}
	return newest, func() { c.turns.leave(t) }, nil
}

// announce has Redis note this client as the one that the newest call at a lock is of.
func (c *Client) announce(ctx context.Context, name string, wait time.Duration) error {
	r := c.request(name)
	cl := c.once(r, newestAnnounce, []string{newestName(name)}, c.id, millis(c.receiptLife()), newestName(name))
	a := c.road.Ask(ctx, time.Now().Add(c.patience(wait)), cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	return a.Err
}

// turns are the newest calls of this client, by the name of the lock. Redis knows only which client has the newest call; which
// call of a client that is, the client knows.
type turns struct {
	mu     sync.Mutex
	places map[string]*turnPlace
}

// turnPlace is where the newest call at one lock is. A goroutine watches it as long as there is one. The mutex of turns guards it.
type turnPlace struct {
	name   string
	newest *turn         // nil once it has left or was replaced by another client; then the place is not used again
	wake   chan struct{} // receives when newest has changed
}

// turn is a call that was announced.
type turn struct {
	name  string
	end   context.CancelCauseFunc
	place *turnPlace // set by begin
}

// begin makes t the newest call at its lock, once Redis has answered that it is announced, and ends the turn of the one before. It
// reports whether the place is a new one, which nobody watches.
func (ts *turns) begin(t *turn) (unwatched bool) {
	ts.mu.Lock()
	p := ts.places[t.name]
	if unwatched = p == nil; unwatched {
		p = &turnPlace{name: t.name, wake: make(chan struct{}, 1)}
		if ts.places == nil {
			ts.places = map[string]*turnPlace{}
		}
		ts.places[t.name] = p
	}
	older := p.newest
	p.newest, t.place = t, p
	p.wakeWatcher()
	ts.mu.Unlock()
	if older != nil {
		older.end(lock.ErrReplaced)
	}
	return unwatched
}

// leave ends t. The end of a context can run foreign code, so it comes after the mutex here and elsewhere.
func (ts *turns) leave(t *turn) {
	ts.vacate(t)
	t.end(context.Canceled)
}

// replaced ends t if it is still the newest of this client: one of another client has come.
func (ts *turns) replaced(t *turn) {
	if ts.vacate(t) {
		t.end(lock.ErrReplaced)
	}
}

// vacate gives up the place of t if t is still the newest call there, and reports whether it was.
func (ts *turns) vacate(t *turn) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t.place.newest != t {
		return false
	}
	t.place.newest = nil
	delete(ts.places, t.name)
	t.place.wakeWatcher()
	return true
}

func (ts *turns) newest(p *turnPlace) *turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return p.newest
}

func (p *turnPlace) wakeWatcher() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// watchTurns finds out when a call of another client comes to a place, until that is given up. The order of a round matters. The
// state of the channel is noted before Redis is asked, so that no message is missed. The turn is noted before that, too: the answer
// is about those only that Redis knew of when it was asked. The first round leaves it to the confirmation of the subscription to
// ask, because messages before it are lost.
func (c *Client) watchTurns(p *turnPlace) {
	messages := c.subscriber.Subscribe(newestName(p.name))
	defer messages.Close()
	for first := true; ; first = false {
		changed, live := messages.Changed()
		t := c.turns.newest(p)
		if t == nil {
			return
		}
		pause := pollInterval
		if (live || !first) && c.stillNewest(t) && live {
			pause = c.claims.timeout / 3
		}
		select {
		case <-changed:
		case <-p.wake:
		case <-time.After(pause):
		case <-c.ctx.Done():
			return
		}
	}
}

// stillNewest asks whether a call of this client is still the newest at the lock of t, and ends t if it is not. It reports whether
// Redis has said that it is.
func (c *Client) stillNewest(t *turn) bool {
	a := c.query(c.ctx, call{Script: newestLook, Keys: []string{newestName(t.name)}, Args: []any{c.id, millis(c.receiptLife())}})
	if a.Err == nil && a.Values[0] == 0 {
		c.turns.replaced(t)
	}
	return a.Yes()
}
