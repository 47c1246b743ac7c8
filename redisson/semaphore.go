package redisson

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/redis/go-redis/v9"
)

//go:embed semaphore_acquire.lua
var semaphoreAcquireSource string

//go:embed semaphore_cancel.lua
var semaphoreCancelSource string

//go:embed semaphore_release.lua
var semaphoreReleaseSource string

//go:embed semaphore_set.lua
var semaphoreSetSource string

//go:embed semaphore_add.lua
var semaphoreAddSource string

//go:embed semaphore_drain.lua
var semaphoreDrainSource string

// Semaphore is Redisson's RSemaphore: a number of permits in Redis, which are taken and given back by anybody. Permits
// that a crashed process had are not given back: most callers should use [PermitExpirableSemaphore].
//
// A semaphore without TrySetPermits has no permits. It is only a name and a client, free to make and safe for concurrent
// use. No permit is lost or counted twice when an answer of Redis is lost on the way; see [ErrPending] for changes.
type Semaphore struct {
	c    *Client
	name string // as given
	key  string // as mapped
}

// Semaphore returns the semaphore of that name. An empty name is refused by the semaphore's methods.
func (c *Client) Semaphore(name string) *Semaphore {
	return &Semaphore{c: c, name: name, key: c.mapName(name)}
}

// Name returns the name of the semaphore as it was given.
func (s *Semaphore) Name() string { return s.name }

// TrySetPermits gives a semaphore that does not exist n permits, and tells whether it did. 0 is allowed: a gate that a
// Release opens.
func (s *Semaphore) TrySetPermits(ctx context.Context, n int) (bool, error) {
	return s.set(ctx, n, 0)
}

// TrySetPermitsFor is TrySetPermits for a semaphore that ceases to exist after ttl, at least 1ms.
func (s *Semaphore) TrySetPermitsFor(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if ttl < time.Millisecond {
		return false, fmt.Errorf("redisson: a semaphore can't live for %v: want at least 1ms", ttl)
	}
	return s.set(ctx, n, ttl)
}

func (s *Semaphore) set(ctx context.Context, n int, ttl time.Duration) (bool, error) {
	if err := s.check(n, 0); err != nil {
		return false, err
	}
	return s.c.setPermits(ctx, s.key, n, ttl)
}

// setPermits makes a semaphore of either kind.
func (c *Client) setPermits(ctx context.Context, key string, n int, ttl time.Duration) (bool, error) {
	r := c.request(key)
	a, err := c.change(ctx, r, c.once(r, semaphoreSetScript(), []string{key, semaphoreChannel(key)}, n, millis(ttl)))
	return err == nil && a.values[0] == 1, err
}

// AddPermits adds n free permits, or takes them away if n is negative, also below zero. Redisson's rule is that a time to
// live of the semaphore ends with that.
func (s *Semaphore) AddPermits(ctx context.Context, n int) error {
	if err := s.check(n, -math.MaxInt32); err != nil {
		return err
	}
	return s.c.addPermits(ctx, s.key, n, "value")
}

func (c *Client) addPermits(ctx context.Context, key string, n int, message string) error {
	r := c.request(key)
	_, err := c.change(ctx, r, c.once(r, semaphoreAddScript(), []string{key, semaphoreChannel(key)}, n, message))
	return err
}

// DrainPermits takes all free permits and returns how many they were. As with AddPermits, a time to live ends.
func (s *Semaphore) DrainPermits(ctx context.Context) (int, error) {
	if err := cmp.Or(s.check(1, 1), firstCause(ctx, s.c.ctx)); err != nil {
		return 0, err
	}
	r := s.c.request(s.key)
	a := s.c.take(ctx, r, s.c.once(r, semaphoreDrainScript(), []string{s.key}), s.cancel(r))
	if a.err != nil {
		return 0, a.err
	}
	return int(a.values[0]), nil
}

