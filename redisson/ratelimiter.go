package redisson

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ErrNoRate is the error of a rate limiter to which no rate was set.
var ErrNoRate = errors.New("redisson: rate limiter has no rate")

// Rate is the rate of a RateLimiter.
type Rate struct {
	// Permits is how many may be taken within any Interval, from 1 to 2^53. A greater number that Redisson has set is read as 2^53.
	Permits int64
	// Interval is at least 1ms.
	Interval time.Duration
	// PerClient gives each Client as many. The zero value has all clients share them.
	PerClient bool
	// KeepAlive removes the rate limiter, rate included, after so long without TryAcquire, Acquire or Release: at least Interval.
	// 0 sets no end.
	KeepAlive time.Duration
}

func (r Rate) check() error {
	switch {
	case r.Permits < 1 || r.Permits > maxCount:
		return fmt.Errorf("redisson: rate of %d permits is not between 1 and %d", r.Permits, int64(maxCount))
	case r.Interval < time.Millisecond:
		return fmt.Errorf("redisson: interval %v of a rate is under 1ms", r.Interval)
	case r.KeepAlive != 0 && r.KeepAlive < r.Interval:
		return fmt.Errorf("redisson: a rate can't be kept for %v, which is under its interval of %v: want more, or 0 for ever", r.KeepAlive, r.Interval)
	}
	return nil
}

// RateLimiter is Redisson's RRateLimiter: permits to start something, which come back by themselves an interval after they
// were taken. They are counted by the clock of Redis, where Redisson counts by that of its host.
//
// It is only a name and a client, free to make and safe for concurrent use. No permit is taken or given back twice when an
// answer of Redis is lost on the way; see [ErrPending] for changes.
type RateLimiter struct{ named }

// RateLimiter returns the rate limiter of that name. An empty name is refused by the rate limiter's methods.
func (c *Client) RateLimiter(name string) *RateLimiter { return &RateLimiter{c.named(name)} }

// TrySetRate sets the rate where none is set, and reports whether it did.
func (l *RateLimiter) TrySetRate(ctx context.Context, r Rate) (bool, error) {
	return l.set(ctx, r, "try")
}

// SetRate sets the rate and forgets what was taken, except by other clients where each has its own permits.
func (l *RateLimiter) SetRate(ctx context.Context, r Rate) error {
	_, err := l.set(ctx, r, "set")
	return err
}

// UpdateRate changes the rate where one is set. The error matches ErrNoRate where none is, or not any more.
//
// With keepState, what was taken within the new interval counts against the new rate: a lower one can leave nothing to take
// until enough of it has come back. Without, and also when PerClient changes, it is forgotten as with SetRate. Where each
// client has its own permits, other clients go on with what they have left. Waiters are not notified; see Release.
func (l *RateLimiter) UpdateRate(ctx context.Context, r Rate, keepState bool) error {
	how := "update"
	if keepState {
		how = "keep"
	}
	return unlessMissing(l.set(ctx, r, how))
}

// unlessMissing is the error of a change that needs a rate.
func unlessMissing(found bool, err error) error {
	if err == nil && !found {
		return ErrNoRate
	}
	return err
}

func (l *RateLimiter) set(ctx context.Context, r Rate, how string) (bool, error) {
	if err := cmp.Or(l.c.checkName(l.name), r.check()); err != nil {
		return false, err
	}
	return l.c.change(ctx, rateSet, l.keys(), r.Permits, millis(r.Interval), r.PerClient, millis(r.KeepAlive), how)
}

// Rate returns the rate that is set. The error matches ErrNoRate where none is.
func (l *RateLimiter) Rate(ctx context.Context) (Rate, error) {
	r, _, err := l.look(ctx)
	return r, err
}

// AvailablePermits returns how many permits can be taken now. The error matches ErrNoRate where none is set.
func (l *RateLimiter) AvailablePermits(ctx context.Context) (int64, error) {
	_, n, err := l.look(ctx)
	return n, err
}

