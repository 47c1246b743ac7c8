package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// leaveInterval is how long a failed Acquire waits until its traces are removed from Redis.
const leaveInterval = 75 * time.Millisecond

// timeToLeave is how much longer a fair queue keeps a waiter than that waits: a waiter that is there afterwards is
// dead.
const timeToLeave = time.Second

// Acquire implements [lock.Locker], for all kinds. The holds of a Fenced lock have a method Token() int64; all have
// Keep(ctx, d) error, Extend(ctx, d) error and Remaining() time.Duration. Permits are those of Redisson's expirable
// semaphore. An existing semaphore keeps its own number of permits. Otherwise one with Limit permits is made for as
// long as somebody holds a permit. The same script takes the levels, all or none, and last a permit of the Rate, which
// is Redisson's rate limiter of the key with the suffix "rate". A level that an ancestor of the call holds is
// re-entered, and the others are taken under that.
//
// An error that matches lock.ErrRefused says that Redis refuses for good; see the package's comment. An error that
// matches neither that, lock.ErrBusy, lock.ErrUnsupported nor the cause of ctx means that Redis did not get the
// question, did not answer in time, or is not ready. A caller that has no answer at all stays half a second longer than
// Wait, but no longer than [Timeout]. The lock is then not held. Traces of the question in Redis are removed in the
// background as soon as Redis answers, and end by themselves with their lease otherwise.
func (c *Client) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	return c.acquire(ctx, r, true, time.Now())
}

// acquire is Acquire for a call that began at began. The lock may be one that is not re-entrant.
func (c *Client) acquire(ctx context.Context, r lock.Request, reentrant bool, began time.Time) (lock.Hold, error) {
	name := c.mapName(r.Key)
	if res, _ := ctx.Value(reservationKey{c}).(*reservation); res != nil && r.Wait == 0 && !res.left.Load() {
		began = transport.Earlier(began, res.over) // it has used up the wait, and the time for a first answer counts from then
	}
	if err := cmp.Or(r.Validate(), c.checkSlot(name), c.checkLevels(name, r), context.Cause(ctx)); err != nil {
		return nil, err
	}
	if err := c.registry.begin(); err != nil {
		return nil, err
	}
	defer c.registry.end()
	if h := c.claim(ctx, name, r); h != nil {
		return h, nil
	}
	if len(r.Levels) > 0 {
		if h, err := c.beneath(ctx, r, began); h != nil || err != nil {
			return h, err
		}
	}
	id := lockID{name, r.Kind.Family()}
	outer, err := c.ancestor(ctx, id, r.Kind)
	switch {
	case r.Kind == lock.Permit && r.Limit == 0: // there is nothing to re-enter
		return c.contend(ctx, name, r, began)
	case err != nil:
		return nil, err
	case outer != nil && !reentrant:
		return nil, fmt.Errorf("redisson: %w: this lock is not re-entrant, and the call is under a hold of it", lock.ErrUnsupported)
	}
	for outer != nil {
		if h, err := c.reenter(ctx, outer, r, began); h != nil || err != nil {
			return h, err
		}
		if outer.Held() { // but its holder is about to be lost
			break
		}
		if outer, err = c.ancestor(ctx, id, r.Kind); err != nil {
			return nil, err
		}
	}
	h, err := c.contend(ctx, name, r, began)
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		switch {
		case busy.Rate:
			return nil, busy
		case busy.Level != "":
			id.name = c.mapName(busy.Level)
		}
		c.heldBy(ctx, busy, id)
		c.heldElsewhere(ctx, began.Add(busy.Waited+leaveInterval), busy, name, r.Kind)
	}
	return h, err
}

// heldBy notes in busy which call of this process holds the lock that the caller with ctx wants.
func (c *Client) heldBy(ctx context.Context, busy *lock.BusyError, id lockID) {
	for _, h := range c.registry.holds(id) {
		busy.HeldBy(ctx, h.Context(), h.by)
	}
}

