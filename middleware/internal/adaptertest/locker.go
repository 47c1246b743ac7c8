// Package adaptertest has lockers for the tests of the adapters for net/http and gin, and plays what they have in common with both: one table of
// statuses, and one set of bad clients and handlers.
package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// Locker is a lock.Locker that is one function.
type Locker = guardtest.Func

// Free gives out every lock.
func Free(ctx context.Context, r lock.Request) (lock.Hold, error) {
	return guardtest.PassThrough().Acquire(ctx, r)
}

// Losing gives out every lock, and finds it lost in the end.
func Losing(ctx context.Context, r lock.Request) (lock.Hold, error) {
	return guardtest.New(guardtest.LostUnnoticed()).Acquire(ctx, r)
}

// Busy is held for another remaining by a call of this process. Clients must learn nothing of that call.
func Busy(remaining time.Duration) Locker {
	return func(context.Context, lock.Request) (lock.Hold, error) {
		return nil, &lock.BusyError{Remaining: remaining, Here: true, Holder: `guard "internal.job"`, Elsewhere: "internal.job, by hand"}
	}
}

// Down is a lock service that can't be reached.
func Down(context.Context, lock.Request) (lock.Hold, error) {
	return nil, errors.New("dial tcp 10.9.8.7:6379: connection refused")
}

// Refusing is a lock service that refuses for good.
func Refusing(context.Context, lock.Request) (lock.Hold, error) {
	return nil, fmt.Errorf("%w: NOPERM 10.9.8.7", lock.ErrRefused)
}

// Unsupporting has no locks of the kind.
func Unsupporting(context.Context, lock.Request) (lock.Hold, error) { return nil, lock.ErrUnsupported }

// Waiting waits for as long as the caller.
func Waiting(ctx context.Context, _ lock.Request) (lock.Hold, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// Queue is a memlock.Locker that tells who is in line: each Acquire sends to Entered before it waits, and to Left when
// it failed.
type Queue struct {
	*memlock.Locker
	Entered, Left chan struct{}
	Acquired      atomic.Int64
}

// NewQueue returns a Queue in which nobody waits.
func NewQueue() *Queue {
	return &Queue{Locker: memlock.New(), Entered: make(chan struct{}, 100), Left: make(chan struct{}, 100)}
}

// Acquire is that of memlock, told about.
func (q *Queue) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	q.Entered <- struct{}{}
	h, err := q.Locker.Acquire(ctx, r)
	if err != nil {
		q.Left <- struct{}{}
		return nil, err
	}
	q.Acquired.Add(1)
	return h, nil
}
