package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

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
func (s *schedule) outlive() error {
	for i := 0; i < len(s.model.calls); i++ {
		c := s.model.calls[i]
		if !c.doubtful(time.Now().Add(nearEnd)) {
			continue
		}
		if err := first(func() error { return s.seeEnd(c) }, s.catchUp); err != nil {
			return err
		}
		i = -1 // another one may be near its end by now
	}
	return s.check()
}

// seeEnd waits until c has ended by itself, and finds out whether it was notified in time and with its cause.
func (s *schedule) seeEnd(c *call) error {
	switch {
	case c.state == kept:
		sleepUntil(c.due)
		c.state = released
		return nil
	case c.ended(): // with an outer one, so its context does not show it
		sleepUntil(c.due)
		return s.release(c)
	}
	if !s.happens(c.hold.Context().Done(), time.Until(c.due)) {
		return fmt.Errorf("%v is not notified of its end", c)
	}
	now, cause := time.Now(), context.Cause(c.hold.Context())
	switch {
	case !errors.Is(cause, lock.ErrLost):
		return fmt.Errorf("%v ends with cause %w, want ErrLost", c, cause)
	case c.outerDoubtful(now): // it may have been the outer one that ended
		return s.release(c)
	case !c.doubtful(now):
		return fmt.Errorf("%v ends too early", c)
	case c.r.MaxHold > 0 && !errors.Is(cause, lock.ErrMaxHold):
		return fmt.Errorf("%v ends with cause %w, want ErrMaxHold", c, cause)
	}
	c.state = lost
	s.note("%v has ended", c)
	s.sawFirstOfStay("lost", c)
	return nil
}

// check looks at the contexts of all holds.
func (s *schedule) check() error {
	for _, c := range s.model.calls {
		if c.ended() {
			if !s.happens(c.hold.Context().Done(), 0) {
				return fmt.Errorf("the context of %v does not end", c)
			}
			continue
		}
		cause := context.Cause(c.hold.Context())
		if now := time.Now(); cause != nil && !c.doubtful(now) && !c.outerDoubtful(now) {
			return fmt.Errorf("the context of %v has ended: %w", c, cause)
		}
	}
	return nil
}
