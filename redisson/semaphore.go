package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Semaphore is Redisson's RSemaphore: a number of permits in Redis, which are taken and given back by anybody. Permits
// that a crashed process had are not given back: most callers should use [PermitExpirableSemaphore].
//
// A semaphore without TrySetPermits has no permits. It is only a name and a client, free to make and safe for concurrent
// use. No permit is lost or counted twice when an answer of Redis is lost on the way; see [ErrPending] for changes.
type Semaphore struct {
	c    *Client
	name string // as given
	key  string // as mapped
}

// Semaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) Semaphore(name string) *Semaphore {
	return &Semaphore{c: c, name: name, key: c.mapName(name)}
}

// Name returns the name of the semaphore as it was given.
func (s *Semaphore) Name() string { return s.name }

// TrySetPermits gives a semaphore that does not exist n permits, and reports whether it did. 0 is allowed: a gate that a
// Release opens.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	return s.set(ctx, n, 0)
}

// TrySetPermitsFor is TrySetPermits for a semaphore that ceases to exist after ttl, at least 1ms.
func (s *Semaphore) TrySetPermitsFor(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if ttl < time.Millisecond {
		return false, fmt.Errorf("redisson: a semaphore can't live for %v: want at least 1ms", ttl)
	}
	return s.set(ctx, n, ttl)
}

func (s *Semaphore) set(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if err := s.check(n, 0); err != nil {
		return false, err
	}
	return s.c.setPermits(ctx, s.key, n, ttl)
}

// setPermits makes a semaphore of either kind.
func (c *Client) setPermits(ctx context.Context, key string, n int, ttl time.Duration) (bool, error) {
	a, err := c.change(ctx, semaphoreSet, []string{key}, semaphoreChannel(key), n, millis(ttl))
	return err == nil && a.Values[0] == 1, err
}

// AddPermits adds n free permits, or takes them away if n is negative, also below zero. Redisson's rule is that a time to
// live of the semaphore ends with that.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	if err := s.check(n, -math.MaxInt32); err != nil {
		return err
	}
	return s.c.addPermits(ctx, n, "value", s.key)
}

func (c *Client) addPermits(ctx context.Context, n int, message string, keys ...string) error {
	_, err := c.change(ctx, semaphoreAdd, keys, semaphoreChannel(keys[0]), n, message)
	return err
}

// DrainPermits takes all free permits and returns how many they were. As with AddPermits, a time to live ends.
func (s *Semaphore) DrainPermits(ctx context.Context) (int, error) {
	if err := cmp.Or(s.c.checkName(s.name), context.Cause(ctx), context.Cause(s.c.ctx)); err != nil {
		return 0, err
	}
	r := s.c.request(s.key)
	a := s.c.take(ctx, time.Now().Add(s.c.timeout), r, s.c.once(r, semaphoreDrain, []string{s.key}), s.cancel(r))
	if a.Err != nil {
		return 0, a.Err
	}
	return int(a.Values[0]), nil
}

// AvailablePermits returns how many permits are free.
func (s *Semaphore) AvailablePermits(ctx context.Context) (int, error) {
	n, err := s.c.number(ctx, s.name, s.key)
	return int(n), err
}

// Delete removes the semaphore, and reports whether there was one. Waiters are not notified; they wait for permits of the next
// semaphore of that name. So does Redisson's.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	return s.c.remove(ctx, s.name, s.key)
}

// Acquire takes n permits at once, waiting as long as ctx. No permits, an n of 0, can be had at once, and need no semaphore.
// Those of a client's goroutines who want as many are served in the order in which they came; a smaller request passes a
// larger one. The error is the cause of ctx, or says why Redis could not be asked; then no permit is taken.
func (s *Semaphore) Acquire(ctx context.Context, n int) error { return s.acquire(ctx, n, -1) }

// TryAcquire takes n permits at once if they can be had within wait; a wait of 0 or less tries once, without standing in
// line. The error is nil if they can't.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, wait time.Duration) (bool, error) {
	return taken(s.acquire(ctx, n, max(wait, 0)))
}

// taken is the result of a TryAcquire.
func taken(err error) (bool, error) {
	if errors.Is(err, lock.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (s *Semaphore) acquire(ctx context.Context, n int, wait time.Duration) error {
	if err := s.check(n, 0); n == 0 || err != nil {
		return err
	}
	return s.c.awaitPermits(ctx, lineID{name: s.key, kind: semaphoreLine, permits: int64(n)}, semaphoreChannel(s.key), wait, func(by time.Time) (bool, time.Duration, error) {
		r := s.c.request(s.key)
		a := s.c.take(ctx, by, r, s.c.once(r, semaphoreAcquire, []string{s.key}, n), s.cancel(r))
		return a.Err == nil && a.Values[0] > 0, -1, a.Err
	})
}

// cancel is the call that undoes what a request took.
func (s *Semaphore) cancel(r request) call {
	return call{Script: semaphoreCancel, Keys: []string{s.key, r.receipt}, Args: append([]any{semaphoreChannel(s.key)}, s.c.noted(r)...)}
}

// Release gives n permits back and wakes waiters. Like Redisson's it does not ask whether they were taken, and makes a
// semaphore that does not exist. It goes out even if ctx has ended; ctx bounds only the wait for the answer.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.release(ctx, n, 0)
	return err
}

// ReleaseIfExists is Release unless the semaphore does not exist (any more). It reports whether it gave permits back; false for
// an n of 0.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.release(ctx, n, 1)
}

func (s *Semaphore) release(ctx context.Context, n, ifExists int) (bool, error) {
	if err := s.check(n, 0); n == 0 || err != nil {
		return false, err
	}
	a, err := s.c.change(ctx, semaphoreRelease, []string{s.key}, semaphoreChannel(s.key), n, ifExists)
	return err == nil && a.Values[0] == 1, err
}

// check refuses what Redis shall not be asked: an empty name, and numbers that Java has no int for.
func (s *Semaphore) check(n, least int) error {
	return cmp.Or(s.c.checkName(s.name), checkPermits(int64(n), int64(least), math.MaxInt32))
}

func checkPermits(n, least, most int64) error {
	if n < least || n > most {
		return fmt.Errorf("redisson: %d permits are not between %d and %d", n, least, most)
	}
	return nil
}

// awaitPermits waits for n permits of an object. Those who want as many stand in one line; a smaller request passes a larger
// one.
func (c *Client) awaitPermits(ctx context.Context, id lineID, channel string, wait time.Duration, try func(by time.Time) (bool, time.Duration, error)) error {
	if err := cmp.Or(context.Cause(ctx), context.Cause(c.ctx)); err != nil {
		return err
	}
	w := &waiter{c: c, ctx: ctx, try: try}
	return w.run(id, channel, wait)
}
