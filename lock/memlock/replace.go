package memlock

import (
	"cmp"
	"context"

	"github.com/latchkey-go/latchkey/lock"
)

// turn is a call that newer ones replace.
type turn struct{ end context.CancelCauseFunc }

// Replace announces a call that is about to Acquire r with the context turn, and ends the turns of those before it at the
// key, as [lock.Locker] says.
func (l *Locker) Replace(ctx context.Context, r lock.Request) (newest context.Context, leave func(), err error) {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return nil, nil, err
	}
	if r.Levels = nil; len(l.above(lock.Ancestors(ctx), l.request(r))) > 0 { // what re-enters has its Key already
		return ctx, func() {}, nil
	}
	newest, end := context.WithCancelCause(ctx)
	t := &turn{end}
	if older := l.setTurn(r.Key, t); older != nil {
		older.end(lock.ErrReplaced)
	}
	return newest, func() { l.leaveTurn(r.Key, t) }, nil
}

// setTurn makes t the newest turn at key, and returns the one that was.
func (l *Locker) setTurn(key string, t *turn) (older *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	older = l.turns[key]
	l.turns[key] = t
	return older
}

// leaveTurn ends t, of which nothing is kept if it has been replaced before.
func (l *Locker) leaveTurn(key string, t *turn) {
	l.mu.Lock()
	if l.turns[key] == t {
		delete(l.turns, key)
	}
	l.mu.Unlock()
	t.end(context.Canceled)
}
