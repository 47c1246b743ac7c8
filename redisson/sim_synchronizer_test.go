package redisson_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// busyUnless turns the two results of a TryAcquire into one.
func busyUnless(ok bool, err error) error {
	if err == nil && !ok {
		return lock.ErrBusy
	}
	return err
}

// takeExpirable takes an expirable permit and gives it back. Its holder is not notified when it is over, so the holder reckons with
// the lease from the earliest time on at which the permit can have been given.
func (o *owner) takeExpirable() bool {
	s, sem := o.newStay(lock.Permit, "L"), o.client.PermitExpirableSemaphore("L")
	wait, ctx, cancel := o.patience()
	defer cancel()
	lease := o.lease()
	if lease > 0 {
		lease += 2 * o.w.times.timeout
	}
	var id string
	err := o.call(fmt.Sprintf("acquires a permit within %v for %v", wait, lease), ctx, wait, func() (err error) {
		if wait < 0 {
			id, err = sem.Acquire(ctx, lease)
			return err
		}
		var ok bool
		id, ok, err = sem.TryAcquire(ctx, wait, lease)
		return busyUnless(ok, err)
	})
	if err != nil {
		return false
	}
	stays := o.upTo(s.pace)
	if lease > 0 {
		stays = min(stays, lease-o.w.times.timeout-o.w.times.timeout/2)
	}
	raw, _ := hex.DecodeString(id)
	s.permit(string(raw), 1, stays)
	err = o.call("releases a permit", context.Background(), o.w.times.timeout, func() error { return sem.Release(context.Background(), id) })
	if errors.Is(err, lock.ErrNotHeld) {
		o.w.judge.accuse("%s had a permit that was free", s.name)
	}
	return true
}

// permit is the section of permits whose end is not announced.
func (s *stay) permit(id string, amount int, d time.Duration) {
	sec := s.newSection(lock.Permit, 0)
	sec.amount, sec.ids = amount, map[string]string{s.keys[0]: id}
	s.o.w.judge.enter(sec)
	time.Sleep(d)
	sec.end(true)
}

// takePermits takes permits that last for ever. If a release is pending, the client goes on with it.
func (o *owner) takePermits() bool {
	s, sem, amount := o.newStay(lock.Permit, "L"), o.client.Semaphore("L"), 1+o.rand.IntN(simPermits)
	wait, ctx, cancel := o.patience()
	defer cancel()
	err := o.call(fmt.Sprintf("acquires %d permits within %v", amount, wait), ctx, wait, func() error {
		if wait < 0 {
			return sem.Acquire(ctx, amount)
		}
		return busyUnless(sem.TryAcquire(ctx, amount, wait))
	})
	if err != nil {
		return false
	}
	s.permit("", amount, o.upTo(s.pace))
	_ = o.call("releases permits", context.Background(), o.w.times.timeout, func() error { return sem.Release(context.Background(), amount) })
	return true
}

// takeRate takes a permit of a rate.
func (o *owner) takeRate() bool {
	l := o.client.RateLimiter("L")
	wait, ctx, cancel := o.patience()
	defer cancel()
	start := o.w.net.Since()
	err := o.call(fmt.Sprintf("acquires a permit within %v", wait), ctx, wait, func() error {
		if wait < 0 {
			return l.Acquire(ctx, 1)
		}
		return busyUnless(l.TryAcquire(ctx, 1, wait))
	})
	if err == nil {
		o.w.judge.rate(start, o.w.net.Since())
	}
	return err == nil
}

// countDown is a round with a latch: whoever comes first sets it, and each round of an owner either counts down or waits.
func (o *owner) countDown() bool {
	l := o.client.CountDownLatch("L")
	ctx := context.Background()
	_ = o.call("sets the latch", ctx, o.w.times.timeout, func() error {
		_, err := l.TrySetCount(ctx, simCount)
		return err
	})
	if o.rand.IntN(3) > 0 || o.final {
		for range simCount {
			_ = o.call("counts down", ctx, o.w.times.timeout, func() error { return l.CountDown(ctx) })
		}
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, o.between(100*time.Millisecond, 20*time.Second))
	defer cancel()
	start := o.w.net.Since()
	err := o.call("awaits the latch", ctx, -1, func() error { return l.Await(ctx) })
	if err == nil {
		o.w.judge.opened(start)
	}
	return err == nil
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}