// AvailablePermits returns how many permits are free.
func (s *Semaphore) AvailablePermits(ctx context.Context) (int, error) {
	if err := s.check(1, 1); err != nil {
		return 0, err
	}
	n, err := s.c.rdb.Get(ctx, s.key).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// Acquire takes n permits at once, waiting as long as ctx. Goroutines of one client are served in the order in which they
// came. The error is the cause of ctx, or says why Redis could not be asked; then no permit is taken.
func (s *Semaphore) Acquire(ctx context.Context, n int) error { return s.acquire(ctx, n, -1) }

// TryAcquire takes n permits at once if they can be had within wait; a wait of 0 or less tries once, without standing in
// line. The error is nil if they can't.
func (s *Semaphore) TryAcquire(ctx context.Context, n int, wait time.Duration) (bool, error) {
	err := s.acquire(ctx, n, max(wait, 0))
	if errors.Is(err, lock.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

func (s *Semaphore) acquire(ctx context.Context, n int, wait time.Duration) error {
	if err := s.check(n, 1); err != nil {
		return err
	}
	return s.c.awaitPermit(ctx, s.key, wait, func() (bool, time.Duration, error) {
		r := s.c.request(s.key)
		a := s.c.take(ctx, r, s.c.once(r, semaphoreAcquireScript(), []string{s.key}, n), s.cancel(r))
		return a.took(), -1, a.err
	})
}

// cancel is the call that undoes what a request took.
func (s *Semaphore) cancel(r request) call {
	return call{semaphoreCancelScript(), []string{s.key, semaphoreChannel(s.key), r.key}, []any{r.number, millis(s.c.receiptLife())}}
}

// Release gives n permits back and wakes waiters. Like Redisson's it does not ask whether they were taken, and makes a
// semaphore that does not exist. It goes out even if ctx has ended; ctx bounds only the wait for the answer.
func (s *Semaphore) Release(ctx context.Context, n int) error {
	_, err := s.release(ctx, n, 0)
	return err
}

// ReleaseIfExists is Release unless the semaphore does not exist (any more). It tells whether it did.
func (s *Semaphore) ReleaseIfExists(ctx context.Context, n int) (bool, error) {
	return s.release(ctx, n, 1)
}

func (s *Semaphore) release(ctx context.Context, n, ifExists int) (bool, error) {
	if err := s.check(n, 1); err != nil {
		return false, err
	}
	r := s.c.request(s.key)
	a, err := s.c.change(ctx, r, s.c.once(r, semaphoreReleaseScript(), []string{s.key, semaphoreChannel(s.key)}, n, ifExists))
	return err == nil && a.values[0] == 1, err
}

// check refuses what Redis shall not be asked: an empty name, and numbers that Java has no int for.
func (s *Semaphore) check(n, least int) error {
	return cmp.Or(s.c.checkName(s.name), checkPermits(n, least))
}

// checkName refuses a name that is empty, or in a cluster one whose key and derived names are in different slots.
func (c *Client) checkName(name string, derived ...string) error {
	if err := (lock.Request{Key: name}).Validate(); err != nil {
		return err
	}
	return c.topology.check(c.mapName(name), derived...)
}

func checkPermits(n, least int) error {
	if n < least || n > math.MaxInt32 {
		return fmt.Errorf("redisson: %d permits are not between %d and %d", n, least, math.MaxInt32)
	}
	return nil
}

// awaitPermit tries until a try is successful or wait is over; negative waits as long as ctx. The wakening is that of a
// lock: the head of this client's line is the only one that asks, and the one behind it becomes the head when it has got
// its permits, so that a message about several permits reaches as many waiters as it can serve. A try returns after which
// time another one may be successful even without a message, or something negative.
func (c *Client) awaitPermit(ctx context.Context, key string, patience time.Duration, try func() (bool, time.Duration, error)) error {
	if err := firstCause(ctx, c.ctx); err != nil {
		return err
	}
	w := &wait{c: c, ctx: ctx, request: lock.Request{Wait: patience}, start: time.Now()}
	defer w.stop()
	if patience == 0 {
		ok, soon, err := try()
		if !ok && err == nil {
			err = w.busy(soon)
		}
		return err
	}
	place := c.lines.join(lineKey{name: key}, semaphoreChannel(key))
	defer c.lines.leave(place)
	if err := w.await(place.turn, nil, place, 0); err != nil {
		return err
	}
	for {
		// Taken before the try, so that a message in between is not missed.
		hint, live := place.hint()
		ok, soon, err := try()
		if err != nil && ctx.Err() == nil {
			place.fail(err) // Redis would answer those behind no better
		}
		if err != nil {
			return err
		}
		place.expect(soon)
		if ok {
			return nil
		}
		if hint == nil {
			place.listen()
			if hint, live = place.hint(); live {
				continue // a message may have come before this
			}
		}
		if err := w.await(hint, w.nap(soon, live), place, soon); err != nil {
			return err
		}
	}
}

var (
	semaphoreAcquireText = receiptSource + semaphoreAcquireSource
	semaphoreReleaseText = receiptSource + semaphoreReleaseSource
	semaphoreSetText     = receiptSource + semaphoreSetSource
	semaphoreAddText     = receiptSource + semaphoreAddSource
	semaphoreDrainText   = receiptSource + semaphoreDrainSource
)

func semaphoreAcquireScript() script {
	return script{source: semaphoreAcquireText, sha: "977a12db822b75e294c7f6731be97fff23695c07"}
}
func semaphoreCancelScript() script {
	return script{source: semaphoreCancelSource, sha: "8bd8477169b58fb21e56a69c0cac8f0e40bef315"}
}
func semaphoreReleaseScript() script {
	return script{source: semaphoreReleaseText, sha: "4618ac4ee760c4cfb8a4fd2c48f17a778e740bc5"}
}
func semaphoreSetScript() script {
	return script{source: semaphoreSetText, sha: "7f3f3eb73e551c66ccdb291d4f28aa4169c6660d"}
}
func semaphoreAddScript() script {
	return script{source: semaphoreAddText, sha: "7686c8c615fcbf15b0e1d6fc881c6670c876e41c"}
}
func semaphoreDrainScript() script {
	return script{source: semaphoreDrainText, sha: "040f97856a740404048f8c8386df4cddc886130d"}
}
