package redisson

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

// Lock is Redisson's RLock: a re-entrant lock. It is only a name, a kind and a client, free to make and safe for concurrent
// use.
//
// Its methods take and return contexts, which carry the owner: the context that Lock and TryLock return is the one to
// work under, to lock again under, and to give to Unlock.
type Lock struct {
	c    *Client
	name string // as given
	key  string // as mapped
	kind lock.Kind
}

// Lock returns the lock of that name, Redisson's getLock: for one owner at a time. An empty name is refused by the lock's
// methods. Locks of different kinds must not share a name.
func (c *Client) Lock(name string) *Lock { return c.newLock(name, lock.Exclusive) }

// SpinLock returns the spin lock of that name, Redisson's getSpinLock: a Lock whose waiters poll, with growing pauses, in
// place of listening for a message that its release does not send. See SpinBackoff.
func (c *Client) SpinLock(name string) *Lock { return c.newLock(name, lock.Spin) }

func (c *Client) newLock(name string, kind lock.Kind) *Lock {
	return &Lock{c: c, name: name, key: c.mapName(name), kind: kind}
}

// Name returns the name of the lock as it was given.
func (l *Lock) Name() string { return l.name }

// Lock takes the lock, waiting as long as ctx, and has it renewed until Unlock. The context that it returns derives from
// ctx and ends with a cause that matches lock.ErrLost before anybody else can have the lock. The error is the cause of
// ctx, or says why Redis could not be asked.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	h, err := l.c.acquire(ctx, lock.Request{Key: l.name, Kind: l.kind, Wait: -1})
	if err != nil {
		return nil, err
	}
	return h.ctx, nil
}

// TryLock takes the lock if it can be had within wait; a wait of 0 or less tries once. A lease above 0 ends the hold by
// itself after that time; otherwise it is renewed until Unlock. ok tells whether the lock is held; where it is not, held
// is nil, and err too unless ctx ended or Redis could not be asked.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error) {
	h, err := l.c.acquire(ctx, lock.Request{Key: l.name, Kind: l.kind, Wait: max(wait, 0), Lease: max(lease, 0)})
	switch {
	case errors.Is(err, lock.ErrBusy):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return h.ctx, true, nil
}

// Unlock gives back the hold that returned the context held, or else the innermost one around it. It works on a context
// that has ended, and takes no longer than the client's timeout. The error matches lock.ErrNotHeld when held is under no
// hold of this lock or that hold was given back before, and lock.ErrLost when the lock was no longer held.
func (l *Lock) Unlock(held context.Context) error {
	h, ok := held.Value(holdKey{l.c, l.key, l.kind}).(*hold)
	if !ok {
		return lock.ErrNotHeld
	}
	return h.Release(context.WithoutCancel(held))
}

// ForceUnlock frees the lock, whoever holds it, and wakes a waiter. It tells whether there was anything to free; one side
// of a read/write lock leaves the other one alone. Holders
// in this client lose their holds at once, others when they next renew them: it is a tool for repairs.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.check(); err != nil {
		return false, err
	}
	f := l.c.familyOf(l.kind)
	drop := func(a answer) {
		if a.err == nil && a.values[0] == 1 {
			l.c.watchdog.dropAll(l.key, f)
		}
	}
	a := l.c.ask(ctx, f.force(l.key, l.kind), drop)
	if a.err != nil {
		return false, a.err
	}
	drop(a)
	return a.values[0] == 1, nil
}

// IsLocked tells whether anybody holds the lock: of a read/write lock, this side of it.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	if err := l.check(); err != nil {
		return false, err
	}
	if l.kind != lock.Read && l.kind != lock.Write {
		n, err := l.c.rdb.Exists(ctx, l.key).Result()
		return n > 0, err
	}
	mode, err := l.c.rdb.HGet(ctx, l.key, "mode").Result()
	switch {
	case errors.Is(err, redis.Nil):
		return false, nil
	case err != nil || mode == l.kind.String() || l.kind == lock.Write:
		return err == nil && mode == l.kind.String(), err
	}
	n, err := l.c.rdb.HLen(ctx, l.key).Result()
	return n > 2, err // the mode, the writer, and a reader, who is the same owner
}

// HoldCount returns how many times the owner in ctx holds the lock, as Redis has it; 0 is not at all.
func (l *Lock) HoldCount(ctx context.Context) (int, error) {
	if err := l.check(); err != nil {
		return 0, err
	}
	h, ok := ctx.Value(holdKey{l.c, l.key, l.kind}).(*hold)
	if !ok {
		return 0, nil
	}
	field := h.claim.holder
	if l.kind == lock.Write {
		field += ":write"
	}
	n, err := l.c.rdb.HGet(ctx, l.key, field).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// TTL returns how long the lock lasts if it is not renewed. It is 0 when the lock is free, and negative for a lock
// without an end, which neither Redisson nor this package makes.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	if err := l.check(); err != nil {
		return 0, err
	}
	const free = -2 // nanoseconds, as go-redis has it
	d, err := l.c.rdb.PTTL(ctx, l.key).Result()
	if d == free {
		d = 0
	}
	return d, err
}

func (l *Lock) check() error { return l.c.checkName(l.name) }
