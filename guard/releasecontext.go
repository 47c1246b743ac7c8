package guard

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
)

// releaseTimeout bounds giving back the locks of a call, unless ReleaseTimeout says otherwise. It is not the caller's
// deadline: the caller may be gone.
const releaseTimeout = 5 * time.Second

// ReleaseTimeout bounds giving back all locks of a call together; without it, that is 5s. A call does not return before
// that, and a lock that could not be given back ends with its lease. It bounds the roll-back, too: where a guard of
// several keys must answer an outage quickly, it adds to Wait.
func ReleaseTimeout(d time.Duration) Option {
	return giveBound("ReleaseTimeout", d, func(c *config) *time.Duration { return &c.releaseTimeout })
}

// releaseContext has the values of the caller's context, but an end of its own, a timeout after its first use. It is a
// type because lockers in memory never look at it, and a timer is a good part of the cost of a guard around them.
type releaseContext struct {
	parent  context.Context
	timeout time.Duration
	over    atomic.Int64          // when it ends, by the clock; 0 until used
	made    atomic.Pointer[timed] // nil until somebody wants more than Err, or it is stopped
}

// timed is a context with its end.
type timed struct {
	context.Context
	cancel context.CancelFunc
}

func (c *releaseContext) timed() *timed {
	if t := c.made.Load(); t != nil {
		return t
	}
	now, t := clock.Now(), new(timed)
	c.over.CompareAndSwap(0, int64(now+c.timeout))
	t.Context, t.cancel = context.WithTimeout(context.WithoutCancel(c.parent), time.Duration(c.over.Load())-now)
	if !c.made.CompareAndSwap(nil, t) {
		t.cancel()
	}
	return c.made.Load()
}

// stop ends c. A use after that finds a context that has ended.
func (c *releaseContext) stop() {
	if !c.made.CompareAndSwap(nil, ended) { // nearly always it was not used
		c.made.Load().cancel()
	}
}

// ended is a context that is over from the start.
var ended = func() *timed {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &timed{ctx, cancel}
}()

func (c *releaseContext) Deadline() (time.Time, bool) { return c.timed().Deadline() }
func (c *releaseContext) Done() <-chan struct{}       { return c.timed().Done() }
func (c *releaseContext) Value(key any) any           { return c.timed().Value(key) }

// Err makes no timer: most lockers of a service never wait for the end.
func (c *releaseContext) Err() error {
	now := clock.Now()
	if c.made.Load() == nil && (c.over.CompareAndSwap(0, int64(now+c.timeout)) || now < time.Duration(c.over.Load())) {
		return nil
	}
	return c.timed().Err()
}
