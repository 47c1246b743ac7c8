package held

import (
	"context"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// mailed has a lock that stands for a time: nobody gives it back, and what is locked next is none of its business.
func mailed(ctx context.Context, once, l *redisson.Lock, k lock.Locker, pause time.Duration) error {
	if _, ok, err := once.TryLock(ctx, 0, 10*time.Minute); !ok || err != nil {
		return err
	}
	if _, err := once.LockFor(ctx, pause); err != nil {
		return err
	}
	if _, err := k.Acquire(ctx, lock.Request{Key: "mail", Lease: pause}); err != nil {
		return err
	}
	return l.Do(ctx, work)
}

// forgotten has one that is renewed for as long as the process lives.
func forgotten(ctx context.Context, once, l *redisson.Lock) error {
	if _, ok, err := once.TryLock(ctx, 0, 0); !ok || err != nil {
		return err
	}
	return l.Do(ctx, work) // want `the lock around it is held under the context that it returned`
}
