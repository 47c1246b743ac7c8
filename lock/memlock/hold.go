package memlock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// mode is what a kind means to others who want the key.
type mode int

const (
	exclusive mode = iota
	shared
	counted
)

func modeOf(k lock.Kind) mode {
	switch k {
	case lock.Read:
		return shared
	case lock.Permit:
		return counted
	default:
		return exclusive
	}
}

// released is how a hold ended that was not lost.
var released = new(lock.LostError)

// hold is a request from its arrival on: first perhaps in a queue, then holding, then ended.
type hold struct {
	l      *Locker
	r      lock.Request
	mode   mode
	owner  lock.Owner
	ctx    context.Context
	cancel context.CancelCauseFunc

	granted chan struct{}                  // closed when a hold from the queue is granted
	ended   atomic.Pointer[lock.LostError] // nil until the end, whose first cause wins
	start   time.Time                      // of holding; set once, when granted
	token   int64                          // likewise

	// The Locker's mutex guards the rest.
	until time.Time // when the hold ends by itself; zero if it does not
	timer *time.Timer
	kept  bool // released with Keep
}

func newHold(ctx context.Context, l *Locker, r lock.Request) *hold {
	owner, ok := lock.OwnerFrom(ctx)
	if !ok {
		ctx = lock.NewOwner(ctx)
		owner, _ = lock.OwnerFrom(ctx)
	}
	h := &hold{l: l, r: r, mode: modeOf(r.Kind), owner: owner}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	return h
}

// Context implements lock.Hold.
func (h *hold) Context() context.Context { return h.ctx }

// Release implements lock.Hold. It never blocks, so it has no use for its context.
func (h *hold) Release(context.Context) error {
	if err := h.finish(); err != nil {
		return err
	}
	h.l.drop(h)
	return nil
}

// Keep is Release, except that the lock stays with the owner for another d.
func (h *hold) Keep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return h.Release(ctx)
	}
	if err := h.finish(); err != nil {
		return err
	}
	h.l.keep(h, d)
	return nil
}

// reenters reports whether o, which holds, is why h may hold too. A writer may read, but not the other way around.
func (h *hold) reenters(o *hold) bool {
	return o.owner == h.owner && (o.mode == exclusive || o.mode == h.mode)
}

// begin starts the clock of a hold that has just been granted.
func (h *hold) begin() {
	h.start = time.Now()
	switch r := h.r; {
	case r.Lease > 0 && (r.MaxHold == 0 || r.Lease <= r.MaxHold):
		h.limit(r.Lease, func() { h.lose(errLease) })
	case r.MaxHold > 0:
		h.limit(r.MaxHold, func() { h.lose(lock.ErrMaxHold) })
	}
}

// limit calls end after d, in place of any earlier limit.
func (h *hold) limit(d time.Duration, end func()) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.until = time.Now().Add(d)
	h.timer = time.AfterFunc(d, end)
}

// finish ends h for its holder, or says why it had ended before.
func (h *hold) finish() error {
	if h.close(released, context.Canceled) {
		return nil
	}
	if lost := h.ended.Load(); lost != released {
		return lost
	}
	return lock.ErrNotHeld
}

// lose ends h against the will of its holder.
func (h *hold) lose(reason error) {
	lost := &lock.LostError{Held: time.Since(h.start), Reason: reason}
	h.end(lost, lost)
}

// end closes h and then passes the lock on.
func (h *hold) end(how *lock.LostError, cause error) {
	if h.close(how, cause) {
		h.l.drop(h)
	}
}

// close ends the context of h, unless it is closed already. The lock must stay with h until then, and the mutex of the
// Locker must not be locked, as cancelling runs code of contexts that we know nothing about.
func (h *hold) close(how *lock.LostError, cause error) bool {
	if !h.ended.CompareAndSwap(nil, how) {
		return false
	}
	h.cancel(cause)
	return true
}

// fencedHold is a hold of a Fenced lock.
type fencedHold struct{ *hold }

// Token returns the number that grew with this Acquire.
func (h fencedHold) Token() int64 { return h.token }
