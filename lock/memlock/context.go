package memlock

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// holdContext is the context of a hold. Most work under a lock never waits for its end, and is not charged for it: a
// context of package context, which registers with its parent, is made only when somebody asks for Done or derives from it.
type holdContext struct {
	parent context.Context
	link   lock.Link

	mu    sync.Mutex
	made  context.Context // nil until it is needed
	stop  context.CancelCauseFunc
	cause error // set once by cancel

	own atomic.Bool // made or cause is set; until then there is nothing but the parent
}

// cancel ends c. It has no effect if the parent has ended before.
func (c *holdContext) cancel(cause error) {
	c.mu.Lock()
	c.own.Store(true)
	c.cause = cause
	if c.made == nil && c.parent.Err() != nil {
		c.makeLocked(c.parent) // the parent came first, and what Err has said must stay true
	}
	stop := c.stop
	c.mu.Unlock()
	if stop != nil { // runs code of contexts that we know nothing about
		stop(cause)
	}
}

func (c *holdContext) makeLocked(parent context.Context) {
	c.own.Store(true)
	c.made, c.stop = context.WithCancelCause(parent)
}

// standard returns a context of package context that ends as c does.
func (c *holdContext) standard() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
	case c.cause == nil:
		c.makeLocked(c.parent)
	default: // what becomes of the parent makes no difference anymore
		c.makeLocked(context.WithoutCancel(c.parent))
		c.stop(c.cause)
	}
	return c.made
}

// Deadline implements [context.Context], as do the other methods.
func (c *holdContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *holdContext) Done() <-chan struct{} { return c.standard().Done() }

func (c *holdContext) Err() error {
	if !c.own.Load() && c.parent.Err() == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
		return c.made.Err()
	case c.cause != nil:
		return context.Canceled
	}
	return c.parent.Err()
}

// Value asks a context that package context knows, if there is one, so that it finds its own. It does so for Cause, too,
// after c has ended.
func (c *holdContext) Value(key any) any {
	if link := c.link.Value(key); link != nil {
		return link
	}
	if !c.own.Load() {
		return c.parent.Value(key)
	}
	c.mu.Lock()
	from, ended := c.made, c.cause != nil
	c.mu.Unlock()
	switch {
	case from != nil:
	case ended:
		from = c.standard()
	default:
		from = c.parent
	}
	return from.Value(key)
}
