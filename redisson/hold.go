package redisson

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// holdKey finds in a context the innermost hold of a lock, also one that has ended.
type holdKey struct {
	c    *Client
	name string
	kind lock.Kind
}

// open makes the context of a hold that is about to be admitted.
func (h *hold) open(ctx context.Context) {
	ctx = context.WithValue(ctx, holdKey{h.c, h.holder.name, h.kind}, h)
	h.ctx, h.cancel = context.WithCancelCause(lock.WithHold(ctx, h.public(), h.live))
}

// public is h as its owner sees it.
func (h *hold) public() lock.Hold {
	if h.kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

func (h *hold) inner() *hold { return h }

func (h *hold) live() bool { return h.c.claims.live(h) }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return h.ctx }

// Release implements [lock.Hold]. The script goes out even if ctx has ended; ctx bounds only the wait for its answer, and so
// does the client's timeout. When the answer is an error, the watchdog goes on trying to remove the lock until its lease ends.
func (h *hold) Release(ctx context.Context) error { return h.release(ctx, 0) }

// Keep is Release, except that nobody gets the lock for another d: for work that is done once an interval. A d of 0 or less is
// Release. If the hold is a re-entry, the time counts from now, too, but the outer hold goes on.
func (h *hold) Keep(ctx context.Context, d time.Duration) error { return h.release(ctx, max(d, 0)) }

func (h *hold) release(ctx context.Context, kept time.Duration) error {
	d, lost := h.c.claims.beginRelease(h, kept)
	if d.call.script == nil {
		return lost
	}
	return cmp.Or(lost, h.c.claims.endRelease(h, d, h.c.road.askSoon(ctx, d.call)))
}
