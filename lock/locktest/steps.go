package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

var errHangs = errors.New("the Acquire does not return")

// enter makes a call that does not wait, and compares what it gets with what the model admits.
func (s *schedule) enter(u under, r lock.Request) error {
	want := s.model.admit(u, r)
	s.note("%v, %v: %v", s.text(r), u, want.outcome)
	start, from := time.Now(), time.Now()
	hold, err := s.try(u, r)
	for want.outcome == enters && errors.Is(err, lock.ErrBusy) && time.Since(start) < s.suite.patience {
		// What was lost may stay in the way until the end of its lease, and a release may be on its way.
		<-time.After(2 * time.Millisecond)
		from = time.Now()
		hold, err = s.try(u, r)
	}
	to := time.Now()
	if errors.Is(err, errHangs) {
		return err
	}
	if s.tooSlow(from, to, r) {
		s.saw("too slow to prove anything")
		if hold != nil {
			_ = hold.Release(context.Background()) // it may have been lost
		}
		return nil
	}
	if err := s.compare(want, r, hold, err); err != nil {
		return err
	}
	s.saw(string(want.outcome))
	if hold != nil {
		s.note("... got %v", s.model.add(u, r, hold, want.stay, from, to))
	}
	return nil
}

// tooSlow reports whether a hold may have ended by itself before to, be it the one that was asked for at from.
func (s *schedule) tooSlow(from, to time.Time, r lock.Request) bool {
	var alone model
	asked := alone.add(under{}, r, nil, 0, from, to)
	return asked.doubtful(to) || slices.ContainsFunc(s.model.calls, func(c *call) bool { return c.doubtful(to) })
}

// compare returns what is wrong with the answer to r.
func (s *schedule) compare(want admission, r lock.Request, hold lock.Hold, err error) error {
	if (hold == nil) == (err == nil) {
		return fmt.Errorf("Acquire() = hold %v, %s, want a hold or an error", hold != nil, fmt.Sprint(err))
	}
	switch want.outcome {
	case enters, reenters, either:
		if err != nil && (want.outcome != either || !errors.Is(err, lock.ErrBusy)) {
			return fmt.Errorf("Acquire() = %w, want that it %s", err, want.outcome)
		}
	case busy:
		return s.compareBusy(want, r, err)
	case refused:
		e, ok := errors.AsType[*lock.KindError](err)
		if !ok || !errors.Is(err, lock.ErrUnsupported) || e.Wanted != r.Kind || e.Held.Family() != want.held.Family() {
			return fmt.Errorf("Acquire() = %s, want a KindError: held as %v, wanted as %v", fmt.Sprint(err), want.held, r.Kind)
		}
		if e.Held == lock.Read && e.Wanted == lock.Write {
			s.saw("upgrade refused")
		}
	}
	return nil
}

func (s *schedule) compareBusy(want admission, r lock.Request, err error) error {
	e, ok := errors.AsType[*lock.BusyError](err)
	if !ok {
		return fmt.Errorf("Acquire() = %s, want a BusyError", fmt.Sprint(err))
	}
	if s.model.waiting[r.Key] > 0 && r.Kind.Family() == lock.Write {
		return nil // a waiter may have joined the readers by now, and be the relative
	}
	if want.related {
		s.saw("related")
	}
	if e.Related != want.related || e.Here != want.here {
		return fmt.Errorf("%+v, want Related %v and Here %v", *e, want.related, want.here)
	}
	return nil
}

// try is an Acquire that returns in any case.
func (s *schedule) try(u under, r lock.Request) (lock.Hold, error) {
	a := s.start(u.context(), r)
	if !s.happens(a.done, 0) {
		return nil, errHangs
	}
	return a.hold, a.err
}

// release gives back the hold of c, perhaps not for the first time.
func (s *schedule) release(c *call) error {
	if c == nil {
		return nil
	}
	s.note("release %v", c)
	return s.giveBack(c, func() error { return c.hold.Release(context.Background()) }, released)
}

// giveBack releases c by Release or Keep, and notes the state that it is in then.
func (s *schedule) giveBack(c *call, release func() error, then state) error {
	was := c.state
	err := release()
	switch {
	case was == live && c.doubtful(time.Now()) && errors.Is(err, lock.ErrLost):
		c.state = released
	case was == live && err != nil:
		return fmt.Errorf("the release gives %w, want nil", err)
	case was == live:
		c.state = then
		s.sawFirstOfStay("released", c)
	case was == lost && !errors.Is(err, lock.ErrLost):
		return fmt.Errorf("the first release of a lost hold gives %s, want ErrLost", fmt.Sprint(err))
	case was == lost:
		c.state = released
	case !errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrLost):
		return fmt.Errorf("a second release gives %s, want ErrNotHeld", fmt.Sprint(err))
	}
	return nil
}

// sawFirstOfStay notes that c has gone while others of its stay are there.
func (s *schedule) sawFirstOfStay(how string, c *call) {
	s.saw(how)
	if slices.ContainsFunc(s.model.liveCalls(), func(o *call) bool { return o.stay == c.stay }) {
		s.saw(how + " before others of its stay")
	}
}

// keep releases a live hold with Keep, if it has that.
func (s *schedule) keep() error {
	c := s.pick()
	if c == nil {
		return nil
	}
	k, ok := c.hold.(keeper)
	if !ok {
		return nil
	}
	d := s.span()
	s.note("keep %v for %v", c, d)
	was, from := c.state, time.Now()
	if err := s.giveBack(c, func() error { return k.Keep(context.Background(), d) }, kept); err != nil {
		return err
	}
	if was == live && c.state == kept {
		s.saw("kept")
		c.lasts(d, from, time.Now())
	}
	return nil
}

// extend lets a hold go on, if it has Extend. MaxHold would bound that.
func (s *schedule) extend() error {
	c := s.pick()
	if c == nil || c.r.MaxHold > 0 {
		return nil
	}
	e, ok := c.hold.(extender)
	if !ok {
		return nil
	}
	d := s.span()
	s.note("extend %v by %v", c, d)
	from := time.Now()
	err := e.Extend(context.Background(), d)
	to := time.Now()
	want := map[state]error{kept: lock.ErrNotHeld, lost: lock.ErrLost, released: lock.ErrNotHeld}[c.state]
	switch {
	case c.doubtful(to) && errors.Is(err, lock.ErrLost): // its context will say so
	case !errors.Is(err, want):
		return fmt.Errorf("Extend() = %s, want %s", fmt.Sprint(err), fmt.Sprint(want))
	case c.state == live && !c.due.IsZero():
		s.saw("extended")
		sure, due := c.sure, c.due
		c.lasts(d, from, to)
		c.sure, c.due = later(c.sure, sure), later(c.due, due)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
