package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// enter makes a call that does not wait, and compares what it gets with what the model admits.
func (s *schedule) enter(u under, r lock.Request) {
	want := s.model.admit(u, r)
	s.note("%v, %v: %v", s.text(r), u, want.outcome)
	start, from := time.Now(), time.Now()
	hold, err := s.try(u, r)
	for want.outcome == enters && errors.Is(err, lock.ErrBusy) && time.Since(start) < s.suite.patience {
		// A lost hold may stay in the way until the end of its lease, and a release may be on its way.
		<-time.After(2 * time.Millisecond)
		from = time.Now()
		hold, err = s.try(u, r)
	}
	to := time.Now()
	if s.err != nil {
		return
	}
	if s.tooSlow(from, to, r) {
		s.saw("too slow to prove anything")
		if hold != nil {
			_ = hold.Release(context.Background()) // it may have been lost
		}
		return
	}
	s.saw(string(want.outcome))
	s.compare(want, r, hold, err)
	if hold != nil {
		s.note("... got %v", s.model.add(u, r, hold, want.stay, from, to))
	}
}

// tooSlow reports whether a hold may have ended by itself before to, including the one that was requested at from.
func (s *schedule) tooSlow(from, to time.Time, r lock.Request) bool {
	var alone model
	asked := alone.add(under{}, r, nil, 0, from, to)
	return asked.doubtful(to) || slices.ContainsFunc(s.model.calls, func(c *call) bool { return c.doubtful(to) })
}

// compare looks for what is wrong with the answer to r.
func (s *schedule) compare(want admission, r lock.Request, hold lock.Hold, err error) {
	if (hold == nil) == (err == nil) {
		s.fail("Acquire() = hold %v, %s, want a hold or an error", hold != nil, fmt.Sprint(err))
	}
	switch want.outcome {
	case enters, reenters, either:
		if err != nil && (want.outcome != either || !errors.Is(err, lock.ErrBusy)) {
			s.fail("Acquire() = %w, want that it %s", err, want.outcome)
		}
	case busy:
		s.compareBusy(want, r, err)
	case refused:
		e, ok := errors.AsType[*lock.KindError](err)
		if !ok || !errors.Is(err, lock.ErrUnsupported) || e.Wanted != r.Kind || e.Held.Family() != want.held.Family() {
			s.fail("Acquire() = %s, want a KindError: held as %v, wanted as %v", fmt.Sprint(err), want.held, r.Kind)
		} else if e.Held == lock.Read && e.Wanted == lock.Write {
			s.saw("upgrade refused")
		}
	}
}

func (s *schedule) compareBusy(want admission, r lock.Request, err error) {
	e, ok := errors.AsType[*lock.BusyError](err)
	switch {
	case !ok:
		s.fail("Acquire() = %s, want a BusyError", fmt.Sprint(err))
	case s.model.waiting[r.Key] > 0 && r.Kind.Family() == lock.Write: // a waiter may have joined the readers by now, and be the relative
	case e.Related != want.related || e.Here != want.here:
		s.fail("%+v, want Related %v and Here %v", *e, want.related, want.here)
	case want.related:
		s.saw("related")
	}
}

// try is an Acquire that returns in any case.
func (s *schedule) try(u under, r lock.Request) (lock.Hold, error) {
	a := s.start(u.context(), r)
	if !s.happens(a.done, 0) {
		s.fail("the Acquire does not return")
		return nil, s.err
	}
	return a.hold, a.err
}

// release gives back the hold of c, perhaps not for the first time.
func (s *schedule) release(c *call) {
	s.note("release %v", c)
	s.givenBack(c, c.hold.Release(context.Background()), released)
}

// givenBack compares err, which Release or Keep of c has returned, with the state that c was in. Then it is in the next one.
func (s *schedule) givenBack(c *call, err error, next state) {
	switch was := c.state; {
	case was == live && c.doubtful(time.Now()) && errors.Is(err, lock.ErrLost):
		c.state = released
	case was == live && err != nil:
		s.fail("the release gives %w, want nil", err)
	case was == live:
		c.state = next
		s.sawFirstOfStay("released", c)
	case was == lost && !errors.Is(err, lock.ErrLost):
		s.fail("the first release of a lost hold gives %s, want ErrLost", fmt.Sprint(err))
	case was == lost:
		c.state = released
	case !errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrLost):
		s.fail("a second release gives %s, want ErrNotHeld", fmt.Sprint(err))
	}
}