// ancestor returns the innermost live hold of the lock above ctx, nil if there is none. The error says that it can't be
// re-entered as the kind that is wanted.
func (c *Client) ancestor(ctx context.Context, id lockID, wanted lock.Kind) (outer *hold, err error) {
	var kinds []lock.Kind
	for a := range lock.Ancestors(ctx) {
		if h := c.within(a, id.name); h != nil {
			outer = cmp.Or(outer, h)
			kinds = append(kinds, h.kind)
		}
	}
	return outer, lock.Reenter(wanted, kinds...)
}

// within returns the ancestor if it is a live hold of this client's lock of that name, or a RedLock's part that is.
func (c *Client) within(ancestor lock.Hold, name string) *hold {
	switch a := ancestor.(type) {
	case interface{ inner() *hold }:
		if h := a.inner(); h.c == c && h.holder.holdsName(name) { // it is live, as all ancestors are
			return h
		}
	case *redHold:
		if h := a.within(c, name); h != nil && h.Held() {
			return h
		}
	}
	return nil
}

// reenter adds a hold to the holder of outer. It returns nil, nil if that is not possible any more.
func (c *Client) reenter(ctx context.Context, outer *hold, r lock.Request, began time.Time) (lock.Hold, error) {
	h := new(hold)
	h.prepare(ctx, c, outer.holder, r)
	update, ok := c.registry.beginReentry(h, outer)
	if !ok {
		return nil, nil
	}
	a := c.road.Ask(ctx, began.Add(c.patience(r.Wait)), update.call)
	if err := h.enter(update.version, &a); err != nil {
		return nil, err
	}
	return h.public(), nil
}

// contend takes the lock in competition with everybody else.
func (c *Client) contend(ctx context.Context, name string, r lock.Request, began time.Time) (lock.Hold, error) {
	ho, h := new(holder), new(hold)
	*ho = c.newHolder(name, r)
	h.prepare(ctx, c, ho, r)
	ho.begin(h)
	w := &waiter{c: c, ctx: ctx, start: began, hold: h, own: ho}
	w.try = func(by time.Time) (bool, time.Duration, error) { return c.try(w, by) }
	switch r.Kind {
	case lock.Fair:
		w.rest = ho.patience / 3 // or the others would take it for dead
	case lock.Spin:
		pause := c.spin
		w.backoff = &pause
	}
	if err := w.run(ho.queueOf(0), r.Wait); err != nil {
		c.cleanUp(ctx, ho, err)
		if busy, ok := errors.AsType[*lock.BusyError](err); ok && r.Bounded() {
			full(busy, r, w.at+1)
		}
		return nil, err
	}
	if ho.nothing() {
		return newBegun(ctx, r), nil
	}
	if h.holder != ho { // the lock was handed to h; Redis may still admit ho for an earlier question
		c.registry.discard(ho, false)
	}
	return h.public(), nil
}

// newHolder returns a holder for a request that Redis has not seen yet.
func (c *Client) newHolder(name string, r lock.Request) holder {
	if r.Kind != lock.Permit { // others ignore it
		r.Limit = 0
	}
	ho := holder{id: c.nextHolder(r.Kind), keys: [1]string{name}, family: c.familyOf(r.Kind), kind: r.Kind, limit: int32(min(r.Limit, math.MaxInt32)),
		queues: r.Kind == lock.Fair && r.Wait != 0, patience: c.fairWait, asked: cmp.Or(leaseOf(r), c.registry.timeout)}
	if r.Kind == lock.Permit && r.Bounded() {
		ho.family = c.bounded(r)
	}
	if r.Wait > 0 {
		ho.patience = min(r.Wait+timeToLeave, c.fairWait)
	}
	return ho
}

// begin makes h the first hold of ho, to be admitted.
func (ho *holder) begin(h *hold) {
	ho.first[0] = h
	ho.holds = ho.first[:]
}

