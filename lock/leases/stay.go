package leases

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// stay is one owner's presence at a key: an entry in the service and the holds that rely on it. The Locker's mutex guards what is
// marked so.
//
// One timer serves a stay. It goes off when a hold ends by itself, when the entry must be renewed because some hold needs it for
// longer, and when the entry is not to be relied on anymore.
type stay struct {
	l     *Locker
	key   string
	entry *Entry
	token int64
	gone  chan struct{} // closed when nothing of the stay is in the way anymore

	// guarded
	holds    []*hold       // live and kept
	full     time.Time     // when the entry ends in the service, at the earliest
	possible time.Time     // when the entry ends at the latest, whichever questions were answered
	until    time.Time     // when it may not be relied on anymore: full less the margin
	renewAt  time.Time     // the next renewal, if one is needed
	asleep   time.Duration // as of the last grant; see suspension
	renewing bool
	failure  error // of the last renewal
	timer    *time.Timer
}

// margin is the part of a lease that is given away for the safety of the rest. It covers the time that a timer, a scheduler and
// the guarded work need to take notice, and clocks that differ by 500 ppm.
func margin(lease time.Duration) time.Duration {
	const least = 25 * time.Millisecond
	return max(min(lease/20, time.Second), lease/2000, min(lease/4, least))
}

// admit makes a stay of the grant g, which was requested at asked with a lease of d. It returns nil if that is over
// already.
func (l *Locker) admit(ctx context.Context, e *Entry, r lock.Request, g Grant, asked time.Time, d time.Duration) *hold {
	h := l.newHold(ctx, r)
	if !l.begin(h, e, g, asked, d) {
		h.cancel(context.Canceled)
		return nil
	}
	return h
}

