package leases

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
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

// public is the hold that the caller of Acquire gets.
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

// finish ends h for its holder, and in the state kept keeps it for d. The error says why h had ended before.
func (h *hold) finish(state holdState, d time.Duration) (after, error) {
	s := h.stay
	s.tick() // a hold that is over by the clock is lost, also if nobody has noticed yet
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

// after is the work that the release of a hold leaves.
type after int

const (
	nothing after = iota
	toDowngrade
	toKeep
	toFree
)

// leave does the work that the end of a hold has left. Its error is nil, ErrLost if the entry was gone, or an outage,
// after which the rest is done in the background.
func (s *stay) leave(ctx context.Context, then after) error {
	switch then {
	case toDowngrade:
		s.downgrade(ctx)
		return nil
	case toFree:
		return s.free(ctx)
	}
	return nil
}

// downgrade lets readers in beside s, if the service can. If it fails, they wait until s is over.
func (s *stay) downgrade(ctx context.Context) {
	if d, ok := s.l.store.(Downgrader); ok {
		_ = plain(ctx, s.entry, s.l.timeout, func(ctx context.Context) error { return d.Downgrade(ctx, s.entry) })
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if p := s.l.places[s.key]; p != nil {
		p.wakeLocked()
	}
}

// keep lets the entry, under which nobody works anymore, end by itself d from now, or later if another hold was kept for longer.
func (s *stay) keep(ctx context.Context, d time.Duration) error {
	asked := time.Now()
	s.l.mu.Lock()
	need, _ := s.needLocked(asked)
	s.l.mu.Unlock()
	d = max(d, need)
	err := s.retryFree(ctx, d)
	if errors.Is(err, lock.ErrLost) {
		s.lose(errGone)
	}
	if err == nil {
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		s.lastsLocked(asked.Add(d), 0)
	}
	return err
}

// free removes the entry, if need be in the background.
func (s *stay) free(ctx context.Context) error {
	defer s.forget()
	err := s.retryFree(ctx, 0)
	if err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrRefused) {
		s.l.mu.Lock()
		rest := time.Until(s.possible)
		s.l.mu.Unlock()
		s.l.remove(s.entry, rest, false)
	}
	return err
}

// retryFree asks the service to free the entry until ctx has ended or the timeout is over. It returns an ErrLost if there was none.
func (s *stay) retryFree(ctx context.Context, keep time.Duration) error {
	asked := time.Now()
	end := asked.Add(s.l.timeout)
	doubt := false
	for pause := firstTidy / 10; ; pause *= 2 {
		err := s.l.free(ctx, s.entry, keep)
		switch {
		case errors.Is(err, lock.ErrNotHeld) && doubt && time.Since(asked) >= keep: // an earlier one did it; what it keeps is there until then
			return nil
		case errors.Is(err, lock.ErrNotHeld):
			return &lock.LostError{Reason: errGone}
		case err == nil, errors.Is(err, lock.ErrRefused):
			return err
		}
		doubt = true
		if time.Now().Add(pause).After(end) || !clock.Sleep(ctx, pause) {
			return err
		}
	}
}

// forget takes s out of the way of the others in this process.
func (s *stay) forget() {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	p := s.l.places[s.key]
	p.stays = slices.DeleteFunc(p.stays, func(o *stay) bool { return o == s })
	close(s.gone)
	p.known = time.Now()
	p.wakeLocked()
	s.l.sweepLocked(s.key)
}
