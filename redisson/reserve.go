package redisson

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// reservation is locks that were taken together. An Acquire under its context gets one of them without a question.
type reservation struct {
	c     *Client
	ctx   context.Context // of who has asked
	parts []*reserved
	over  time.Time   // when the wait is
	left  atomic.Bool // nothing is acquired any more
}

// reserved is one of them: a holder in Redis, and the hold that an Acquire makes of it.
type reserved struct {
	ho     holder
	h      hold
	at     int         // of the request
	answer answer      // to an attempt to take it alone
	over   atomic.Bool // acquired or given back
}

type reservationKey struct{ c *Client }

// Reserve takes the locks of rs together, in one round trip to each master: see [lock.Locker]. A script is for fifty of
// them, or for those of a slot where there is a map of masters. A caller that does not wait gets lock.ErrBusy if one of
// them is busy. Any other error is the cause of ctx, or says why Redis did not answer; then nothing is held.
func (c *Client) Reserve(ctx context.Context, rs []lock.Request) (context.Context, int, func(), error) {
	res := &reservation{c: c, ctx: ctx, over: time.Now().Add(forever)}
	n, err := res.take(rs, len(rs) > 0 && rs[0].Wait == 0)
	return context.WithValue(ctx, reservationKey{c}, res), n, res.leave, err
}

// take takes all locks or none, or those before the first that is not free. It returns how many requests, from the
// first one on, need not wait. An error leaves nothing.
func (res *reservation) take(rs []lock.Request, all bool) (n int, err error) {
	c, ctx, began := res.c, res.ctx, time.Now()
	if err := c.registry.begin(); err != nil {
		return 0, err
	}
	defer c.registry.end()
	if len(rs) == 0 || c.apart.Load() {
		return 0, nil
	}
	by := began.Add(c.patience(rs[0].Wait))
	res.over = began.Add(cmp.Or(max(rs[0].Wait, 0), forever))
	want, n := c.reservable(ctx, rs)
	if len(want) == 0 || all && n < len(rs) {
		return 0, nil
	}
	relied := c.askTogether(ctx, by, want, all)
	got := slices.IndexFunc(want, func(one *reserved) bool { return !one.answer.Yes() })
	switch {
	case !relied:
		got, n = 0, 0
	case got < 0:
		got = len(want)
	default:
		n = want[got].at
		if err = c.refusal(ctx, want[got], all, began); err != nil || all {
			got, n = 0, 0
		}
	}
	res.parts = want[:got]
	c.giveUp(ctx, want[got:])
	return n, err
}

// askTogether asks for all locks that are wanted, and notes the answer for each. It returns false if the answers can't
// be relied on.
func (c *Client) askTogether(ctx context.Context, by time.Time, want []*reserved, all bool) bool {
	chunks := bundle(want, func(one *reserved) (slot int, fits bool) {
		if c.topology.Mapped() { // a script goes where the first of its keys is
			slot = pubsub.Slot(one.ho.name())
		}
		return slot, true
	})
	calls := make([]call, len(chunks))
	for i, chunk := range chunks {
		calls[i] = reserveCall(chunk, all)
	}
	answers := c.askEach(ctx, by, append(calls, c.proofs(want)...))
	for i, chunk := range chunks {
		c.noteReserved(chunk, answers[i])
	}
	return c.proven(want, answers[len(chunks):])
}

// refusal is the error for the first lock that is not free: nil if an Acquire says why.
func (c *Client) refusal(ctx context.Context, one *reserved, all bool, began time.Time) error {
	switch a := one.answer; {
	case a.Err != nil && !lasting(a.Err):
		return a.Err
	case a.Err == nil && a.Values[0] == 0 && all:
		busy := &lock.BusyError{Remaining: max(0, duration(a.Values[1])), Waited: time.Since(began)}
		c.heldBy(ctx, busy, one.ho.lockID())
		return busy
	}
	return nil
}

// reservable returns a holder for each lock that can go into a common question, and the length of the part of rs that
// these are for. A lock that is re-entered is acquired as ever. The part ends where a lock is refused, or others of
// this process wait for it.
func (c *Client) reservable(ctx context.Context, rs []lock.Request) (want []*reserved, n int) {
	names := map[string]bool{}
	for i, r := range rs {
		name := c.mapName(r.Key)
		if r.Bounded() || r.Validate() != nil || c.checkSlot(name) != nil {
			return want, i
		}
		outer, err := c.ancestor(ctx, lockID{name, r.Kind.Family()}, r.Kind)
		if err != nil {
			return want, i
		}
		if outer != nil || names[name] || c.find(ctx, name, r.Kind) != nil {
			continue
		}
		names[name] = true
		waits := r.Wait != 0
		r.Wait = 0
		one := &reserved{ho: c.newHolder(name, r), at: i}
		if waits && c.queues.waits(one.ho.queueID()) {
			return want, i
		}
		want = append(want, one)
	}
	return want, len(rs)
}

