package redisson

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// maxCount is the largest whole number that Lua can count with.
const maxCount = 1 << 53

// CountDownLatch is Redisson's RCountDownLatch: waiters wait until others have counted it down to zero. It can be set
// again then.
//
// It is only a name and a client, free to make and safe for concurrent use. No count is lost or counted twice when an
// answer of Redis is lost on the way; see [ErrPending].
type CountDownLatch struct{ named }

// CountDownLatch returns the latch of that name. An empty name is refused by the latch's methods. So is, in a Redis
// Cluster, a name with braces: Redisson's channel for it is in another slot then.
func (c *Client) CountDownLatch(name string) *CountDownLatch { return &CountDownLatch{c.named(name)} }

// TrySetCount gives a latch that is at zero the count n, at least 1, and reports whether it did.
func (l *CountDownLatch) TrySetCount(ctx context.Context, n int64) (bool, error) {
	if n < 1 || n > maxCount {
		return false, fmt.Errorf("redisson: count %d of a latch is not between 1 and %d", n, int64(maxCount))
	}
	return l.change(ctx, numberSet, "1", n, 0)
}

// CountDown counts down by one; at zero all waiters are notified. A latch at zero stays there. It goes out even if ctx has
// ended; ctx bounds only the wait for the answer.
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	_, err := l.change(ctx, latchDown)
	return err
}

// Delete removes the latch, which makes its count zero, and reports whether there was one. As with Redisson, waiters are not
// notified; those of this package notice within a third of the watchdog's timeout.
func (l *CountDownLatch) Delete(ctx context.Context) (bool, error) {
	return l.change(ctx, deleteKeys)
}

func (l *CountDownLatch) change(ctx context.Context, s *script, args ...any) (bool, error) {
	if err := l.check(); err != nil {
		return false, err
	}
	return l.c.change(ctx, s, []string{l.key}, append([]any{l.channel()}, args...)...)
}

// Count returns the count; 0 for a latch that was never set, and 2^53 for any larger one, which Java can set.
func (l *CountDownLatch) Count(ctx context.Context) (int64, error) {
	if err := l.check(); err != nil {
		return 0, err
	}
	n, err := l.c.number(ctx, l.name, l.key)
	return max(0, n), err
}

// Await waits until the count is zero, as long as ctx; bound it with a context's deadline. A latch that is set again at once was open all the
// same, to all whose subscription had been confirmed. The error is the cause of ctx, or says why Redis could not be asked.
func (l *CountDownLatch) Await(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	return l.await(ctx, latchQueue, 0, -1, func(by time.Time) (bool, time.Duration, error) {
		a := l.c.road.Ask(ctx, by, call{Script: latchAwait, Keys: []string{l.key}, Args: nil})
		return a.Err == nil && a.Values[0] == 0, -1, a.Err
	})
}

func (l *CountDownLatch) channel() string { return latchChannel(l.key) }

// check refuses an empty name, and in a cluster one with a hash tag of its own: Redisson's channel for it is in another slot.
func (l *CountDownLatch) check() error { return l.c.checkName(l.name, l.channel()) }

// hearLocked has a waiter for a latch hear when that is opened: it may have been set again by the time that somebody asks.
func (l *localQueues) hearLocked(p *place) {
	if p.queue.id.kind == latchQueue && p.ear == nil {
		p.ear = l.subscriber.Receive(p.queue.channel)
	}
}

// opened reports whether a latch was opened after its waiter began to listen.
func (p *place) opened() bool {
	if p.ear == nil {
		return false
	}
	messages, _ := p.ear.Read()
	return slices.Contains(messages, "0")
}
