package memlock

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/queue"
	"github.com/latchkey-go/latchkey/lock"
)

// gate is a thing that a request may have to wait for: a key, or the rate of one. The Locker's mutex guards it.
//
// Those who wait stand in one line, in the order of arrival. The first in a line is there because the gate is shut to it: when that
// changes, [Locker.serve] is called before the mutex is unlocked.
type gate interface {
	// shut reports whether h can't have what it wants here now, even if nobody is ahead of it.
	shut(h *hold) bool
	// line returns the waiters.
	line() *queue.Queue[*waiter]
	// refusal returns the error of h if it gives up here.
	refusal(h *hold) *refusal
	// changed is called after each change of the line or of what is given.
	changed(l *Locker)
}

// entry is one key that is held. The Locker's mutex guards it.
type entry struct {
	key     string
	holds   queue.Queue[*claim] // all of one family of kinds; also those released with Keep, until that ends
	waiters queue.Queue[*waiter]
	stays   int // different ones among holds
	writers int // those of the holds that are not readers
}

// claim is a hold's part in one key, wanted or held: that of the request, or of one of its levels. The Locker's mutex
// guards it.
type claim struct {
	lock.Level
	of    *hold
	own   stay                // if the claim begins it
	stay  *stay               // while it is held; before that, the one to be re-entered, or nil
	entry *entry              // that it was put into; another key's, perhaps, once it is out
	place queue.Place[*claim] // among the holds of entry
}

// stay is one owner's presence at a key: the hold that began it, and those that re-entered. It lasts until the last of
// them is gone.
type stay struct{ holds int32 }

// join finds the stay of the holds above that c re-enters, if there is one. It returns why c must not even wait for e, which is nil if
// nobody has the key.
func (c *claim) join(e *entry, above []*hold) error {
	c.stay = nil
	var kinds []lock.Kind
	for _, a := range above {
		if o := a.claim(c.Key); o != nil && a.Held() { // may have been released since it was found
			c.stay = o.stay
			kinds = append(kinds, a.r.Kind)
		}
	}
	wanted := c.of.r.Kind
	if c.stay == nil && e != nil {
		if holder := e.holds.First(); holder != nil && holder.of.r.Kind.Family() != wanted.Family() {
			return &lock.KindError{Held: holder.of.r.Kind, Wanted: wanted}
		}
	}
	return lock.Reenter(wanted, kinds...)
}

// shut implements gate.
func (e *entry) shut(h *hold) bool {
	c := h.claim(e.key)
	switch {
	case c.stay != nil:
		return false
	case h.r.Kind == lock.Read:
		return e.writers > 0
	case h.r.Kind == lock.Permit:
		return e.stays >= c.Limit
	}
	return e.stays > 0
}

func (e *entry) line() *queue.Queue[*waiter] { return &e.waiters }

// changed forgets a key that is free. Those who wait for one that has just come free are about to be served.
func (e *entry) changed(l *Locker) {
	if e.stays == 0 && e.waiters.First() == nil {
		delete(l.keys, e.key)
		l.spare = e
	}
}

func (e *entry) add(c *claim) {
	if c.stay == nil {
		c.stay = &c.own
	}
	if c.stay.holds == 0 {
		e.stays++
	}
	c.stay.holds++
	if c.of.r.Kind != lock.Read {
		e.writers++
	}
	c.entry = e
	e.holds.Join(&c.place, c)
}

// remove takes c, which is in, out of its entry.
func (c *claim) remove() {
	c.place.Leave()
	if c.of.r.Kind != lock.Read {
		c.entry.writers--
	}
	c.stay.holds--
	if c.stay.holds == 0 {
		c.entry.stays--
	}
}

// refusal is what one who gives up is to know about the holders. Their contexts may run code that we know nothing about,
// so they are only collected here, and looked into after the mutex is unlocked.
type refusal struct {
	lock.BusyError
	holders []*hold
}

func (e *entry) refusal(h *hold) *refusal {
	f := &refusal{BusyError: lock.BusyError{Remaining: e.remaining()}}
	if h.r.Bounded() {
		f.Level = e.key
	}
	for c := range e.holds.All() {
		if c.of.Held() {
			f.holders = append(f.holders, c.of)
		}
	}
	return f
}

// busy makes the error for the caller with ctx.
func (f *refusal) busy(ctx context.Context, waited time.Duration) error {
	f.Waited = waited
	for _, h := range f.holders {
		f.HeldBy(ctx, &h.ctx, h.r.Holder)
	}
	return &f.BusyError
}

// remaining is the time until all of the holds have ended by themselves, or 0 if one of them never does.
func (e *entry) remaining() time.Duration {
	last := time.Duration(math.MinInt64)
	for c := range e.holds.All() {
		if c.of.until == 0 {
			return 0
		}
		last = max(last, c.of.until)
	}
	return max(0, last-clock.Now())
}

// waiter is a request in line.
type waiter struct {
	*hold
	above  []*hold // that it may re-enter
	number uint64  // in the order of arrival
	done   chan struct{}
	err    error // why it is refused after all; set before done is closed

	// The Locker's mutex guards the rest.
	at    gate
	place queue.Place[*waiter] // in the line of at
}

// queue puts w into the line of g, by its arrival.
func (l *Locker) queue(w *waiter, g gate) {
	w.at = g
	defer g.changed(l)
	if w.number == l.arrived {
		g.line().Join(&w.place, w)
		return
	}
	var ahead *waiter
	for o := range g.line().All() { // mostly the first came later, as w was the first elsewhere
		if o.number > w.number {
			break
		}
		ahead = o
	}
	if ahead == nil {
		g.line().Lead(&w.place, w)
		return
	}
	w.place.Follow(&ahead.place, w)
}

// serve grants the requests that are first in line at g, or moves them to the line of another gate.
func (l *Locker) serve(g gate) {
	for w := g.line().First(); w != nil; w = g.line().First() {
		next, err := l.obstacle(w.hold, w.above, w)
		if next == g {
			break
		}
		w.place.Leave()
		if next != nil {
			l.queue(w, next)
			continue
		}
		if w.err = err; err == nil {
			l.grant(w.hold)
		}
		close(w.done)
	}
	g.changed(l)
}

// wait returns nil once w, which is in line, has been granted.
func (l *Locker) wait(ctx context.Context, w *waiter) error {
	start := time.Now()
	var timeout <-chan time.Time
	if w.r.Wait > 0 {
		timer := time.NewTimer(w.r.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-timeout:
	}
	switch f := l.leave(w); {
	case ctx.Err() != nil:
		_ = w.Release(ctx) // if it has just been granted, the next gets its turn
		return context.Cause(ctx)
	case f != nil:
		return f.busy(ctx, time.Since(start))
	}
	// Granted at the last moment, perhaps: a caller who was ready to wait for the lock has no reason to refuse it.
	return w.err
}

// leave takes w out of its line and returns what it waited for, or nil if it is not there anymore because its turn has come.
func (l *Locker) leave(w *waiter) *refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !w.place.In() {
		return nil
	}
	f := w.at.refusal(w.hold)
	w.place.Leave()
	l.serve(w.at)
	return f
}
