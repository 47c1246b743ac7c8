package worker

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// locker is what all locks have.
type locker interface {
	Lock(ctx context.Context) (held context.Context, err error)
	TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error)
	Unlock(held context.Context) error
}

// sort is a kind of lock, as histories call it.
type sort struct {
	kind string
	// names are the first part of its keys: kinds that share it exclude each other.
	names string
	// open returns the lock of these keys, most kinds take only the first.
	open func(w *worker, r *round, keys []string) locker
	// keys is how many keys it takes; 0 is one.
	keys int
	// inner may be taken under it, on the same key.
	inner []string
	// play, in place of open, is for what is not held. At the end of a round it stays for as long as it takes.
	play func(c *caller, t target, end bool)
}

// Names returns the first part of the keys of a kind, after that of the round.
func Names(kind string) string { return newSorts()[kind].names }

// newSorts returns all kinds of locks and synchronizers, by the names that mixes have for them.
func newSorts() map[string]sort {
	return map[string]sort{
		"lock":   {kind: "lock", names: "lock", inner: []string{"lock"}, open: func(w *worker, _ *round, keys []string) locker { return w.clients[0].Lock(keys[0]) }},
		"fair":   {kind: "fair", names: "fair", inner: []string{"fair"}, open: func(w *worker, _ *round, keys []string) locker { return w.clients[0].FairLock(keys[0]) }},
		"spin":   {kind: "spin", names: "spin", inner: []string{"spin"}, open: func(w *worker, _ *round, keys []string) locker { return w.clients[0].SpinLock(keys[0]) }},
		"fenced": {kind: "fenced", names: "fenced", inner: []string{"fenced"}, open: func(w *worker, _ *round, keys []string) locker { return w.clients[0].FencedLock(keys[0]) }},
		"read": {kind: "read", names: "rw", inner: []string{"read"}, open: func(w *worker, _ *round, keys []string) locker {
			return w.clients[0].ReadWriteLock(keys[0]).ReadLock()
		}},
		"write": {kind: "write", names: "rw", inner: []string{"write", "read"}, open: func(w *worker, _ *round, keys []string) locker {
			return w.clients[0].ReadWriteLock(keys[0]).WriteLock()
		}},
		"multi": {kind: "multi", names: "lock", keys: 2, open: func(w *worker, _ *round, keys []string) locker {
			m, err := redisson.NewMultiLock(w.clients[0].Lock(keys[0]), w.clients[0].Lock(keys[1]))
			if err != nil {
				panic(err) // two locks are enough
			}
			return m
		}},
		"redlock": {kind: "redlock", names: "red", open: func(w *worker, _ *round, keys []string) locker {
			var members []redisson.Member
			for _, c := range w.clients {
				members = append(members, c.Lock(keys[0]))
			}
			l, err := redisson.NewRedLock(members...)
			if err != nil {
				panic(err) // the run has at least three servers
			}
			return l
		}},
		"permit": {kind: "permit", names: "permit", open: openPermits},
		"limit":  {kind: "permit", names: "limit", keys: 3, open: openPermits},
		"semaphore": {kind: "semaphore", names: "sem", open: func(w *worker, _ *round, keys []string) locker {
			return semaphore{w.clients[0].Semaphore(keys[0])}
		}},
		"expirable": {kind: "permit", names: "psem", open: func(w *worker, _ *round, keys []string) locker {
			return expirable{w.clients[0].PermitExpirableSemaphore(keys[0])}
		}},
		"latch":        {kind: "latch", names: "latch", play: (*caller).latch},
		"limiter":      {kind: "limiter", names: "rate", play: (*caller).limiter},
		"pace":         {kind: "limiter", names: "pace", play: (*caller).limiter},
		"set":          {kind: "fenced", names: "set", play: func(c *caller, t target, end bool) { c.add(t, end, true) }},
		"unfenced set": {kind: "fenced", names: "unfenced", play: func(c *caller, t target, end bool) { c.add(t, end, false) }},
		"lead":         {kind: "fenced", names: "lead", play: (*caller).lead},
		"request":      {kind: "fenced", names: "request", play: (*caller).request},
	}
}

// openPermits returns permits of the keys, as levels.
func openPermits(w *worker, r *round, keys []string) locker {
	q := lock.Request{Key: keys[0], Kind: lock.Permit, Limit: r.limit()}
	for _, key := range keys[1:] {
		q.Levels = append(q.Levels, lock.Level{Key: key, Limit: q.Limit})
	}
	return permits{w.clients[0], q}
}

// permits are those of lock.Permit.
type permits struct {
	locker  lock.Locker
	request lock.Request
}

type holdKey struct{}

func (p permits) acquire(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	r := p.request
	r.Wait, r.Lease = wait, lease
	h, err := p.locker.Acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return context.WithValue(h.Context(), holdKey{}, h), nil
}

func (p permits) Lock(ctx context.Context) (context.Context, error) { return p.acquire(ctx, -1, 0) }

func (p permits) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, bool, error) {
	held, err := p.acquire(ctx, max(wait, 0), lease)
	if errors.Is(err, lock.ErrBusy) {
		return nil, false, nil
	}
	return held, err == nil, err
}

func (p permits) Unlock(held context.Context) error {
	return held.Value(holdKey{}).(lock.Hold).Release(context.WithoutCancel(held))
}

// broken is a locker that at times does not ask anybody.
type broken struct {
	locker
	skip func() bool
}

type skippedKey struct{}

func (b broken) Lock(ctx context.Context) (context.Context, error) {
	if b.skip() {
		return context.WithValue(ctx, skippedKey{}, true), nil
	}
	return b.locker.Lock(ctx)
}

func (b broken) Unlock(held context.Context) error {
	if held.Value(skippedKey{}) != nil {
		return nil
	}
	return b.locker.Unlock(held)
}
