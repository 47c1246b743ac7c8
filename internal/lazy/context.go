// Package lazy is the context of a hold. Most work under a lock never waits for its end, and is not charged for it.
package lazy

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context with an end of its own. A context of package context, which registers with its parent, is made only when
// somebody asks for Done or derives from it. Open it before use.
type Context struct {
	parent context.Context

	mu    sync.Mutex
	made  context.Context // nil until it is needed
	stop  context.CancelCauseFunc
	cause error // of the first Cancel

	own atomic.Bool // made or cause is set; until then there is nothing but the parent
}

// Open makes c a context under parent.
func (c *Context) Open(parent context.Context) { c.parent = parent }

// Cancel ends c for cause, of which nil is context.Canceled. It has no effect if c or its parent has ended before.
func (c *Context) Cancel(cause error) {
	if stop := c.cancel(cmp.Or(cause, context.Canceled)); stop != nil {
		stop(cause) // runs code of contexts that we know nothing about
	}
}

func (c *Context) cancel(cause error) (stop context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return nil
	}
	c.own.Store(true)
	c.cause = cause
	if c.made == nil && c.parent.Err() != nil {
		c.makeLocked(c.parent) // the parent came first, and what Err has said must stay true
	}
	return c.stop
}

func (c *Context) makeLocked(parent context.Context) {
	c.own.Store(true)
	c.made, c.stop = context.WithCancelCause(parent)
}

// standard returns a context of package context that ends as c does.
func (c *Context) standard() context.Context {
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
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done makes the context of package context.
func (c *Context) Done() <-chan struct{} { return c.standard().Done() }

// Err is nil without a look at what others may be changing where neither c nor its parent has ended.
func (c *Context) Err() error {
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
func (c *Context) Value(key any) any {
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
