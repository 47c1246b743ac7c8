package redisson

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
)

// Semaphore is Redisson's RSemaphore: a number of permits in Redis, which are taken and given back by anybody. Permits
// that a crashed process had are not given back: most callers should use [PermitExpirableSemaphore].
//
// A semaphore without TrySetPermits has no permits. It is only a name and a client, free to make and safe for concurrent
// use. No permit is lost or counted twice when an answer of Redis is lost on the way; see [ErrPending] for changes.
type Semaphore struct{ permits }

// Semaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) Semaphore(name string) *Semaphore { return &Semaphore{permits{c.named(name)}} }

// permits is what both kinds of semaphores are.
type permits struct{ named }

// TrySetPermits gives a semaphore that does not exist n permits, and reports whether it did. 0 is allowed: a gate that a
// Release opens.
func (s *permits) TrySetPermits(ctx context.Context, n int) (bool, error) { return s.set(ctx, n, 0) }

// TrySetPermitsFor is TrySetPermits for a semaphore that ceases to exist after ttl, at least 1ms.
func (s *Semaphore) TrySetPermitsFor(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if ttl < time.Millisecond {
		return false, fmt.Errorf("redisson: a semaphore can't live for %v: want at least 1ms", ttl)
	}
	return s.set(ctx, n, ttl)
}

func (s *permits) set(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if err := s.check(int64(n), 0, math.MaxInt32); err != nil {
		return false, err
	}
	return s.c.change(ctx, numberSet, []string{s.key}, s.channel(), n, n, millis(ttl))
}

func (s *permits) channel() string { return semaphoreChannel(s.key) }

// AddPermits adds n free permits, or takes them away if n is negative, also below zero. Redisson's rule is that a time to
// live of the semaphore ends with that.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	return s.add(ctx, n, "value", s.key)
}

func (s *permits) add(ctx context.Context, n int, message string, keys ...string) error {
	if err := s.check(int64(n), -math.MaxInt32, math.MaxInt32); err != nil {
		return err
	}
	_, err := s.c.change(ctx, semaphoreAdd, keys, s.channel(), n, message)
	return err
}

// DrainPermits takes all free permits and returns how many they were. As with AddPermits, a time to live ends.
func (s *Semaphore) DrainPermits(ctx context.Context) (int, error) {
	if err := cmp.Or(s.c.checkName(s.name), context.Cause(ctx), context.Cause(s.c.ctx)); err != nil {
		return 0, err
	}
	n, err := s.take(ctx, time.Now().Add(s.c.timeout), "all")
	return int(n), err
}

// AvailablePermits returns how many permits are free.
func (s *Semaphore) AvailablePermits(ctx context.Context) (int, error) {
	n, err := s.c.number(ctx, s.name, s.key)
	return int(n), err
}

// Delete removes the semaphore, and reports whether there was one. Waiters are not notified; they wait for permits of the next
// semaphore of that name. So does Redisson's.
func (s *Semaphore) Delete(ctx context.Context) (bool, error) {
	return s.remove(ctx, s.key)
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

func (s *Semaphore) acquire(ctx context.Context, n int, wait time.Duration) error {
	if err := s.check(int64(n), 0, math.MaxInt32); n == 0 || err != nil {
		return err
	}
	return s.await(ctx, semaphoreQueue, int64(n), wait, func(by time.Time) (bool, time.Duration, error) {
		took, err := s.take(ctx, by, n)
		return took > 0, -1, err
	})
}

// take asks once for so many permits, or "all", and returns how many were taken.
func (s *Semaphore) take(ctx context.Context, by time.Time, n any) (took int64, err error) {
	r, keys := s.c.request(s.key), []string{s.key}
	a := s.c.take(ctx, by, r, s.c.once(r, semaphoreAcquire, keys, n), s.c.once(r.undo(), semaphoreRelease, keys, s.channel(), "undo", r.number))
	if a.Err != nil {
		return 0, a.Err
	}
	return a.Values[0], nil
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
	if err := s.check(int64(n), 0, math.MaxInt32); n == 0 || err != nil {
		return false, err
	}
	return s.c.change(ctx, semaphoreRelease, []string{s.key}, s.channel(), n, ifExists)
}
