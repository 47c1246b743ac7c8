package memlock

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/lazyctx"
	"github.com/latchkey-go/latchkey/lock"
)

// givenBack is the end of a hold that was not lost, or whose holder already knows of the loss.
var givenBack = new(lock.LostError)

// hold is a request from its arrival on: first perhaps in line, then holding, then ended.
type hold struct {
	l   *Locker
	r   lock.Request
	ctx holdContext

	ended atomic.Pointer[lock.LostError] // nil until the end, whose first cause wins
	start time.Duration                  // of holding, by the clock; set once, when granted
	token int64                          // likewise

	// The Locker's mutex guards the rest.
	kept   bool          // released with Keep
	reason error         // why it ends by itself
	first  claim         // to the key of r, unless there is no limit: then nothing is held
	levels []claim       // to those of r
	until  time.Duration // when the hold ends by itself, by the clock; 0 if it does not
	timer  *time.Timer
}

// holdContext is the context of a hold.
type holdContext struct {
	lazyctx.Context
	link lock.Link
}

// Value implements [context.Context].
func (c *holdContext) Value(key any) any {
	if link := c.link.Value(key); link != nil {
		return link
	}
	return c.Context.Value(key)
}

// request returns a hold with the claims of r, and without a context.
func (l *Locker) request(r lock.Request) *hold {
	h := &hold{l: l, r: r}
	if r.Kind != lock.Permit || r.Limit > 0 {
		h.first.Level, h.first.of = lock.Level{Key: r.Key, Limit: r.Limit}, h
	}
	for _, level := range r.Levels {
		h.levels = append(h.levels, claim{Level: level, of: h})
	}
	return h
}

// claims yields the claims of h.
func (h *hold) claims(yield func(*claim) bool) {
	if h.first.of == nil || !yield(&h.first) {
		return
	}
	for i := range h.levels {
		if !yield(&h.levels[i]) {
			return
		}
	}
}

// claim returns that of h to key, or nil if there is none.
func (h *hold) claim(key string) *claim {
	for c := range h.claims {
		if c.Key == key {
			return c
		}
	}
	return nil
}

// counts reports whether h takes from a rate. A re-entry does not.
func (h *hold) counts() bool { return h.r.Rate != lock.Rate{} && h.first.stay == nil }

// public is the hold that the caller of Acquire gets.
func (h *hold) public() lock.Hold {
	if h.r.Kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

// private undoes public.
func (h *hold) private() *hold { return h }

// Held reports whether h, once granted, is neither released nor lost.
func (h *hold) Held() bool { return h.ended.Load() == nil }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return &h.ctx }

// Release implements [lock.Hold]. It never blocks, so it has no use for its context.
func (h *hold) Release(context.Context) error {
	if err := h.finish(); err != nil {
		return err
	}
	h.l.drop(h)
	return nil
}

// Keep is Release, but strangers find the lock held for another d.
func (h *hold) Keep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return h.Release(ctx)
	}
	if err := h.finish(); err != nil {
		return err
	}
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	h.kept = true
	h.endAt(later(clock.Now(), d), func() { h.l.drop(h) })
	return nil
}

// Extend lets the hold go on for d from now, if it would end earlier, but not beyond its MaxHold.
func (h *hold) Extend(_ context.Context, d time.Duration) error {
	if over := h.l.extend(h, d); over != nil {
		h.lose(over)
	}
	switch lost := h.ended.Load(); lost {
	case nil:
		return nil
	case givenBack:
		return lock.ErrNotHeld
	default:
		return lost
	}
}

// Remaining returns how long the hold goes on by itself: 0 once it has ended, and the longest Duration if it has no end.
func (h *hold) Remaining() time.Duration {
	var until time.Duration
	if h.r.Lease > 0 || h.r.MaxHold > 0 {
		h.l.mu.Lock()
		until = h.until
		h.l.mu.Unlock()
	}
	switch {
	case !h.Held():
		return 0
	case until == 0:
		return math.MaxInt64
	}
	return max(until-clock.Now(), 0)
}

// begin starts the clock of a hold that has just been granted.
func (h *hold) begin() {
	h.start = clock.Now()
	var end time.Duration
	if h.r.Lease > 0 {
		end = later(h.start, h.r.Lease)
	}
	h.limit(end)
}

// Since implements [clock.Timed].
func (h *hold) Since() clock.Instant { return clock.Instant(h.start) }

// later is d after t, or as late as can be.
func later(t, d time.Duration) time.Duration {
	if d > 0 && t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

// limit lets h end by itself at end, or at its MaxHold if that comes first. An end of 0 is never.
func (h *hold) limit(end time.Duration) {
	reason := errLease
	if last := later(h.start, h.r.MaxHold); h.r.MaxHold > 0 && (end == 0 || last < end) {
		end, reason = last, lock.ErrMaxHold
	}
	if h.reason = reason; end != 0 {
		h.endAt(end, func() { h.lose(reason) })
	}
}

// endAt calls end at until, in place of anything that was to be called before.
func (h *hold) endAt(until time.Duration, end func()) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.until = until
	h.timer = time.AfterFunc(until-clock.Now(), end)
}

// finish ends h for its holder. If it had ended before, it is gone when finish says why.
func (h *hold) finish() error {
	if h.close(givenBack, nil) {
		return nil
	}
	if lost := h.ended.Load(); lost != givenBack && h.ended.CompareAndSwap(lost, givenBack) {
		h.ctx.End(lost) // who ends h may not have come as far
		h.l.drop(h)
		return lost
	}
	return lock.ErrNotHeld
}

// lose ends h against the will of its holder, and then passes the lock on.
func (h *hold) lose(reason error) {
	lost := &lock.LostError{Held: clock.Now() - h.start, Reason: reason}
	if h.close(lost, lost) {
		h.l.drop(h)
	}
}

// close ends the context of h, unless it is closed already. The lock must stay with h until then, and the mutex of the
// Locker must not be locked, as cancelling runs code of contexts that we know nothing about.
func (h *hold) close(how *lock.LostError, cause error) bool {
	if !h.ended.CompareAndSwap(nil, how) {
		return false
	}
	h.ctx.End(cause)
	return true
}

// fencedHold is a hold of a Fenced lock.
type fencedHold struct{ *hold }

// Token returns the number that grew with this Acquire.
func (h fencedHold) Token() int64 { return h.token }
