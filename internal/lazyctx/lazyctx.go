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

// canceled stands for one that was canceled before anybody needed it.
var canceled = new(standard)

// Begin makes c a context under parent. It comes before anything else.
func (c *Context) Begin(parent context.Context) { c.parent = parent }

// End ends c. A nil cause is context.Canceled. It has no effect if the parent has ended before.
func (c *Context) End(cause error) {
	switch own := c.own.Load(); {
	case own == canceled, own == nil && c.parent.Err() != nil: // it has ended
		return
	case cause == nil && c.own.CompareAndSwap(nil, canceled): // as nearly always
		return
	}
	c.standard().stop(cause) // runs code of contexts that we know nothing about
}

// standard returns a context of package context that ends as c does.
func (c *Context) standard() *standard {
	for {
		own, parent := c.own.Load(), c.parent
		switch own {
		case nil:
		case canceled: // what becomes of the parent makes no difference anymore
			parent = context.WithoutCancel(parent)
		default:
			return own
		}
		ctx, stop := context.WithCancelCause(parent)
		if own == canceled {
			stop(context.Canceled)
		}
		made := &standard{ctx, stop}
		if c.own.CompareAndSwap(own, made) {
			return made
		}
		stop(nil)
	}
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
func (c *Context) live() bool { return c.own.Load() == nil && c.parent.Err() == nil }
