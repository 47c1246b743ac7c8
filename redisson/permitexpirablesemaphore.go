package redisson

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

//go:embed permits.lua
var permitsSource string

//go:embed permits_acquire.lua
var permitsAcquireSource string

//go:embed permits_release.lua
var permitsReleaseSource string

//go:embed permits_count.lua
var permitsCountSource string

//go:embed permits_lease.lua
var permitsLeaseSource string

//go:embed permits_set.lua
var permitsSetSource string

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

// TrySetPermits gives a semaphore that does not exist n permits, and tells whether it did.
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
	return s.c.ask(ctx, call{permitsSetScript(), s.keys(), []any{n}}, func(answer) {}).err
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
	a := s.c.ask(ctx, call{permitsCountScript(), s.keys(), nil}, func(answer) {})
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
	var id [16]byte
	rand.Read(id[:]) // never fails
	var asked time.Time
	err := s.c.awaitPermit(ctx, s.key, wait, func() (bool, time.Duration, error) {
		asked = time.Now()
		return s.try(ctx, id[:], lease)
	})
	switch {
	case err != nil:
		return "", err
	case lease > 0 && time.Since(asked) >= lease:
		return "", errors.New("redisson: Redis took longer to answer than the lease")
	}
	return hex.EncodeToString(id[:]), nil
}

// try asks for a permit once. It returns when the next one becomes free by itself, if it is refused and that is known.
func (s *PermitExpirableSemaphore) try(ctx context.Context, id []byte, lease time.Duration) (bool, time.Duration, error) {
	r := s.c.request(s.key)
	undo := call{permitsReleaseScript(), append(s.keys(), r.key), []any{id, r.number, millis(s.c.receiptLife())}}
	a := s.c.take(ctx, r, s.c.once(r, permitsAcquireScript(), s.keys(), id, millis(lease)), undo)
	if a.err != nil || a.took() {
		return a.took(), -1, a.err
	}
	return false, time.Duration(a.values[1]) * time.Millisecond, nil
}

// Release gives the permit with that id back, whoever took it, and wakes a waiter. The error matches lock.ErrNotHeld when
// it was given back before or its lease is over. The release goes out even if ctx has ended; ctx bounds only the wait for
// the answer.
func (s *PermitExpirableSemaphore) Release(ctx context.Context, id string) error {
	raw, err := s.parse(id)
	if err != nil {
		return err
	}
	a, err := s.c.change(ctx, s.c.request(s.key), call{permitsReleaseScript(), s.keys(), []any{raw}})
	if err == nil && a.values[0] == 0 && !a.inDoubt {
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
	a := s.c.ask(ctx, call{permitsLeaseScript(), s.keys(), []any{raw, change}}, func(answer) {})
	switch {
	case a.err != nil:
		return 0, a.err
	case a.values[0] == 0:
		return 0, lock.ErrNotHeld
	}
	return time.Duration(a.values[1]) * time.Millisecond, nil
}

func (s *PermitExpirableSemaphore) keys() []string {
	return []string{s.key, permitsKey(s.key), semaphoreChannel(s.key)}
}

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

var (
	permitsAcquireText = receiptSource + permitsSource + permitsAcquireSource
	permitsReleaseText = permitsSource + permitsReleaseSource
	permitsCountText   = permitsSource + permitsCountSource
	permitsLeaseText   = permitsSource + permitsLeaseSource
	permitsSetText     = permitsSource + permitsSetSource
)

func permitsAcquireScript() script {
	return script{source: permitsAcquireText, sha: "e359cd2305e1b150036fb7e5eb4695bf4292dd26"}
}
func permitsReleaseScript() script {
	return script{source: permitsReleaseText, sha: "53f0bc0b99f89e09a7ee22832099c093c28de774"}
}
func permitsCountScript() script {
	return script{source: permitsCountText, sha: "584bb5f4684879d7e32d898fca0ec8ab23cce537"}
}
func permitsLeaseScript() script {
	return script{source: permitsLeaseText, sha: "73db15dfec811c6dc3bf3ad7a81ee1e2a3a328d4"}
}
func permitsSetScript() script {
	return script{source: permitsSetText, sha: "6a476cd2bdd6153d6a0aa80e3226a99c41b0b6b4"}
}
