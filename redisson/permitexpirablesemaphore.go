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

// PermitExpirableSemaphore is Redisson's RPermitExpirableSemaphore: permits with ids, each of which becomes free by itself
// when its lease is over, so that those of a crashed process come back.
//
// A permit ends with its lease without notice: work that may take longer must call UpdateLease in time. Leases are counted
// by the clock of Redis, where Redisson counts by that of its host.
//
// A semaphore without TrySetPermits has no permits. It is only a name and a client, free to make and safe for concurrent
// use. No permit is lost or counted twice when an answer of Redis is lost on the way; see [ErrPending] for changes.
type PermitExpirableSemaphore struct {
	c    *Client
	name string // as given
	key  string // as mapped
}

// PermitExpirableSemaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) PermitExpirableSemaphore(name string) *PermitExpirableSemaphore {
	return &PermitExpirableSemaphore{c: c, name: name, key: c.mapName(name)}
}

// Name returns the name of the semaphore as it was given.
func (s *PermitExpirableSemaphore) Name() string { return s.name }

// TrySetPermits gives a semaphore that does not exist n permits, and reports whether it did.
func (s *PermitExpirableSemaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	if err := s.check(n, 0); err != nil {
		return false, err
	}
	return s.c.setPermits(ctx, s.key, n, 0)
}

// SetPermits sets how many permits there are, free and taken ones together. If more are taken, none is free until enough
// of them have been given back.
func (s *PermitExpirableSemaphore) SetPermits(ctx context.Context, n int) error {
	if err := s.check(n, 0); err != nil {
		return err
	}
	return s.c.road.askSoon(ctx, call{permitsSet, s.keys(), []any{s.channel(), n}}).err
}

// AddPermits adds n permits, or takes them away if n is negative. Redisson's rule is that a time to live of the semaphore
// ends with that.
func (s *PermitExpirableSemaphore) AddPermits(ctx context.Context, n int) error {
	if err := s.check(n, -math.MaxInt32); err != nil {
		return err
	}
	return s.c.addPermits(ctx, s.key, n, "change")
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
	if err := s.c.checkName(s.name); err != nil {
		return 0, 0, err
	}
	a := s.c.query(ctx, call{permitsCount, s.keys(), []any{s.channel()}})
	if a.err != nil {
		return 0, 0, a.err
	}
	return int(a.values[0]), int(a.values[1]), nil
}

// Acquire takes a permit, waiting as long as ctx, and returns its id. The permit becomes free when lease is over; with a
// lease of 0 it never does by itself, also if this process crashes. Goroutines of one client are served in the order in
// which they came. The error is the cause of ctx, or says why Redis could not be asked; then no permit is taken.
func (s *PermitExpirableSemaphore) Acquire(ctx context.Context, lease time.Duration) (id string, err error) {
	return s.acquire(ctx, -1, lease)
}

// TryAcquire takes a permit if it can be had within wait; a wait of 0 or less tries once, without standing in line. The
// error is nil if it can't. The lease is Acquire's.
func (s *PermitExpirableSemaphore) TryAcquire(ctx context.Context, wait, lease time.Duration) (id string, ok bool, err error) {
	id, err = s.acquire(ctx, max(wait, 0), lease)
	if errors.Is(err, lock.ErrBusy) {
		return "", false, nil
	}
	return id, err == nil, err
}

func (s *PermitExpirableSemaphore) acquire(ctx context.Context, wait, lease time.Duration) (string, error) {
	if err := s.checkLease(lease); err != nil {
		return "", err
	}
	var id []byte
	err := s.c.awaitPermits(ctx, s.key, 1, s.channel(), wait, func(by time.Time) (ok bool, ttl time.Duration, err error) {
		id, ttl, err = s.try(ctx, by, lease)
		return id != nil, ttl, err
	})
	return hex.EncodeToString(id), err
}

// try asks for a permit once. Each try has an id of its own, so that undoing one can't free the permit of a later one. It
// returns when the next permit becomes free by itself, if it is refused and that is known.
func (s *PermitExpirableSemaphore) try(ctx context.Context, by time.Time, lease time.Duration) ([]byte, time.Duration, error) {
	id := make([]byte, 16)
	rand.Read(id) // never fails
	r := s.c.request(s.key)
	undo := call{permitsRelease, s.keys(), []any{s.channel(), r.receipt, r.number, millis(s.c.receiptLife()), id}}
	a := s.c.take(ctx, by, r, s.c.once(r, permitsAcquire, s.keys(), s.channel(), millis(lease), id), undo)
	switch {
	case a.err != nil:
		return nil, -1, a.err
	case a.values[0] == 0:
		return nil, duration(a.values[1]), nil
	case lease > 0 && time.Since(a.sent) >= lease:
		return nil, -1, refusal{errTooLate}
	}
	return id, -1, nil
}

// Release gives the permit with that id back, whoever took it, and wakes a waiter. The error matches lock.ErrNotHeld when
// it was given back before or its lease is over. The release goes out even if ctx has ended; ctx bounds only the wait for
// the answer.
func (s *PermitExpirableSemaphore) Release(ctx context.Context, id string) error {
	raw, err := s.parse(id)
	if err != nil {
		return err
	}
	a, err := s.c.change(ctx, s.c.request(s.key), call{permitsRelease, s.keys(), []any{s.channel(), "", 0, 0, raw}})
	if err == nil && a.values[0] == 0 && a.doubts == 0 {
		return lock.ErrNotHeld
	}
	return err
}

// UpdateLease gives the permit with that id a new lease from now on, of 0 one without end. The error matches
// lock.ErrNotHeld when it was given back or its lease is over.
func (s *PermitExpirableSemaphore) UpdateLease(ctx context.Context, id string, lease time.Duration) error {
	if err := s.checkLease(lease); err != nil {
		return err
	}
	_, err := s.lease(ctx, id, millis(lease))
	return err
}

// LeaseTime returns how long the permit with that id lasts. It is negative for one without end. The error matches
// lock.ErrNotHeld when it was given back or its lease is over.
func (s *PermitExpirableSemaphore) LeaseTime(ctx context.Context, id string) (time.Duration, error) {
	return s.lease(ctx, id, "")
}

func (s *PermitExpirableSemaphore) lease(ctx context.Context, id, change string) (time.Duration, error) {
	raw, err := s.parse(id)
	if err != nil {
		return 0, err
	}
	a := s.c.query(ctx, call{permitsLease, s.keys(), []any{s.channel(), raw, change}})
	switch {
	case a.err != nil:
		return 0, a.err
	case a.values[0] == 0:
		return 0, lock.ErrNotHeld
	}
	return duration(a.values[1]), nil
}

func (s *PermitExpirableSemaphore) keys() []string { return []string{s.key, permitsKey(s.key)} }

func (s *PermitExpirableSemaphore) channel() string { return semaphoreChannel(s.key) }

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

func (s *PermitExpirableSemaphore) check(n, least int) error {
	return cmp.Or(s.c.checkName(s.name), checkPermits(n, least))
}

func (s *PermitExpirableSemaphore) checkLease(lease time.Duration) error {
	if lease != 0 && lease < time.Millisecond {
		return fmt.Errorf("redisson: lease %v of a permit is under 1ms", lease)
	}
	return s.c.checkName(s.name)
}
