package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Peek returns what an Acquire of r that does not wait would return now, and nil if it would get the lock. It is one question
// that changes nothing, so the answer may be out of date when the caller reads it. A call that would re-enter asks nobody.
func (c *Client) Peek(ctx context.Context, r lock.Request) error {
	name := c.mapName(r.Key)
	if err := cmp.Or(r.Validate(), c.checkSlot(name), c.checkLevels(name, r), context.Cause(ctx), context.Cause(c.ctx)); err != nil {
		return err
	}
	id := lockID{name, r.Kind.Family()}
	if outer, err := c.ancestor(ctx, id, r.Kind); outer != nil || err != nil {
		return err
	}
	if r.Kind == lock.Permit && r.Limit == 0 {
		return c.peekRate(ctx, r)
	}
	switch a := c.query(ctx, c.peekCall(name, r)); {
	case a.WrongType():
		return c.foreign(ctx, time.Now().Add(c.timeout), name, r.Kind, a.Err)
	case a.Err != nil:
		return a.Err
	case a.Values[0] < 0:
		return &lock.KindError{Held: lock.Kind(a.Values[1]), Wanted: r.Kind}
	case a.Values[0] == 0:
		busy := &lock.BusyError{Remaining: max(0, duration(a.Values[1]))}
		if r.Bounded() {
			busy.Level = r.Key
			if n := a.Values[len(a.Values)-1]; n > 1 && int(n) <= len(r.Levels)+1 {
				busy.Level = r.Levels[n-2].Key
			}
			id.name = c.mapName(busy.Level)
		}
		c.heldBy(ctx, busy, id)
		return busy
	}
	return c.peekRate(ctx, r)
}

// peekRate is Peek for the rate of r, if it has one.
func (c *Client) peekRate(ctx context.Context, r lock.Request) error {
	if r.Rate.Permits == 0 {
		return nil
	}
	limiter := RateLimiter{named{c: c, name: r.Key, key: rateName(c.mapName(r.Key))}}
	switch _, n, err := limiter.look(ctx); {
	case err != nil && !errors.Is(err, ErrNoRate):
		return err
	case err == nil && n < 1:
		return &lock.BusyError{Level: r.Key, Rate: true}
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
func (c *Client) peekCall(name string, r lock.Request) call {
	keys, limits := []string{name}, []any(nil)
	switch r.Kind {
	case lock.Fair:
		keys = append(keys, fairQueue(name), fairDeadlines(name))
	case lock.Permit:
		keys, limits = permitKeys(name), append(limits, r.Limit)
		for _, l := range r.Levels {
			keys, limits = append(keys, permitKeys(c.mapName(l.Key))...), append(limits, l.Limit)
		}
	}
	return call{Script: peek, Keys: keys, Args: append([]any{r.Kind.String()}, limits...)}
}
