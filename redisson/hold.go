package redisson

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/lazyctx"
	"github.com/latchkey-go/latchkey/lock"
)

// hold is one successful Acquire.
type hold struct {
	// These are set before anybody else knows of the hold; holder is set anew when a lock passes to it.
	c      *Client
	holder *holder
	most   time.Duration // MaxHold; 0 sets no bound
	ctx    heldContext
	link   lock.Link
	kind   lock.Kind
	depth  int8   // how many holds are directly above it, up to deep
	by     string // Request.Holder
	around *hold  // a re-entry that ends with it, of one of its levels; nil for most

	// The mutex of the registry guards the rest; since and token don't change once the hold is admitted.
	state holdState
	since instant         // of its admission; before that, of its request
	token int64           // of a fenced lock
	lease time.Duration   // 0: renewed
	ends  instant         // for the work, by its own lease or MaxHold; zero: never
	over  instant         // the same for Redis, later by the margin; while joining, as far as is known
	loss  *lock.LostError // nil if it was not lost
}

type holdState uint8

const (
	joining holdState = iota // not answered by Redis yet
	held
	lost
	released // or only kept
)

// lastFor gives the hold d from the time of the question to Redis, but no more than MaxHold in all.
func (h *hold) lastFor(d time.Duration, asked instant) {
	h.ends, h.over = max(h.ends, asked.add(goodFor(d))), max(h.over, asked.add(d))
	if h.most > 0 && (h.most < d || asked > h.since) {
		h.ends, h.over = min(h.ends, h.since.add(goodFor(h.most))), min(h.over, h.since.add(h.most))
	}
}

// lapse returns why the hold has ended when its own time is over.
func (h *hold) lapse() error {
	if h.most > 0 && h.over == h.since.add(h.most) {
		return lock.ErrMaxHold
	}
	return errLease
}

func (h *hold) lostError(now instant, reason error) *lock.LostError {
	return &lock.LostError{Held: now.sub(h.since), Reason: reason}
}

// holdOf finds in a context the innermost hold of a lock, also one that has ended.
type holdOf struct{ *Lock }

// heldContext is the context of a hold's work.
type heldContext struct {
	lazyctx.Context
	of *hold
}

// Value implements [context.Context].
func (c *heldContext) Value(key any) any {
	h := c.of
	if l, ok := key.(holdOf); ok && l.c == h.c && l.key == h.holder.name() && l.kind == h.kind {
		return h
	}
	if v := h.link.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// ended returns why the context of h has ended, or nil. It is foreign code.
func (h *hold) ended() error {
	if h.ctx.Err() == nil {
		return nil
	}
	return context.Cause(&h.ctx)
}

// public is h as its owner sees it.
func (h *hold) public() lock.Hold {
	if h.kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

func (h *hold) inner() *hold { return h }

// Held is for the chain of contexts.
func (h *hold) Held() bool { return h.Remaining() > 0 }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return &h.ctx }

// Release implements [lock.Hold]. The script goes out even if ctx has ended; ctx bounds only the wait for its answer, and so
// does the client's timeout. When the answer is an error, the watchdog goes on trying to remove the lock until its lease ends, unless it
// has passed to another call.
func (h *hold) Release(ctx context.Context) error { return h.release(ctx, 0) }

// Keep is Release, except that nobody gets the lock for another d: for work that is done once an interval. A d of 0 or less is
// Release. If the hold is a re-entry, the time counts from now, too, but the outer hold goes on.
func (h *hold) Keep(ctx context.Context, d time.Duration) error { return h.release(ctx, max(d, 0)) }

func (h *hold) release(ctx context.Context, kept time.Duration) error {
	if h.around == nil {
		return h.releaseAlone(ctx, kept)
	}
	other := make(chan error, 1)
	go func() { other <- h.around.release(ctx, kept) }()
	return cmp.Or(h.releaseAlone(ctx, kept), <-other)
}

func (h *hold) releaseAlone(ctx context.Context, kept time.Duration) error {
	t, err := h.depart(kept)
	if t.call.Script != nil {
		ctx, cancel := h.c.attending(ctx)
		defer cancel()
		err = cmp.Or(err, h.end(t, h.c.road.AskSoon(ctx, t.call)))
	}
	return err
}

// depart begins a release. If the lock can pass to a waiter, it does so with the answer. The method end must follow,
// unless the task has no script because there is nothing to ask. The error says why the hold was lost.
func (h *hold) depart(kept time.Duration) (t task, lost error) {
	c := h.c
	var to *place
	var next *hold
	some := false
	if kept == 0 && handsOver(h.holder.family) {
		if to, some = c.queues.offer(h); to != nil {
			next = to.hold
		}
	}
	t, lost = c.registry.beginRelease(h, kept, next)
	switch {
	case lost != nil:
		c.queues.resume(h)
	case t.free && some: // until it is known whether anybody else was notified
		c.queues.rest(h)
	}
	switch {
	case t.next != nil:
		t.to = to
	case to != nil:
		c.queues.retract(to)
	}
	return t, lost
}

// end applies the answer of Redis to the release t.
func (h *hold) end(t task, a answer) error {
	c := h.c
	err := c.registry.endRelease(h, t, a)
	switch {
	case t.to == nil:
	case a.Yes():
		granted := a // only this one outlives the release
		if here := c.queues.give(t.to, grant{&granted, t.version}); !here {
			c.registry.abandon(t.next)
		}
	default: // Redis has not answered, or would not let the lock pass
		c.registry.abandon(t.next)
		c.queues.give(t.to, grant{})
	}
	switch {
	case t.whole && !t.free: // it is kept, or its family does not pass on
		c.queues.resume(h)
	case t.free:
		notified := int64(-1)
		if a.Yes() && !c.topology.Cluster() { // there, each node knows of its own subscribers only
			notified = a.Values[1]
		}
		c.queues.released(h, notified, max(t.pace, time.Since(a.Sent)))
	}
	if h.loss == nil { // or the loss was counted when the hold ended
		c.metrics.lost(err)
	}
	return err
}

// Extend gives a hold with a lease of its own another d from now on, if it would end sooner. A hold that is renewed has
// no need of it; MaxHold stays. The errors are those of Release.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return fmt.Errorf("redisson: a hold can't be extended by %v: want at least 1ms", d)
	}
	update, err := h.c.registry.beginExtension(h, d)
	if err != nil {
		return err
	}
	return h.c.registry.endExtension(h, d, update, h.c.road.AskSoon(ctx, update.call))
}

// Remaining returns how long the hold is still good if it is not renewed, and 0 once it has ended. It does not ask Redis.
func (h *hold) Remaining() time.Duration { return h.c.registry.remaining(h) }
