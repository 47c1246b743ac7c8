package leases

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

var (
	errLease  = errors.New("leases: the lease ended")
	errGone   = errors.New("leases: the lock service does not have it anymore")
	errUnsure = errors.New("leases: it could not be renewed in time")
)

type holdState int

const (
	live     holdState = iota
	kept               // released with Keep, and still in the way of strangers
	lost               // and not released yet
	released           // whatever was before
)

// hold is one successful Acquire. Its Locker's mutex guards what is marked so.
type hold struct {
	l      *Locker
	stay   *stay
	r      lock.Request
	ctx    context.Context
	cancel context.CancelCauseFunc
	start  time.Time

	// guarded
	state  holdState
	full   time.Time // when it needs the entry no longer; zero if it does not end by itself
	end    time.Time // when it ends: full less a margin, but for what is kept
	reason error     // for that end
	how    *lock.LostError
}

// newHold makes a hold that is nobody's yet. It runs code of the caller's context, so the mutex must not be locked.
func (l *Locker) newHold(ctx context.Context, r lock.Request) *hold {
	h := &hold{l: l, r: r}
	ctx, h.cancel = context.WithCancelCause(ctx)
	h.ctx = lock.WithHold(ctx, h.public(), h.held)
	return h
}

// public is what the caller of Acquire gets.
func (h *hold) public() lock.Hold {
	if h.r.Kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

// own undoes public.
func (h *hold) own() *hold { return h }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return h.ctx }

// held reports whether h is neither released nor lost, whether or not anybody has noticed.
func (h *hold) held() bool {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	return h.liveLocked(time.Now())
}

func (h *hold) liveLocked(now time.Time) bool {
	return h.state == live && now.Before(h.stay.until) && (h.end.IsZero() || now.Before(h.end))
}

// Release implements [lock.Hold].
func (h *hold) Release(ctx context.Context) error {
	how, err := h.finish(released, 0)
	if err != nil {
		return err
	}
	h.cancel(context.Canceled)
	return h.stay.leave(ctx, how)
}

// Keep is Release, but strangers find the lock held for another d.
func (h *hold) Keep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return h.Release(ctx)
	}
	d = min(max(d, time.Millisecond), longest)
	then, err := h.finish(kept, d)
	if err != nil {
		return err
	}
	h.cancel(context.Canceled)
	if then == toKeep {
		return h.stay.keep(ctx, d)
	}
	return h.stay.extend(ctx, d)
}

// finish ends h for its holder, who keeps it for d if it is to be kept, or says why it had ended before.
func (h *hold) finish(state holdState, d time.Duration) (after, error) {
	s := h.stay
	s.tick() // what is over by the clock is lost, also if nobody has noticed yet
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	switch h.state {
	case lost:
		h.state = released
		return nothing, h.how
	case kept, released:
		return nothing, lock.ErrNotHeld
	}
	h.state = state
	if state == kept {
		h.full = time.Now().Add(d)
		h.end = h.full
		s.armLocked()
		if !s.workedUnderLocked() {
			return toKeep, nil
		}
		return nothing, nil
	}
	return s.dropLocked(h), nil
}

// Extend lets the hold go on for d from now, if it would end earlier, but not beyond its MaxHold.
func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	d = min(max(d, time.Millisecond), longest)
	h.stay.tick()
	if err := h.ended(); err != nil {
		return err
	}
	asked := time.Now()
	if err := h.stay.extend(ctx, h.bound(asked, d)); err != nil {
		if errors.Is(err, lock.ErrLost) { // this hold's own words
			return errors.Join(h.ended())
		}
		return err
	}
	h.l.mu.Lock()
	if h.liveLocked(time.Now()) && !h.full.IsZero() && asked.Add(d).After(h.full) {
		h.lastsLocked(asked, d)
		h.stay.armLocked()
	}
	h.l.mu.Unlock()
	h.stay.tick() // the answer may have come too late
	return h.ended()
}

// bound cuts a lease of d from now at the MaxHold of h.
func (h *hold) bound(now time.Time, d time.Duration) time.Duration {
	if h.r.MaxHold > 0 {
		d = min(d, max(h.start.Add(h.r.MaxHold).Sub(now), time.Millisecond))
	}
	return d
}

// ended returns how h ended, without releasing it, or nil if it is live.
func (h *hold) ended() error {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	switch h.state {
	case live:
		return nil
	case lost:
		return h.how
	}
	return lock.ErrNotHeld
}

// Remaining returns how long the hold is still good if nothing is renewed.
func (h *hold) Remaining() time.Duration {
	h.l.mu.Lock()
	defer h.l.mu.Unlock()
	now := time.Now()
	if !h.liveLocked(now) {
		return 0
	}
	until := h.stay.until
	if !h.end.IsZero() && h.end.Before(until) {
		until = h.end
	}
	return until.Sub(now)
}

// fencedHold is a hold of a Fenced lock.
type fencedHold struct{ *hold }

// Token returns the number that grew with this stay.
func (h fencedHold) Token() int64 { return h.stay.token }
