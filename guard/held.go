package guard

import (
	"context"

	"github.com/latchkey-go/latchkey/lock"
)

// heldContext marks the context of work that runs under a guard's lock. It is a type of its own, so that the marks of
// nested guards can be walked from the inside out.
type heldContext struct {
	context.Context
	guard string
	hold  lock.Hold // nil if the guard took several
}

type heldKey struct{}

func (c *heldContext) Value(key any) any {
	if key == (heldKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Held reports whether ctx belongs to work that the named guard runs under its lock; an empty name is any guard. It
// tells a function that relies on its caller's lock whether it has been called the right way. Whether the lock has been
// lost since, or given back, ctx.Err tells.
func Held(ctx context.Context, name string) bool {
	c, ok := ctx.Value(heldKey{}).(*heldContext)
	for ok && name != "" && c.guard != name {
		c, ok = c.Context.Value(heldKey{}).(*heldContext)
	}
	return ok
}

// Token returns the fencing token of the lock that the innermost guard around ctx holds. It goes along with what the work
// writes, to a store that refuses tokens smaller than the last one it has seen. There is none, and ok is false, unless that
// guard is Fenced and took one key.
func Token(ctx context.Context) (token int64, ok bool) {
	c, ok := ctx.Value(heldKey{}).(*heldContext)
	if !ok {
		return 0, false
	}
	fenced, ok := c.hold.(interface{ Token() int64 })
	if !ok {
		return 0, false
	}
	return fenced.Token(), true
}
