package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// heldContext marks the context of work that runs under a guard's lock. It is a type of its own, so that the marks of
// nested guards can be walked from the inside out.
type heldContext struct {
	context.Context
	runner   *runner // of the guard
	holds    []lock.Hold
	extended atomic.Bool
	over     atomic.Bool // the locks are given back
}

type heldKey struct{}

func (c *heldContext) Value(key any) any {
	if key == (heldKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// heldBy returns the innermost mark above ctx that the named guard has made, or nil; an empty name is any guard.
func heldBy(ctx context.Context, name string) *heldContext {
	c, _ := ctx.Value(heldKey{}).(*heldContext)
	for c != nil && name != "" && c.runner.spec.Name != name {
		c, _ = c.Context.Value(heldKey{}).(*heldContext)
	}
	return c
}

// Held reports whether ctx belongs to work that the named guard runs under its lock; an empty name is any guard.
// RequireHeld also reports whether the lock has been lost since, or given back.
func Held(ctx context.Context, name string) bool { return heldBy(ctx, name) != nil }

// RequireHeld is an assertion for functions that rely on their caller's lock. It returns nil if ctx belongs to work that
// the named guard runs under its lock and the lock is still held, as far as is known here; an empty name is any guard.
// Without such a guard the error is an *Error that matches ErrFault and lock.ErrNotHeld, because the caller is at fault;
// after a loss, or after the guarded call has ended, it matches ErrLost.
func RequireHeld(ctx context.Context, name string) error {
	c := heldBy(ctx, name)
	if c == nil {
		return notHeld(name)
	}
	return Hold{c}.lost()
}

func notHeld(name string) error {
	return &Error{Guard: name, Err: ErrFault, Cause: fmt.Errorf("%w: called without the guard around it", lock.ErrNotHeld)}
}

// Token returns the fencing token of the lock that the innermost guard around ctx holds. It goes along with what the work
// writes, to a store that refuses tokens smaller than the last one it has seen. There is none, and ok is false, unless that
// guard is Fenced and took one key.
func Token(ctx context.Context) (token int64, ok bool) {
	c := heldBy(ctx, "")
	if c == nil || len(c.holds) != 1 {
		return 0, false
	}
	fenced, ok := c.holds[0].(interface{ Token() int64 })
	if !ok {
		return 0, false
	}
	return fenced.Token(), true
}

// Hold gives guarded work access to its locks: those that the innermost guard around it has taken. It is safe for
// concurrent use.
type Hold struct{ c *heldContext }

// HoldFrom returns the Hold of the innermost guard around ctx. There is none, and ok is false, where work runs without a
// lock: outside of guards, and where a condition or a policy says so.
func HoldFrom(ctx context.Context) (h Hold, ok bool) {
	h.c = heldBy(ctx, "")
	return h, h.c != nil
}

// Name returns the name of the guard.
func (h Hold) Name() string {
	if h.c == nil {
		return ""
	}
	return h.c.runner.spec.Name
}

// Token returns the fencing token, and 0 if there is none; see the function Token.
func (h Hold) Token() int64 {
	if h.c == nil {
		return 0
	}
	token, _ := Token(h.c)
	return token
}

// Remaining returns how long all of the locks are still good if nothing is renewed: 0 once one of them has ended, and
// Forever if there is no end, or none that is known.
func (h Hold) Remaining() time.Duration {
	if h.c == nil || h.c.over.Load() {
		return 0
	}
	left := Forever
	for _, hold := range h.c.holds {
		if hold, ok := hold.(interface{ Remaining() time.Duration }); ok {
			left = min(left, hold.Remaining())
		}
	}
	return left
}

// Check asks the lock service whether all of the locks are still held, for all at once, just before something that
// can't be undone, such as a commit. Its error is an *Error: ErrLost if one is not, ErrOutage if the service did not
// answer; or it matches ctx.Err(). If a locker has no way to ask, Check returns the state that this process knows. Even
// so, a lock can end right after it: a store that is to be safe against that compares tokens.
func (h Hold) Check(ctx context.Context) error {
	// The shortest extension changes nothing of a live hold, and asks the service.
	if err := h.extend(ctx, time.Millisecond); !errors.Is(err, lock.ErrUnsupported) {
		return err
	}
	return nil
}

// Extend lets each of the locks go on for d from now, if it would end earlier, but never beyond MaxHold. It is for guards
// with a Lease; other locks are renewed anyway. Its errors are those of Check, and ErrUnsupported from a locker whose locks
// can't be extended.
func (h Hold) Extend(ctx context.Context, d time.Duration) error {
	if d < time.Millisecond {
		return &Error{Guard: h.Name(), Err: ErrFault, Cause: fmt.Errorf("extended for %v: give at least 1ms", d)}
	}
	return h.extend(ctx, d)
}

func (h Hold) extend(ctx context.Context, d time.Duration) error {
	if h.c == nil {
		return notHeld("")
	}
	if err := h.lost(); err != nil {
		return err
	}
	for _, hold := range h.c.holds {
		if _, ok := hold.(extender); !ok {
			return h.fail(ErrUnsupported, fmt.Errorf("%w: locks of this locker can't be extended", lock.ErrUnsupported))
		}
	}
	if err := h.extendAll(ctx, d); err != nil {
		return h.failed(ctx, err)
	}
	h.c.extended.Store(true)
	return nil
}

// extender is a hold that can go on for longer.
type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

// extendAll asks for all holds at once. If several fail, it returns a loss rather than an unknown outcome.
func (h Hold) extendAll(ctx context.Context, d time.Duration) error {
	if len(h.c.holds) == 1 {
		return h.c.holds[0].(extender).Extend(ctx, d)
	}
	answers, panicked := together(len(h.c.holds), func(i int) error { return h.c.holds[i].(extender).Extend(ctx, d) })
	if panicked != nil {
		panic(panicked)
	}
	var first error
	for _, a := range answers {
		if isLoss(a.err) {
			return a.err
		}
		first = cmp.Or(first, a.err)
	}
	return first
}

// isLoss reports whether err says that a lock is not held anymore.
func isLoss(err error) bool { return errors.Is(err, lock.ErrLost) || errors.Is(err, lock.ErrNotHeld) }

// lost is the loss of one of the locks as an *Error, as far as is known here.
func (h Hold) lost() error {
	if cause := context.Cause(h.c); errors.Is(cause, lock.ErrLost) {
		return h.fail(ErrLost, cause)
	}
	if h.Remaining() == 0 {
		return h.fail(ErrLost, lock.ErrNotHeld)
	}
	return nil
}

// failed is err of a hold as the error for the work.
func (h Hold) failed(ctx context.Context, err error) error {
	switch {
	case isLoss(err):
		return h.fail(ErrLost, err)
	case ctx.Err() != nil:
		return fmt.Errorf("guard %q: %w", h.c.runner.spec.Name, err)
	case errors.Is(err, lock.ErrRefused):
		return h.fail(ErrFault, err)
	}
	return h.fail(ErrOutage, err)
}

func (h Hold) fail(sentinel, cause error) error {
	return &Error{Guard: h.c.runner.spec.Name, Err: sentinel, Cause: cause}
}