// reserveCall takes all locks that are wanted or none; or else those before the first that is not free.
func reserveCall(want []*reserved, all bool) call {
	cl := call{Script: reserve, Args: []any{all, len(want)}}
	for _, one := range want {
		kind := one.ho.kind
		if handsOver(one.ho.family) {
			kind = lock.Exclusive
		}
		own := one.ho.family.enter(&one.ho, one.ho.asked)
		cl.Keys = append(cl.Keys, own.Keys...)
		cl.Args = append(append(cl.Args, kind.String(), len(own.Keys), len(own.Args)), own.Args...)
	}
	return cl
}

// noteReserved notes the answer of Redis for each lock of a chunk.
func (c *Client) noteReserved(chunk []*reserved, a answer) {
	for i, one := range chunk {
		one.answer = a
		switch {
		case a.Err != nil:
		case i < int(a.Values[1]):
			one.answer.Values = []int64{1, a.Values[4+2*i], a.Values[5+2*i]}
		default:
			one.answer.Values = a.Values[2:4]
		}
		if a.Doubts > 0 {
			c.registry.tried(&one.ho, a)
		}
	}
}

// provenKeys is for how many locks a client has to see that each is where its own name leads to, before it relies on that.
const provenKeys = 32

// proofs asks for each lock but the first by its own name, until enough are proven to be where they belong: a proxy in
// front of several servers may send a script where the first of its keys is. A map of masters is proof enough.
func (c *Client) proofs(want []*reserved) (calls []call) {
	if c.topology.Mapped() || c.located.Load() >= provenKeys {
		return nil
	}
	for _, one := range want[1:min(len(want), provenKeys)] { // all in the pipeline of the scripts
		calls = append(calls, call{Script: lockState, Keys: one.ho.keys[:], Args: []any{""}})
	}
	return calls
}

// proven counts the locks that proofs have found. Once a lock was taken somewhere else, the client asks for nothing
// together any more.
func (c *Client) proven(want []*reserved, answers []answer) bool {
	for i, a := range answers {
		switch {
		case !want[i+1].answer.Yes() || a.Err != nil:
		case a.Yes():
			c.located.Add(1)
		default:
			c.apart.Store(true)
			return false
		}
	}
	return true
}

// claim makes a hold of a lock that a reservation above ctx has for r, or returns nil.
func (c *Client) claim(ctx context.Context, name string, r lock.Request) lock.Hold {
	one := c.find(ctx, name, r.Kind)
	if one == nil || r.Bounded() || !one.over.CompareAndSwap(false, true) {
		return nil
	}
	one.h.prepare(ctx, c, &one.ho, r)
	one.ho.begin(&one.h)
	if one.h.enter(0, &one.answer) != nil { // its lease is over, or the caller has gone
		return nil
	}
	return one.h.public()
}

// find returns the lock in the reservations above ctx, and nil if they have none.
func (c *Client) find(ctx context.Context, name string, kind lock.Kind) *reserved {
	res, _ := ctx.Value(reservationKey{c}).(*reservation)
	if res == nil {
		return nil
	}
	for _, one := range res.parts {
		if !one.over.Load() && one.ho.name() == name && one.ho.kind == kind {
			return one
		}
	}
	return c.find(res.ctx, name, kind)
}

// leave gives back the locks that nobody has acquired.
func (res *reservation) leave() {
	res.left.Store(true)
	res.c.giveUp(res.ctx, slices.DeleteFunc(slices.Clone(res.parts), func(one *reserved) bool {
		return !one.over.CompareAndSwap(false, true)
	}))
}

// giveUp removes locks from Redis that were taken, or may have been, and waits for that for a moment if the caller can.
func (c *Client) giveUp(ctx context.Context, parts []*reserved) {
	var removed []<-chan struct{}
	for _, one := range parts {
		if done := c.registry.discard(&one.ho, one.answer.Yes()); done != nil {
			removed = append(removed, done)
		}
	}
	linger(ctx, removed...)
}

// Replace announces a call that is about to Acquire r with the context newest, and replaces those that were announced
// before at the key of r, by this client or others, as [lock.Locker] says. Redisson has nothing like it: its holders,
// and calls that were not announced, are not notified; the call only waits for them.
//
// A message notifies calls of other clients at once. A call that misses it, because its connection broke, learns of it
// when it next looks: after a quarter of a second while messages can't come, and a third of its watchdog's timeout
// otherwise. Redis decides which of several newcomers at the same time is the newest, and that one stays. A call that
// learns nothing while Redis does not answer goes on until it does; its lock ends as ever. If Redis has lost the
// announcements, by a failover or a FLUSHALL, the first call that looks decides: of several that would be the newest
// one stays, which may then be an older one.
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

// announce records this client in Redis as that of the newest call at a lock.
func (c *Client) announce(ctx context.Context, name string, wait time.Duration) error {
	r := c.request(name)
	cl := c.once(r, newestAnnounce, []string{newestName(name)}, c.id, millis(c.receiptLife()), newestName(name))
	a := c.road.Ask(ctx, time.Now().Add(c.patience(wait)), cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	return a.Err
}

// turn is a call that was announced. Redis knows only which client has the newest call; the client knows which of its
// calls that is.
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

// watchTurn ends t when a call of another client comes. It takes the state of the channel before it asks Redis, so that
// it misses no message. The first round leaves the question to the confirmation of the subscription, because messages
// before that are lost.
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
