package redisson

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Peek returns what an Acquire of r that does not wait would return now, and nil if it would get the lock. It is one question
// that changes nothing, so the answer may be out of date when the caller reads it. A call that would re-enter asks nobody.
func (c *Client) Peek(ctx context.Context, r lock.Request) error {
	name := c.mapName(r.Key)
	if err := cmp.Or(r.Validate(), c.checkSlot(name), context.Cause(ctx), context.Cause(c.ctx)); err != nil {
		return err
	}
	id := lockID{name, r.Kind.Family()}
	if outer, err := c.ancestor(ctx, id, r.Kind); outer != nil || err != nil {
		return err
	}
	switch a := c.query(ctx, peekCall(name, r)); {
	case a.WrongType():
		return c.foreign(ctx, time.Now().Add(c.timeout), name, r.Kind, a.Err)
	case a.Err != nil:
		return a.Err
	case a.Values[0] < 0:
		return &lock.KindError{Held: lock.Kind(a.Values[1]), Wanted: r.Kind}
	case a.Values[0] == 0:
		busy := &lock.BusyError{Remaining: max(0, duration(a.Values[1]))}
		c.heldBy(ctx, busy, id)
		return busy
	}
	return nil
}

// foreign returns why a key can't be taken that is of a type with which the scripts of a kind can't work.
func (c *Client) foreign(ctx context.Context, by time.Time, name string, wanted lock.Kind, err error) error {
	const number, text = 1, 2
	switch a := c.road.Ask(ctx, by, call{Script: foreign, Keys: []string{name}}); {
	case a.Err == nil && a.Values[0] == number: // of all that this package makes, that is a semaphore
		return fmt.Errorf("%w: %w", &lock.KindError{Held: lock.Permit, Wanted: wanted}, err)
	case a.Err == nil && a.Values[0] == text:
		return fmt.Errorf("redisson: %w: the key holds a string, perhaps a lock of redsync, redislock or SET NX (docs/migrate): %w", lock.ErrUnsupported, err)
	}
	return fmt.Errorf("redisson: %w: the key holds no %v lock, but something of another type: %w", lock.ErrUnsupported, wanted, err)
}

// peekCall asks for what the family's enter would be answered.
func peekCall(name string, r lock.Request) call {
	keys := []string{name}
	switch r.Kind {
	case lock.Fair:
		keys = append(keys, fairQueue(name), fairDeadlines(name))
	case lock.Permit:
		keys = permitKeys(name)
	}
	return call{Script: peek, Keys: keys, Args: []any{r.Kind.String(), r.Limit}}
}