func (l *RateLimiter) look(ctx context.Context) (r Rate, available int64, err error) {
	a := l.c.queryNamed(ctx, l.name, call{Script: rateLook, Keys: l.keys()})
	switch v := a.Values; {
	case a.Err != nil:
		return r, 0, a.Err
	case v[0] < 0:
		return r, 0, ErrNoRate
	case len(v) < 6:
		return r, 0, fmt.Errorf("redisson: a rate of %d numbers", len(v))
	default:
		return Rate{Permits: v[2], Interval: duration(v[3]), PerClient: v[4] == 1, KeepAlive: duration(v[5])}, v[1], nil
	}
}

// Acquire takes n permits at once, waiting as long as ctx. No permits, an n of 0, come at once, and need no rate.
// Goroutines of a client that want as many are served in the order in which they came. The error is the cause of ctx,
// matches ErrNoRate where no rate is set, or says that the rate is lower than n or why Redis did not answer.
func (l *RateLimiter) Acquire(ctx context.Context, n int64) error { return l.acquire(ctx, n, -1) }

// TryAcquire takes n permits at once if they become free within wait; a wait of 0 or less tries once. It returns false
// as soon as it is clear that they do not, which may be at once. The errors are Acquire's.
func (l *RateLimiter) TryAcquire(ctx context.Context, n int64, wait time.Duration) (bool, error) {
	return taken(l.acquire(ctx, n, max(wait, 0)))
}

func (l *RateLimiter) acquire(ctx context.Context, n int64, wait time.Duration) error {
	if err := l.check(n, 0, math.MaxUint32); n == 0 || err != nil {
		return err
	}
	end := time.Now().Add(wait)
	return l.await(ctx, limiterQueue, n, wait, func(by time.Time) (bool, time.Duration, error) {
		ok, delay, err := l.try(ctx, by, n)
		if !ok && err == nil && wait >= 0 && time.Until(end) < delay {
			return true, delay, &lock.BusyError{Remaining: delay}
		}
		return ok, delay, err
	})
}

// try asks once. It returns how long to wait if there are not enough permits. Permits that were taken without an answer
// are given back in the background.
func (l *RateLimiter) try(ctx context.Context, by time.Time, n int64) (bool, time.Duration, error) {
	r := l.c.request(l.key)
	// A length, as many bytes that are new, and n as a Redis server on a little-endian machine packs it, which Redisson leaves to the server.
	member := binary.LittleEndian.AppendUint32(append([]byte{permitSize}, l.c.nextHolder(lock.Permit)...), uint32(n))
	a := l.c.take(ctx, by, r, l.c.once(r, rateAcquire, l.keys(), n, member), l.c.once(r.undo(), rateRelease, l.keys(), n, member))
	switch {
	case a.Err != nil:
		return false, -1, a.Err
	case a.Values[0] == 0:
		return false, duration(a.Values[1]), nil
	case a.Values[0] == -1:
		return true, -1, ErrNoRate
	case a.Values[0] == -2:
		return true, -1, fmt.Errorf("redisson: %d permits are more than the rate of %d allows at once", n, a.Values[1])
	}
	return true, -1, nil
}

// Release gives back n permits that were taken and are not used after all, so that there are as many more at once, but no more
// than the rate allows. Like Redisson's it does not ask whether they were taken. They count as those that were taken first.
// Waiters are not notified: they look when the next permits come back by themselves, or after a third of the watchdog's timeout.
// The error matches ErrNoRate where no rate is set. It goes out even if ctx has ended; ctx bounds only the wait for the answer.
func (l *RateLimiter) Release(ctx context.Context, n int64) error {
	if err := l.check(n, 0, maxCount); n == 0 || err != nil {
		return err
	}
	return unlessMissing(l.c.change(ctx, rateRelease, l.keys(), n, ""))
}

// Delete removes the rate limiter with its rate, and what was taken except by other clients where each has its own permits. It
// reports whether there was any of that. Waiters get ErrNoRate when they look next; see Release.
func (l *RateLimiter) Delete(ctx context.Context) (bool, error) {
	return l.remove(ctx, l.keys()...)
}

func (l *RateLimiter) keys() []string {
	return rateKeys(l.key, l.c.id)
}
