package redisson

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
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
type Semaphore struct{ permits }

// Semaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) Semaphore(name string) *Semaphore { return &Semaphore{permits{c.named(name)}} }

// permits is the common part of both kinds of semaphores.
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

// Acquire takes n permits at once, waiting as long as ctx. No permits, an n of 0, come at once, and need no semaphore.
// Goroutines of a client that want as many are served in the order in which they came; a smaller request passes a
// larger one. The error is the cause of ctx, or says why Redis did not answer; then no permit is taken.
func (s *Semaphore) Acquire(ctx context.Context, n int) error { return s.acquire(ctx, n, -1) }

// TryAcquire takes n permits at once if they become free within wait; a wait of 0 or less tries once, without standing
// in line. The error is nil if they do not.
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

// PermitExpirableSemaphore is Redisson's RPermitExpirableSemaphore: permits with ids, each of which becomes free by itself
// when its lease is over, so that those of a crashed process come back.
//
// A permit ends with its lease without notice: work that may take longer must call UpdateLease in time. Leases are counted
// by the clock of Redis, where Redisson counts by that of its host.
//
// A semaphore without TrySetPermits has no permits. It is only a name and a client, free to make and safe for concurrent
// use. No permit is lost or counted twice when an answer of Redis is lost on the way; see [ErrPending] for changes.
type PermitExpirableSemaphore struct{ permits }

// PermitExpirableSemaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) PermitExpirableSemaphore(name string) *PermitExpirableSemaphore {
	return &PermitExpirableSemaphore{permits{c.named(name)}}
}

// SetPermits sets how many permits there are, free and taken ones together, and makes a semaphore that does not exist. If more
// are taken, none is free until enough of them have been given back.
func (s *PermitExpirableSemaphore) SetPermits(ctx context.Context, n int) error {
	if err := s.check(int64(n), 0, math.MaxInt32); err != nil {
		return err
	}
	return s.change(ctx, permitsSet, n)
}

// AddPermits adds n permits, or takes them away if n is negative. Redisson's rule is that a time to live of the semaphore
// ends with that.
func (s *PermitExpirableSemaphore) AddPermits(ctx context.Context, n int) error {
	return s.add(ctx, n, "change", s.keys()...)
}

// AvailablePermits returns how many permits are free.
func (s *PermitExpirableSemaphore) AvailablePermits(ctx context.Context) (int, error) {
	free, _, err := s.count(ctx)
	return free, err
}

// AcquiredPermits returns how many permits are taken.
func (s *PermitExpirableSemaphore) AcquiredPermits(ctx context.Context) (int, error) {
	_, taken, err := s.count(ctx)
	return taken, err
}

// Permits returns how many permits there are, free and taken ones together.
func (s *PermitExpirableSemaphore) Permits(ctx context.Context) (int, error) {
	free, taken, err := s.count(ctx)
	return free + taken, err
}

func (s *PermitExpirableSemaphore) count(ctx context.Context) (free, taken int, err error) {
	a := s.look(ctx, nil)
	if a.Err != nil {
		return 0, 0, a.Err
	}
	return int(a.Values[0]), int(a.Values[1]), nil
}

// look asks for the numbers of permits, and for what is left of the lease of the permit with that id.
func (s *PermitExpirableSemaphore) look(ctx context.Context, id []byte) answer {
	return s.c.queryNamed(ctx, s.name, call{Script: permitsLook, Keys: s.keys(), Args: []any{s.channel(), id}})
}

// Delete removes the semaphore with all permits that are taken, and reports whether there was one. Holds of kind lock.Permit
// are lost: this client's at once, others when they are next renewed. Waiters are not notified; they wait for permits of the next
// semaphore of that name. So do Redisson's.
func (s *PermitExpirableSemaphore) Delete(ctx context.Context) (bool, error) {
	asked := present()
	ok, err := s.remove(ctx, permitKeys(s.key)...)
	if ok {
		s.c.registry.forced(lockID{s.key, lock.Permit.Family()}, asked, ErrForced)
	}
	return ok, err
}

// Acquire takes a permit, waiting as long as ctx, and returns its id. The permit becomes free when lease is over, which
// counts from when Redis gave it: up to [Timeout] before Acquire returns if an answer is lost. With a lease of 0 it
// never becomes free by itself, also if this process crashes. Goroutines of one client are served in the order in which
// they came. The error is the cause of ctx, or says why Redis did not answer; then no permit is taken.
func (s *PermitExpirableSemaphore) Acquire(ctx context.Context, lease time.Duration) (id string, err error) {
	return first(s.AcquireN(ctx, 1, lease))
}

// AcquireN takes n permits at once, all or none, and returns their ids. The lease is that of each; see Acquire. No
// permits, an n of 0, come at once, and need no semaphore; more than 4,096 are refused. Goroutines of a client that
// want as many are served in the order in which they came; a smaller request passes a larger one.
func (s *PermitExpirableSemaphore) AcquireN(ctx context.Context, n int, lease time.Duration) (ids []string, err error) {
	return s.acquire(ctx, n, -1, lease)
}

// TryAcquire takes a permit if one becomes free within wait; a wait of 0 or less tries once, without standing in line.
// The error is nil if none does. The lease is Acquire's.
func (s *PermitExpirableSemaphore) TryAcquire(ctx context.Context, wait, lease time.Duration) (id string, ok bool, err error) {
	ids, ok, err := s.TryAcquireN(ctx, 1, wait, lease)
	id, err = first(ids, err)
	return id, ok, err
}

