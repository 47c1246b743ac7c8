package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
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

// shadow is the context of work in the mode Shadow. Beside the work, a goroutine takes the locks on the keys of shadows. It
// has at most the releaseTimeout for each of taking them and giving them back, and is a part of the call to a Drain.
type shadow struct {
	context.Context
	run      *runner
	presence *presence
	keys     []string // as the template gave them
	request  lock.Request
	outer    *shadow

	mu       sync.Mutex
	answered bool
	over     bool // the work has ended
	holds    []lock.Hold
	since    time.Duration // when holds were had, by the clock
	keep     time.Duration // how long they stay after their release
	err      error
	cancel   context.CancelFunc // of the contexts of holds
}

type shadowKey struct{}

func newShadow(c *call, keys []string) *shadow {
	s := &shadow{Context: c.ctx, run: c.runner, presence: &c.presence, keys: keys, request: *c.request}
	s.outer, _ = c.ctx.Value(shadowKey{}).(*shadow)
	s.beside(s.take)
	return s
}

// beside runs f in a goroutine that a Drain waits for.
func (s *shadow) beside(f func()) {
	s.presence.part()
	go func() {
		defer s.presence.done()
		f()
	}()
}

func (s *shadow) Value(key any) any {
	if key == (shadowKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// take takes the locks, and gives them back if the work has ended meanwhile.
func (s *shadow) take() {
	// The contexts of the holds derive from this one, so it ends in time only if there are none.
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context))
	timer := time.AfterFunc(s.run.releaseTimeout, cancel)
	holds, err := []lock.Hold(nil), errNoAnswer // unless acquire returns
	defer func() {
		timer.Stop()
		s.mu.Lock()
		s.answered, s.holds, s.since, s.err, s.cancel = true, holds, clock.Now(), err, cancel
		over := s.over
		s.mu.Unlock()
		if err != nil || over {
			s.release()
		}
	}()
	err = s.acquire(ctx, &holds)
}

// acquire tries each lock once, and adds those that it gets to holds. A locker that panics must not end the program for the sake of a
// measurement.
func (s *shadow) acquire(ctx context.Context, holds *[]lock.Hold) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("locker panicked: %v", p)
		}
	}()
	request := s.request
	request.Wait = 0
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

// end says that the work has ended, and returns why the locks were not free. It does not wait for anything.
func (s *shadow) end(succeeded bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.answered && s.err == nil {
		if succeeded && s.run.spec.Hold > 0 {
			s.keep = s.run.spec.Hold - (clock.Now() - s.since)
		}
		s.beside(s.release)
	}
	return s.err
}

// release gives the locks back, of which there are no more once there was an answer. Where that fails, the key is busy until
// its lease ends; a panic is the locker's.
func (s *shadow) release() {
	defer s.cancel()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context), s.run.releaseTimeout)
	defer cancel()
	_, _ = together(len(s.holds), func(i int) error { return giveBack(ctx, s.holds[i], s.keep) })
}