// leaseOf is the lease of a hold that is not renewed; 0: it is renewed.
func leaseOf(r lock.Request) time.Duration {
	if r.MaxHold > 0 {
		return min(r.Lease, r.MaxHold)
	}
	return r.Lease
}

// try asks Redis once for a holder's first hold; see waiter.
func (c *Client) try(w *waiter, by time.Time) (done bool, ttl time.Duration, err error) {
	ctx, h := w.ctx, w.hold
	if h.kind == lock.Read && c.share(w, by) {
		return true, h.holder.asked, nil
	}
	ho := h.holder
	cl := ho.family.enter(ho, ho.asked)
	if w.stands {
		cl = c.waitCall(w, cl)
	}
	a := c.road.Ask(ctx, by, cl)
	elsewhere := a.Err == nil && a.Values[0] == 0 && w.refused(a)
	if w.stands && !elsewhere {
		c.queues.stood(&w.place, a)
	}
	if a.Err == nil && len(a.List) > 0 && c.doubt(ctx, by, ho.name(), a.List) {
		doubts := a.Doubts
		a = c.road.Ask(ctx, by, ho.family.enter(ho, ho.asked))
		a.Doubts += doubts
	}
	if a.Doubts > 0 && !ho.nothing() || ho.queues && a.Err == nil && a.Values[0] == 0 {
		c.registry.tried(ho, a)
		if ho.queues {
			c.listener.stood(ho.name())
		}
	}
	switch {
	case elsewhere:
		return true, -1, errElsewhere
	case a.WrongType():
		return false, -1, c.foreign(ctx, by, ho.name(), ho.kind, a.Err)
	case a.Err != nil:
		return false, -1, a.Err
	case a.Values[0] < 0:
		return false, -1, &lock.KindError{Held: lock.Kind(a.Values[1]), Wanted: ho.kind}
	case a.Values[0] == 0:
		return false, duration(a.Values[1]), nil
	case ho.nothing():
		return true, 0, nil
	}
	return true, ho.asked, h.enter(0, &a)
}

// share makes the hold one of a holder that reads already, and reports whether that was possible.
func (c *Client) share(w *waiter, by time.Time) bool {
	h := w.hold
	t, ok := c.registry.beginSharing(h)
	if !ok {
		return false
	}
	var said *answer
	if t.call.Script != nil {
		a := c.road.Ask(w.ctx, by, t.call)
		said = &a
	}
	if ok = h.enter(t.version, said) == nil; !ok {
		h.holder = w.own
	}
	return ok
}

// enter makes h a hold by the answer of Redis, or returns why it is none. It counts the hold, even if that has ended
// already, because its end is counted too.
func (h *hold) enter(version int32, a *answer) error {
	err := h.c.registry.enter(h, version, a)
	if err == nil {
		h.c.metrics.holds(h.kind, 1)
	}
	return err
}

// cleanUp starts to remove the traces that a failed Acquire may have left in Redis, and waits for that for a moment if
// the caller can.
func (c *Client) cleanUp(ctx context.Context, ho *holder, err error) {
	removed := c.registry.discard(ho, false)
	if removed == nil || errors.Is(err, lock.ErrBusy) && !ho.queues {
		return
	}
	linger(ctx, removed)
}

// linger waits a moment for work in the background, if the caller can.
func linger(ctx context.Context, all ...<-chan struct{}) {
	moment, cancel := context.WithTimeout(ctx, leaveInterval)
	defer cancel()
	for _, done := range all {
		select {
		case <-done:
		case <-moment.Done():
		}
	}
}

// deep is how many nested holds a context asks in turn whether they have ended. A deeper hold is notified of their
// ends. The holds of a list of keys are nested in each other.
const deep = 8

// prepare makes h a hold of ho under ctx. Redis has yet to admit it.
func (h *hold) prepare(ctx context.Context, c *Client, ho *holder, r lock.Request) {
	h.c, h.holder, h.kind, h.lease, h.most, h.by, h.since = c, ho, r.Kind, leaseOf(r), r.MaxHold, r.Holder, present()
	h.ctx.of = h
	h.ctx.Begin(ctx)
	if outer, ok := ctx.(*heldContext); ok {
		if h.depth = min(outer.of.depth+1, deep); h.depth == deep {
			h.ctx.Done()
		}
	}
	h.link.Join(ctx, h.public(), h)
}

