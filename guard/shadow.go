package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

// shadowPrefix begins the keys that are taken in shadow mode, so that they exclude nobody but each other.
const shadowPrefix = "latchkey-shadow:"

// shadowed is the call in the mode Shadow, once there are keys.
func (c *call) shadowed(keys []string, t *task) (ran bool, outcome string, err error) {
	c.record.want(keys, c.wantKeys)
	s := newShadow(c, keys)
	succeeded := false // which a panic is not
	defer func() {
		if refused := s.end(succeeded); refused != nil {
			c.record.Refused = c.classed(refused)
		}
	}()
	err = t.run(s)
	succeeded = err == nil
	return true, OutcomeShadow, err
}

// classed is a failure of a locker as the *Error that the guard would have returned.
func (c *call) classed(err error) *Error {
	switch {
	case errors.Is(err, lock.ErrUnsupported):
		return c.fail(ErrUnsupported, err)
	case errors.Is(err, lock.ErrRefused):
		return c.fail(ErrFault, err)
	case errors.Is(err, lock.ErrBusy):
		return c.fail(ErrBusy, err)
	}
	return c.fail(ErrOutage, err)
}

// shadow is the context of work in the mode Shadow. Beside the work, a goroutine takes the locks on the keys of
// shadows. It has at most the releaseTimeout for each of taking them and giving them back. A Drain waits for it as a
// part of the call.
type shadow struct {
	context.Context
	run   *runner
	keys  []string // as the template gave them
	outer *shadow
	taken chan error // gets one answer: nil if all locks were acquired
	over  chan bool  // gets the end of the work: whether to keep the locks
}

type shadowKey struct{}

func newShadow(c *call, keys []string) *shadow {
	s := &shadow{Context: c.ctx, run: c.runner, keys: keys, taken: make(chan error, 1), over: make(chan bool, 1)}
	s.outer, _ = c.ctx.Value(shadowKey{}).(*shadow)
	request, presence := *c.request, &c.presence
	presence.part()
	go func() {
		defer presence.done()
		s.measure(request)
	}()
	return s
}

func (s *shadow) Value(key any) any {
	if key == (shadowKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// measure takes the locks, and gives them back when the work has ended, or at once if it does not get all of them.
func (s *shadow) measure(request lock.Request) {
	// The contexts of the holds derive from this one, so it ends in time only if there are none.
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context))
	defer cancel()
	timer := time.AfterFunc(s.run.releaseTimeout, cancel)
	holds, err := []lock.Hold(nil), errNoAnswer // unless acquire returns
	defer func() {
		timer.Stop()
		since, keep := clock.Now(), time.Duration(0)
		s.taken <- err
		if err == nil && <-s.over {
			keep = s.run.spec.Hold - (clock.Now() - since)
		}
		s.release(holds, keep)
	}()
	err = s.acquire(ctx, request, &holds)
}

// acquire tries each lock once, and adds those that it gets to holds. A locker that panics must not end the program for the sake of a
// measurement.
func (s *shadow) acquire(ctx context.Context, request lock.Request, holds *[]lock.Hold) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("locker panicked: %v", p)
		}
	}()
	request.Wait, request.Levels = 0, slices.Clone(request.Levels)
	for i := range request.Levels {
		request.Levels[i].Key = shadowPrefix + request.Levels[i].Key
	}
	for _, key := range s.keys {
		if s.outer.has(s.run.locker, key) {
			continue // the guard would have re-entered
		}
		request.Key = shadowPrefix + key
		hold, err := s.run.locker.Acquire(ctx, request)
		if err != nil {
			return err
		}
		*holds = append(*holds, hold)
	}
	return s.run.spec.canKeep(*holds)
}

// has reports whether s or a shadow around it has the key of l.
func (s *shadow) has(l lock.Locker, key string) bool {
	for ; s != nil; s = s.outer {
		if slices.Contains(s.keys, key) && same(s.run.locker, l) {
			return true
		}
	}
	return false
}

// same reports whether two lockers are one, or can't be told apart.
func same(a, b lock.Locker) bool {
	return !reflect.ValueOf(a).Comparable() || !reflect.ValueOf(b).Comparable() || a == b
}

// end ends the measurement with the work, and returns why the locks were not free. It does not wait for anything.
func (s *shadow) end(succeeded bool) (refused error) {
	select {
	case refused = <-s.taken:
	default:
		succeeded = false // as an answer that comes later does not count
	}
	s.over <- succeeded
	return refused
}

// release gives the locks back. Where that fails, the key is busy until its lease ends; a panic is the locker's.
func (s *shadow) release(holds []lock.Hold, keep time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context), s.run.releaseTimeout)
	defer cancel()
	_, _ = together(len(holds), func(i int) error { return giveBack(ctx, holds[i], keep) })
}
