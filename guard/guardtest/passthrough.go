package guardtest

import (
	"cmp"
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Func is a lock.Locker that is one function, for what no Fault can say.
type Func func(context.Context, lock.Request) (lock.Hold, error)

// Acquire calls f.
func (f Func) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) { return f(ctx, r) }

// PassThrough returns a locker that gives every lock to everybody at once. It is for programs that are to run without
// locks, in staging or on a developer's machine: declarations, keys, conditions and telemetry work as ever, and nobody
// waits. Leases and max-holds have no effect. Nothing is excluded.
func PassThrough() lock.Locker {
	return new(passThrough)
}

// passThrough is the locker of PassThrough.
type passThrough struct{ tokens atomic.Int64 }

// Acquire implements [lock.Locker].
func (l *passThrough) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return nil, err
	}
	h := &pass{token: l.tokens.Add(1)}
	ctx, h.cancel = context.WithCancel(ctx)
	h.ctx = lock.WithHold(ctx, h, func() bool { return !h.released.Load() })
	return h, nil
}

// Replace replaces nobody, as nobody is in the way.
func (l *passThrough) Replace(ctx context.Context, r lock.Request) (turn context.Context, leave func(), err error) {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return nil, nil, err
	}
	return ctx, func() {}, nil
}

// ServesLevels returns nil, as nothing is counted.
func (l *passThrough) ServesLevels(...string) error { return nil }

// pass is a hold of PassThrough.
type pass struct {
	ctx      context.Context
	cancel   context.CancelFunc
	token    int64
	released atomic.Bool
}

func (p *pass) Context() context.Context { return p.ctx }

func (p *pass) Token() int64 { return p.token }

func (p *pass) Release(context.Context) error {
	if !p.released.CompareAndSwap(false, true) {
		return lock.ErrNotHeld
	}
	p.cancel()
	return nil
}

// Keep is Release: there is nobody to keep out.
func (p *pass) Keep(ctx context.Context, _ time.Duration) error { return p.Release(ctx) }

// Extend succeeds for a hold that has not been released.
func (p *pass) Extend(context.Context, time.Duration) error {
	if p.released.Load() {
		return lock.ErrNotHeld
	}
	return nil
}

// Remaining is without an end, until the release.
func (p *pass) Remaining() time.Duration {
	if p.released.Load() {
		return 0
	}
	return math.MaxInt64
}
