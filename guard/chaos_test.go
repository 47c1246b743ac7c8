package guard_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// chaos is the locker of one guard. All share one memlock.
type chaos struct {
	*play
	guard   string
	gathers bool
}

func (c *chaos) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	call, shadow := historyOf(ctx), strings.HasPrefix(r.Key, "latchkey-shadow:")
	if c.chance(15) {
		c.round(time.Duration(c.n(300)) * time.Millisecond)
	}
	switch {
	case c.chance(3):
		return nil, errors.New("connection reset")
	case c.chance(1):
		return nil, lock.ErrRefused
	case c.chance(1):
		return nil, lock.ErrUnsupported
	case c.chance(1):
		if !shadow {
			call.mu.Lock()
			call.lockPanicked = true
			call.mu.Unlock()
		}
		panic(errPanic)
	}
	hold, err := c.mem.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	h := &chaosHold{Hold: hold, chaos: c, call: call, key: r.Key, left: guard.Forever}
	call.mu.Lock()
	if shadow {
		call.shadows = append(call.shadows, h)
		call.mu.Unlock()
		return h, nil
	}
	if call.holds == nil {
		call.holds = make(map[string][]*chaosHold)
	}
	call.holds[c.guard] = append(call.holds[c.guard], h)
	call.mu.Unlock()
	if c.chance(10) {
		time.AfterFunc(c.odd(time.Duration(c.n(2000))*time.Millisecond), func() { c.mem.ForceUnlock(r.Key) })
	}
	return h, nil
}

// Replace may fail as an Acquire may, also after it has replaced others.
func (c *chaos) Replace(ctx context.Context, r lock.Request) (context.Context, func(), error) {
	turn, leave, err := c.mem.Replace(ctx, r)
	if err == nil && c.chance(3) {
		leave()
		return nil, nil, errors.New("connection reset")
	}
	return turn, leave, err
}

// gatheringChaos gives back the locks of a call together.
type gatheringChaos struct{ chaos }

func (g *gatheringChaos) ReleaseAll(ctx context.Context, holds []lock.Hold) error {
	var errs []error
	for _, h := range holds {
		errs = append(errs, h.Release(ctx))
	}
	return errors.Join(errs...)
}

// chaosHold has what a hold of memlock has.
type chaosHold struct {
	lock.Hold
	*chaos
	call *history
	key  string

	// The call's mutex guards the rest.
	used     bool // by the work
	released int
	left     time.Duration // when the work returned
	gone     bool          // so answered the release,
	answered time.Time     // then
}

func (h *chaosHold) Remaining() time.Duration {
	return h.Hold.(interface{ Remaining() time.Duration }).Remaining()
}

func (h *chaosHold) Release(ctx context.Context) error {
	return h.release(func() error { return h.Hold.Release(ctx) })
}

func (h *chaosHold) Keep(ctx context.Context, d time.Duration) error {
	if h.call.ran == 0 || h.call.workErr != nil {
		h.t.Errorf("%s: %s is kept, but the work has not succeeded", h.guard, h.key)
	}
	return h.release(func() error {
		return h.Hold.(interface {
			Keep(ctx context.Context, d time.Duration) error
		}).Keep(ctx, d)
	})
}

func (h *chaosHold) release(release func() error) (err error) {
	h.call.mu.Lock()
	h.released++
	if h.used {
		h.t.Errorf("%s: %s is released while the work runs", h.guard, h.key)
	}
	h.call.mu.Unlock()
	if h.chance(15) {
		time.Sleep(h.odd(time.Duration(h.n(2000)) * time.Millisecond))
	}
	err = release()
	h.call.mu.Lock()
	defer h.call.mu.Unlock()
	switch {
	case !h.gathers && h.chance(3):
		h.call.lockPanicked = h.call.lockPanicked || !strings.HasPrefix(h.key, "latchkey-shadow:")
		panic(errPanic)
	case err == nil && h.chance(5):
		return errors.New("connection reset")
	}
	h.gone, h.answered = err != nil, time.Now()
	return err
}