// TryAcquireN is to AcquireN what TryAcquire is to Acquire.
func (s *PermitExpirableSemaphore) TryAcquireN(ctx context.Context, n int, wait, lease time.Duration) (ids []string, ok bool, err error) {
	ids, err = s.acquire(ctx, n, max(wait, 0), lease)
	ok, err = taken(err)
	return ids, ok, err
}

func first(ids []string, err error) (string, error) {
	if len(ids) == 0 {
		return "", err
	}
	return ids[0], err
}

func (s *PermitExpirableSemaphore) acquire(ctx context.Context, n int, wait, lease time.Duration) (ids []string, err error) {
	if err := cmp.Or(checkLease(lease), s.check(int64(n), 0, atOnce)); n == 0 || err != nil {
		return nil, err
	}
	err = s.await(ctx, permitsQueue, int64(n), wait, func(by time.Time) (ok bool, ttl time.Duration, err error) {
		ids, ttl, err = s.try(ctx, by, n, lease)
		return ids != nil || errors.Is(err, errTooLate), ttl, err
	})
	return ids, err
}

// try asks for n permits once. Each try has ids of its own, so that undoing one can't free the permits of a later one. It
// returns when the next permit becomes free by itself, if it is refused and that is known.
func (s *PermitExpirableSemaphore) try(ctx context.Context, by time.Time, n int, lease time.Duration) ([]string, time.Duration, error) {
	ids, args := make([]string, n), make([]any, n)
	for i := range ids {
		id := make([]byte, 16)
		rand.Read(id) // never fails
		ids[i], args[i] = hex.EncodeToString(id), id
	}
	asked, r := time.Now(), s.c.request(s.key)
	undo := s.c.once(r.undo(), permitsRelease, s.keys(), append([]any{s.channel()}, args...)...)
	a := s.c.take(ctx, by, r, s.c.once(r, permitsAcquire, s.keys(), append([]any{s.channel(), millis(lease)}, args...)...), undo)
	switch {
	case a.Err != nil:
		return nil, -1, a.Err
	case a.Values[0] == 0:
		return nil, duration(a.Values[1]), nil
	case lease > 0 && time.Since(asked) >= lease: // an earlier attempt may have taken it
		return nil, -1, errTooLate
	}
	return ids, -1, nil
}

// Release gives the permits with these ids back at once, whoever took them, and wakes waiters. It gives back all or none: the
// error matches lock.ErrNotHeld when one of them was given back before, is named twice, or has come to the end of its lease.
// Without ids it does nothing. It goes out even if ctx has ended; ctx bounds only the wait for the answer.
func (s *PermitExpirableSemaphore) Release(ctx context.Context, ids ...string) error {
	if err := s.check(int64(len(ids)), 0, atOnce); len(ids) == 0 || err != nil {
		return err
	}
	args, seen := []any{}, map[string]bool{}
	for _, id := range ids {
		raw, err := s.parse(id)
		if err != nil {
			return err
		}
		if seen[string(raw)] {
			return fmt.Errorf("redisson: %w: a permit is named twice", lock.ErrNotHeld)
		}
		seen[string(raw)] = true
		args = append(args, raw)
	}
	return s.change(ctx, permitsRelease, args...)
}

// UpdateLease gives the permit with that id a new lease, which counts from when Redis does it and may be shorter than
// the old one; a lease of 0 has no end. The error matches lock.ErrNotHeld when the permit was given back or its lease
// is over. ctx means what it means to Release.
func (s *PermitExpirableSemaphore) UpdateLease(ctx context.Context, id string, lease time.Duration) error {
	raw, err := s.parse(id)
	if err := cmp.Or(checkLease(lease), err); err != nil {
		return err
	}
	return s.change(ctx, permitsUpdate, raw, millis(lease))
}

// LeaseTime returns how long the permit with that id lasts. It is negative for one without end. The error matches
// lock.ErrNotHeld when it was given back or its lease is over.
func (s *PermitExpirableSemaphore) LeaseTime(ctx context.Context, id string) (time.Duration, error) {
	raw, err := s.parse(id)
	if err != nil {
		return 0, err
	}
	a := s.look(ctx, raw)
	switch {
	case a.Err != nil:
		return 0, a.Err
	case a.Values[2] == 0:
		return 0, lock.ErrNotHeld
	}
	return duration(a.Values[2]), nil
}

// change makes a change once, whatever is lost on the way. It is to permits that somebody has, if any.
func (s *PermitExpirableSemaphore) change(ctx context.Context, sc *script, args ...any) error {
	ok, err := s.c.change(ctx, sc, s.keys(), append([]any{s.channel()}, args...)...)
	if err == nil && !ok {
		return lock.ErrNotHeld
	}
	return err
}

func (s *PermitExpirableSemaphore) keys() []string { return []string{s.key, permitsKey(s.key)} }

// parse returns the bytes of an id, which is their hexadecimal text as in Redisson.
func (s *PermitExpirableSemaphore) parse(id string) ([]byte, error) {
	if err := s.c.checkName(s.name); err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) == 0 {
		return nil, errors.New("redisson: id of a permit is not hexadecimal")
	}
	return raw, nil
}

// atOnce is how many permits one call may take or give back. More would hold up Redis, and Redisson's script could not give them
// back.
const atOnce = 4096

func checkLease(lease time.Duration) error {
	if lease != 0 && lease < time.Millisecond {
		return fmt.Errorf("redisson: lease %v of a permit is under 1ms", lease)
	}
	return nil
}