// sawFirstOfStay notes that c has gone while others of its stay are there.
func (s *schedule) sawFirstOfStay(how string, c *call) {
	s.saw(how)
	if slices.ContainsFunc(s.model.liveCalls(), func(o *call) bool { return o.stay == c.stay }) {
		s.saw(how + " before others of its stay")
	}
}

// keep releases a hold with Keep, if it has that.
func (s *schedule) keep(c *call) {
	k, ok := c.hold.(keeper)
	if !ok {
		return
	}
	d, was, from := s.span(), c.state, time.Now()
	s.note("keep %v for %v", c, d)
	s.givenBack(c, k.Keep(context.Background(), d), kept)
	if was == live && c.state == kept {
		s.saw("kept")
		c.lasts(d, from, time.Now())
	}
}

// extend lets a hold go on, if it has Extend. MaxHold would bound that.
func (s *schedule) extend(c *call) {
	e, ok := c.hold.(extender)
	if !ok || c.r.MaxHold > 0 {
		return
	}
	d, from := s.span(), time.Now()
	s.note("extend %v by %v", c, d)
	err := e.Extend(context.Background(), d)
	to := time.Now()
	want := map[state]error{kept: lock.ErrNotHeld, lost: lock.ErrLost, released: lock.ErrNotHeld}[c.state]
	switch {
	case c.doubtful(to) && errors.Is(err, lock.ErrLost): // its context will say so
	case !errors.Is(err, want):
		s.fail("Extend() = %s, want %s", fmt.Sprint(err), fmt.Sprint(want))
	case c.state == live && !c.due.IsZero():
		s.saw("extended")
		sure, due := c.sure, c.due
		c.lasts(d, from, to)
		c.sure, c.due = later(c.sure, sure), later(c.due, due)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nearEnd is how long before a hold may end by itself no step is begun anymore.
const nearEnd = 20 * time.Millisecond

// sleep lets the time pass until the next hold may end.
func (s *schedule) sleep() {
	var next time.Time
	for _, c := range s.model.calls {
		if c.blocks() && !c.due.IsZero() && (next.IsZero() || c.sure.Before(next)) {
			next = c.sure
		}
	}
	if time.Until(next) < time.Second { // and not a minute
		s.note("sleep")
		sleepUntil(next)
	}
}

func sleepUntil(t time.Time) { <-time.After(time.Until(t)) }

// outlive waits for the end of all holds that may end soon.
func (s *schedule) outlive() {
	ends := func(c *call) bool { return c.doubtful(time.Now().Add(nearEnd)) }
	next := func() int { return slices.IndexFunc(s.model.calls, ends) }
	for i := next(); i >= 0 && s.err == nil; i = next() {
		s.seeEnd(s.model.calls[i])
		s.catchUp()
	}
}

// seeEnd waits until c has ended by itself, and finds out whether it was notified in time and with its cause.
func (s *schedule) seeEnd(c *call) {
	switch {
	case c.state == kept:
		sleepUntil(c.due)
		c.state = released
		return
	case c.ended(): // with an outer one, so its context does not show it
		sleepUntil(c.due)
		s.release(c)
		return
	case !s.happens(c.hold.Context().Done(), time.Until(c.due)):
		s.fail("%v is not notified of its end", c)
		return
	}
	now, cause := time.Now(), context.Cause(c.hold.Context())
	switch {
	case !errors.Is(cause, lock.ErrLost):
		s.fail("%v ends with cause %w, want ErrLost", c, cause)
	case c.outerDoubtful(now): // it may have been the outer one that ended
		s.release(c)
	case !c.doubtful(now):
		s.fail("%v ends too early", c)
	case c.r.MaxHold > 0 && !errors.Is(cause, lock.ErrMaxHold):
		s.fail("%v ends with cause %w, want ErrMaxHold", c, cause)
	default:
		c.state = lost
		s.note("%v has ended", c)
		s.sawFirstOfStay("lost", c)
	}
}

// check looks at the contexts of all holds.
func (s *schedule) check() {
	for _, c := range s.model.calls {
		cause, now := context.Cause(c.hold.Context()), time.Now()
		switch {
		case c.ended():
			if !s.happens(c.hold.Context().Done(), 0) {
				s.fail("the context of %v does not end", c)
				return
			}
		case cause != nil && !c.doubtful(now) && !c.outerDoubtful(now):
			s.fail("the context of %v has ended: %w", c, cause)
		}
	}
}
