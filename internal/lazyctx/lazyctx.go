// Package lazyctx has a context that can be ended and registers with its parent only when somebody asks for Done or derives from it. Most
// work under a lock never waits for its end, and is not charged for it.
package lazyctx

import (
	"context"
	"sync/atomic"
	"time"
)

// Context is a context from Begin to End. It is a part of what it is the context of.
type Context struct {
	parent context.Context
	own    atomic.Pointer[standard] // nil until it is needed: there is only the parent
}

// standard is a context of package context.
type standard struct {
	context.Context
	stop context.CancelCauseFunc
}

// canceled is that of all that were canceled before anybody needed theirs. It has no values.
var canceled = func() *standard {
	ctx, stop := context.WithCancelCause(context.Background())
	stop(nil)
	return &standard{ctx, stop}
}()

// Begin makes c a context under parent. It comes before anything else.
func (c *Context) Begin(parent context.Context) { c.parent = parent }

// End ends c. A nil cause is context.Canceled. It has no effect if the parent has ended before.
func (c *Context) End(cause error) {
	switch own := c.own.Load(); {
	case own != nil:
		own.stop(cause) // runs code of contexts that we know nothing about
	case c.parent.Err() == nil && (cause != nil || !c.own.CompareAndSwap(nil, canceled)): // rarely
		c.standard().stop(cause)
	}
}

// standard gives c a context of its own, unless it has got one meanwhile, and returns it.
func (c *Context) standard() *standard {
	ctx, stop := context.WithCancelCause(c.parent)
	if !c.own.CompareAndSwap(nil, &standard{ctx, stop}) {
		stop(nil)
	}
	return c.own.Load()
}

// Deadline implements [context.Context], as do the other methods.
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done makes a context of package context, and so does what derives from c.
func (c *Context) Done() <-chan struct{} {
	if own := c.own.Load(); own != nil {
		return own.Done()
	}
	return c.standard().Done()
}

// Err asks the parent as long as c has no end of its own. An end that was seen stays the same.
func (c *Context) Err() error {
	switch own := c.own.Load(); {
	case own != nil:
		return own.Err()
	case c.parent.Err() == nil:
		return nil
	}
	return c.standard().Err()
}

// Value asks a context that package context knows, if there is one or c has ended: Cause finds its own in that, and derived contexts
// what they register with.
func (c *Context) Value(key any) any {
	switch own := c.own.Load(); {
	case own == nil && c.parent.Err() != nil:
		return c.standard().Value(key)
	case own == nil, own == canceled && own.Value(key) == nil:
		return c.parent.Value(key)
	default:
		return own.Value(key)
	}
}