// begin makes a stay whose first hold is h, or reports that it is over already.
func (l *Locker) begin(h *hold, e *Entry, g Grant, asked time.Time, d time.Duration) bool {
	s := &stay{l: l, key: e.Key, entry: e, token: g.Token, gone: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.timer = time.AfterFunc(time.Hour, s.tick) // armed by the hold, and stopped without one
	e.stay.Store(s)                             // from here on Lost finds it
	if !g.Since.IsZero() {
		asked = g.Since
	}
	s.grantedLocked(asked, d, g.Lease)
	if !s.goodLocked(time.Now()) || e.gone.Load() != nil {
		s.timer.Stop()
		return false
	}
	p := l.placeLocked(e.Key)
	p.stays, p.outage = append(p.stays, s), nil
	s.addLocked(h, asked)
	return true
}

// grantedLocked notes that the service has granted a lease, of d if it does not say otherwise.
func (s *stay) grantedLocked(asked time.Time, d, granted time.Duration) {
	d = min(cmp.Or(granted, d), longest)
	s.failure = nil
	s.asleep = suspension(s.l.origin, asked)
	s.renewAt = asked.Add(min(d, s.l.watchdog) / 3)
	s.askedLocked(asked.Add(d))
	s.lastsLocked(asked.Add(d), margin(d))
}

// askedLocked notes that the entry may last until full.
func (s *stay) askedLocked(full time.Time) {
	if full.After(s.possible) {
		s.possible = full
	}
}

// lastsLocked notes that the entry does not end before full. A later time that is known already stays.
func (s *stay) lastsLocked(full time.Time, margin time.Duration) {
	if full.After(s.full) {
		s.full = full
	}
	if until := full.Add(-margin); until.After(s.until) {
		s.until = until
	}
}

func (s *stay) goodLocked(now time.Time) bool { return now.Before(s.until) }

// addLocked makes h a hold of s. Its times count from start: for the first one, that is the time of the request.
func (s *stay) addLocked(h *hold, start time.Time) {
	h.stay, h.start = s, start
	r := h.r
	if r.Lease > 0 || r.MaxHold > 0 {
		h.lastsLocked(start, cmp.Or(r.Lease, longest))
	}
	s.holds = append(s.holds, h)
	wanted := h.full
	if half := start.Add(s.l.watchdog / 2); r.Lease == 0 && (wanted.IsZero() || half.Before(wanted)) {
		wanted = half
	}
	if wanted.After(s.full) { // a re-entry for longer than the stay was begun for
		s.renewAt = start
	}
	s.armLocked()
}

// lastsLocked lets h end by itself d after from, or with its MaxHold if that is earlier.
func (h *hold) lastsLocked(from time.Time, d time.Duration) {
	h.full, h.reason = from.Add(min(d, longest)), errLease
	if last := h.start.Add(h.r.MaxHold); h.r.MaxHold > 0 && !h.full.Before(last) {
		h.full, h.reason = last, lock.ErrMaxHold
	}
	h.end = h.full.Add(-margin(h.full.Sub(from)))
}

// needLocked returns for how long the holds need the entry in the service, and whether it has to be renewed for that.
func (s *stay) needLocked(now time.Time) (d time.Duration, renew bool) {
	for _, h := range s.holds {
		rest := h.full.Sub(now)
		switch {
		case h.full.IsZero():
			rest = s.l.watchdog
		case h.r.Lease == 0 && h.state == live: // renewed up to its MaxHold, for all of which a crash would leave it otherwise
			rest = min(rest, s.l.watchdog)
		}
		d = max(d, rest)
		renew = renew || h.full.IsZero() || h.full.After(s.full)
	}
	return min(d, longest), renew
}

// dueLocked returns when something is next to be done for s.
func (s *stay) dueLocked(now time.Time) time.Time {
	due := now.Add(longest)
	for _, h := range s.holds {
		if h.state != kept && s.until.Before(due) {
			due = s.until
		}
		if !h.end.IsZero() && h.end.Before(due) {
			due = h.end
		}
	}
	if _, renew := s.needLocked(now); renew && !s.renewing && s.renewAt.Before(due) {
		due = s.renewAt
	}
	return due
}

func (s *stay) armLocked() {
	if len(s.holds) == 0 {
		s.timer.Stop()
		return
	}
	now := time.Now()
	s.timer.Reset(s.dueLocked(now).Sub(now))
}

// tick does the work that is due by the clock.
func (s *stay) tick() {
	now := time.Now()
	s.l.mu.Lock()
	ended, then := s.expireLocked(now)
	_, renew := s.needLocked(now)
	if !s.renewing && (renew && !now.Before(s.renewAt) || s.sleptLocked(now)) {
		s.renewing = true
		go s.watch()
	}
	s.armLocked()
	s.l.mu.Unlock()
	s.close(ended, then)
}

// sleptLocked reports whether the machine was suspended since the last grant for so long that the service must be asked
// about the entry. The monotonic clock, by which leases are counted here, stood still then.
func (s *stay) sleptLocked(now time.Time) bool {
	return len(s.holds) > 0 && suspension(s.l.origin, now)-s.asleep > s.l.watchdog/3
}

// suspension returns by how much the wall clock has run ahead of the monotonic one from a to b. If nobody has set the clock, the
// machine was suspended for as long.
func suspension(a, b time.Time) time.Duration {
	return b.Round(0).Sub(a.Round(0)) - b.Sub(a)
}

// expireLocked ends the holds that are over by the clock, and returns those whose contexts the caller must cancel.
func (s *stay) expireLocked(now time.Time) (ended []*hold, then after) {
	for _, h := range slices.Clone(s.holds) {
		reason := h.reason
		switch {
		case h.state == live && !now.Before(s.until) && (h.end.IsZero() || s.until.Before(h.end)):
			reason = errors.Join(errUnsure, s.failure)
		case h.end.IsZero() || now.Before(h.end):
			continue
		}
		if h.state == live {
			h.loseLocked(now, reason)
			ended = append(ended, h)
		}
		then = max(then, s.dropLocked(h))
	}
	return ended, then
}

func (h *hold) loseLocked(now time.Time, reason error) {
	h.state = lost
	h.how = &lock.LostError{Held: now.Sub(h.start), Reason: reason}
}

// dropLocked takes h out of s, and returns the work that this leaves.
func (s *stay) dropLocked(h *hold) after {
	i := slices.Index(s.holds, h)
	if i < 0 {
		return nothing
	}
	s.holds = slices.Delete(s.holds, i, i+1)
	switch {
	case len(s.holds) == 0:
		s.timer.Stop()
		return toFree
	case h.r.Kind == lock.Write && !s.writesLocked():
		return toDowngrade
	}
	return nothing
}

// close notifies the holders first, and then gives up the entry that they do not need anymore.
func (s *stay) close(ended []*hold, then after) {
	for _, h := range ended {
		h.cancel(h.how)
	}
	if then != nothing {
		go func() { _ = s.leave(context.Background(), then) }() // what it can't do at once, it does later
	}
}

// lose ends all holds of s, whose entry is gone, for the reason.
func (s *stay) lose(reason error) {
	now := time.Now()
	s.l.mu.Lock()
	var ended []*hold
	for _, h := range s.holds {
		if h.state == live {
			h.loseLocked(now, reason)
			ended = append(ended, h)
		}
	}
	had := len(s.holds) > 0
	s.holds = nil
	s.timer.Stop()
	s.l.mu.Unlock()
	s.close(ended, nothing)
	if had {
		s.forget()
	}
}

// watch renews the entry for the watchdog.
func (s *stay) watch() {
	pause := 10 * time.Millisecond
	if err := s.extend(context.Background(), time.Millisecond); err != nil {
		pause = min(s.l.watchdog/30, time.Second)
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.renewing = false
	if next := time.Now().Add(pause); s.renewAt.Before(next) {
		s.renewAt = next
	}
	s.armLocked()
}

// extend makes the entry last for d from now, or longer if a hold needs that. It returns an ErrLost if the entry is gone, and has told
// the holders then.
func (s *stay) extend(ctx context.Context, d time.Duration) error {
	asked := time.Now()
	s.l.mu.Lock()
	need, _ := s.needLocked(asked)
	d = max(d, need)
	s.askedLocked(asked.Add(d))
	s.l.mu.Unlock()
	a := ask(ctx, s.entry, s.l.timeout, func(ctx context.Context) (time.Duration, error) {
		asked = time.Now() // others may have been first
		return s.l.store.Extend(ctx, s.entry, d)
	}, func(error) {})
	if errors.Is(a.err, lock.ErrNotHeld) && !a.open {
		s.lose(errGone)
		return &lock.LostError{Reason: errGone}
	}
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	if s.failure = a.err; a.err != nil {
		return a.err
	}
	if s.goodLocked(time.Now()) || !s.workedUnderLocked() { // an answer that comes after the end does not revive a hold
		s.grantedLocked(asked, d, a.value)
		s.armLocked()
	}
	return nil
}

// workedUnderLocked reports whether there is a hold that is not only kept.
func (s *stay) workedUnderLocked() bool {
	return slices.ContainsFunc(s.holds, func(h *hold) bool { return h.state == live })
}
