// Package units has durations.
package units

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

const (
	seconds  = 5
	patience = 5 * time.Second
	tick     = time.Duration(5)
)

func durations(ctx context.Context, l *redisson.Lock, held context.Context, wait time.Duration) {
	_ = lock.Request{Wait: 6}                                     //latchkey:ok short
	r := lock.Request{Key: "k", Wait: 5, Lease: 30 * time.Second} // want `Wait is 5ns: a bare number counts nanoseconds, write 5\*time.Second or another unit`
	r.MaxHold = seconds                                           // want `MaxHold is 5ns`
	r.Wait, r.Lease = patience, 0
	_ = lock.Request{Wait: -1, Lease: tick}
	_ = guard.Spec{Wait: 2 * 3}                      // want `Wait is 6ns`
	_, _, _ = l.TryLock(ctx, 3, seconds*time.Second) // want `wait of TryLock is 3ns`
	_, _ = l.LockFor(held, 5_000_000_000)
	_ = l.Extend(held, time.Duration(3))
	_ = redisson.Timeout(3) // want `d of Timeout is 3ns`
	_ = guard.Wait(3)       // is for latchkeydecl, in a guard
	//latchkey:ok as short as can be
	_ = l.Keep(held, 1)
	_ = wait
}
