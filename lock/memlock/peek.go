package memlock

import (
	"cmp"
	"context"

	"github.com/latchkey-go/latchkey/lock"
)

// Peek returns what an Acquire of r that does not wait would return now, and nil if it would get the lock. It takes
// nothing, so the answer may be out of date when the caller reads it.
func (l *Locker) Peek(ctx context.Context, r lock.Request) error {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return err
	}
	h := l.request(r)
	_, f, err := l.arrive(h, l.above(lock.Ancestors(ctx), h), false)
	if f == nil {
		return err
	}
	return f.busy(ctx, 0)
}
