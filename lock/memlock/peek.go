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
	above := l.above(lock.Ancestors(ctx), h)
	f, err := l.peek(h, above)
	if f == nil {
		return err
	}
	return f.busy(ctx, 0)
}

// peek returns why h can't be had at once: err, or else f, or neither.
func (l *Locker) peek(h *hold, above []*hold) (*refusal, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, err := l.obstacle(h, above, nil)
	if g == nil {
		return nil, err
	}
	f := g.refusal(h)
	return &f, nil
}
