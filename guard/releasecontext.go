package guard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// releaseTimeout bounds giving back the locks of a call, unless ReleaseTimeout says otherwise. It is not the caller's
// deadline: the caller may be gone.
const releaseTimeout = 5 * time.Second

// ReleaseTimeout bounds giving back all locks of a call together; without it, that is 5s. A call does not return before,
// and what could not be given back ends with its lease. It bounds the roll-back, too: where a guard of several keys must
// answer an outage quickly, it adds to Wait.
func ReleaseTimeout(d time.Duration) Option {
	return giveBound("ReleaseTimeout", d, func(c *config) *time.Duration { return &c.releaseTimeout })
}

// releaseContext has the values of the caller's context, but an end of its own, a timeout after its first use. It
// is a type because lockers in memory never look at it, and a timer is a good part of what a guard around them costs.
type releaseContext struct {
	call   *call
	state  atomic.Int32
	mu     sync.Mutex      // held while ctx is made
	ctx    context.Context // nil until used
	cancel context.CancelFunc
}

// The states of a releaseContext. It begins unused.
const (
	unused = iota
	used
	stopped
)

func (c *releaseContext) timed() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ctx != nil:
	case c.state.CompareAndSwap(unused, used):
		c.ctx, c.cancel = context.WithTimeout(context.WithoutCancel(c.call.ctx), c.call.releaseTimeout)
	default:
		c.ctx = ended
	}
	return c.ctx
}

// stop ends c. A use after that finds a context that has ended.
func (c *releaseContext) stop() {
	if c.state.CompareAndSwap(unused, stopped) {
		return // as nearly always
	}
	c.timed() // is being made, perhaps
	c.cancel()
}

// ended is a context that is over from the start.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (c *releaseContext) Deadline() (time.Time, bool) { return c.timed().Deadline() }
func (c *releaseContext) Done() <-chan struct{}       { return c.timed().Done() }
func (c *releaseContext) Err() error                  { return c.timed().Err() }
func (c *releaseContext) Value(key any) any           { return c.timed().Value(key) }
