// Package lazyctx has a context that can be ended and registers with its parent only when somebody asks for Done or derives from it. Most
// work under a lock never waits for its end, and is not charged for it.
package lazyctx

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context is a context from Begin to End. It is a part of what it is the context of.
type Context struct {
	parent context.Context

	mu    sync.Mutex
	made  *standard   // nil until it is needed
	own   atomic.Bool // made or cause is set; until then there is only the parent
	cause error       // of the first End
}

// standard is a context of package context.
type standard struct {
	context.Context
	stop context.CancelCauseFunc
}

// Begin makes c a context under parent. It comes before anything else.
func (c *Context) Begin(parent context.Context) { c.parent = parent }

// End ends c. A nil cause is context.Canceled. It has no effect if the parent has ended before.
func (c *Context) End(cause error) {
	cause, before := cmp.Or(cause, context.Canceled), c.parent.Err() != nil
	c.mu.Lock()
	c.own.Store(true)
	c.cause = cmp.Or(c.cause, cause)
	if before && c.made == nil {
		c.makeLocked(c.parent) // so it has ended, as the parent has
	}
	made := c.made
	c.mu.Unlock()
	if made != nil { // runs code of contexts that we know nothing about
		made.stop(cause)
	}
}

func (c *Context) makeLocked(parent context.Context) {
	c.own.Store(true)
	ctx, stop := context.WithCancelCause(parent)
	c.made = &standard{ctx, stop}
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
		c.made.stop(c.cause)
	}
	return c.made.Context
}

// Deadline implements [context.Context], as do the other methods.
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done makes a context of package context, and so does what derives from c.
func (c *Context) Done() <-chan struct{} { return c.standard().Done() }

// Err asks the parent as long as c has no end of its own.
func (c *Context) Err() error {
	if c.live() {
		return nil
	}
	return c.standard().Err()
}

// Value asks a context that package context knows, if there is one or c has ended: Cause finds its own in that, and derived contexts
// what they register with.
func (c *Context) Value(key any) any {
	if c.live() {
		return c.parent.Value(key)
	}
	return c.standard().Value(key)
}

// live reports whether there is only a parent, which goes on.
func (c *Context) live() bool { return !c.own.Load() && c.parent.Err() == nil }
