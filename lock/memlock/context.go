package memlock

import (
	"github.com/latchkey-go/latchkey/internal/lazy"
	"github.com/latchkey-go/latchkey/lock"
)

// holdContext is the context of a hold.
type holdContext struct {
	lazy.Context
	link lock.Link
}

// Value implements [context.Context].
func (c *holdContext) Value(key any) any {
	if link := c.link.Value(key); link != nil {
		return link
	}
	return c.Context.Value(key)
}