// Peek returns the result that an Acquire of r without waiting would have now: nil if it would get the lock. It is one
// question that changes nothing, so the answer may be out of date when the caller reads it. A call that would re-enter
// the Key of r asks nobody. Other levels that it would re-enter count as full.
func (c *Client) Peek(ctx context.Context, r lock.Request) error {
	name := c.mapName(r.Key)
	if err := cmp.Or(r.Validate(), c.checkSlot(name), c.checkLevels(name, r), context.Cause(ctx), context.Cause(c.ctx)); err != nil {
		return err
	}
	id := lockID{name, r.Kind.Family()}
	if outer, err := c.ancestor(ctx, id, r.Kind); outer != nil || err != nil {
		return err
	}
	if r.Kind == lock.Permit && r.Limit == 0 {
		return c.peekRate(ctx, r)
	}
	switch a := c.query(ctx, c.peekCall(name, r)); {
	case a.WrongType():
		return c.foreign(ctx, time.Now().Add(c.timeout), name, r.Kind, a.Err)
	case a.Err != nil:
		return a.Err
	case a.Values[0] < 0:
		return &lock.KindError{Held: lock.Kind(a.Values[1]), Wanted: r.Kind}
	case a.Values[0] == 0:
		busy := &lock.BusyError{Remaining: max(0, duration(a.Values[1]))}
		if r.Bounded() {
			full(busy, r, int(a.Values[len(a.Values)-1]))
			id.name = c.mapName(busy.Level)
		}
		c.heldBy(ctx, busy, id)
		return busy
	}
	return c.peekRate(ctx, r)
}

// peekRate is Peek for the rate of r, if it has one.
func (c *Client) peekRate(ctx context.Context, r lock.Request) error {
	if r.Rate.Permits == 0 {
		return nil
	}
	limiter := RateLimiter{named{c: c, name: r.Key, key: rateName(c.mapName(r.Key))}}
	n, err := limiter.AvailablePermits(ctx)
	switch {
	case err == nil && n < 1:
		return &lock.BusyError{Rate: true}
	case errors.Is(err, ErrNoRate):
		return nil
	}
	return err
}

// foreign returns the error for a key whose type the scripts of a kind can't use.
func (c *Client) foreign(ctx context.Context, by time.Time, name string, wanted lock.Kind, err error) error {
	const number, text = 1, 2
	switch a := c.road.Ask(ctx, by, call{Script: foreign, Keys: []string{name}}); {
	case a.Err == nil && a.Values[0] == number: // of all that this package makes, that is a semaphore
		return fmt.Errorf("%w: %w", &lock.KindError{Held: lock.Permit, Wanted: wanted}, err)
	case a.Err == nil && a.Values[0] == text:
		return fmt.Errorf("redisson: %w: the key holds a string, perhaps a lock of redsync, redislock or SET NX (docs/migrate): %w", lock.ErrUnsupported, err)
	}
	return fmt.Errorf("redisson: %w: the key holds no %v lock, but something of another type: %w", lock.ErrUnsupported, wanted, err)
}

// peekCall asks for the answer that the family's enter would get.
func (c *Client) peekCall(name string, r lock.Request) call {
	keys, limits := []string{name}, []any(nil)
	switch r.Kind {
	case lock.Fair:
		keys = append(keys, fairQueue(name), fairDeadlines(name))
	case lock.Permit:
		keys, limits = permitKeys(name), append(limits, r.Limit)
		for _, l := range r.Levels {
			keys, limits = append(keys, permitKeys(c.mapName(l.Key))...), append(limits, l.Limit)
		}
	}
	return call{Script: peek, Keys: keys, Args: append([]any{r.Kind.String()}, limits...)}
}
