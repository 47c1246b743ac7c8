package guard

import (
	"cmp"
	"errors"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// retryUnknown bounds when a busy call should come again while its guard does not know how long its calls take. A lease
// that is renewed says little about that.
const retryUnknown = 5 * time.Second

// MaxRetryAfter caps Error.RetryAfter; without it, only the rest of the holder's lease does.
func MaxRetryAfter(d time.Duration) Option {
	return giveBound("MaxRetryAfter", d, func(c *config) *time.Duration { return &c.maxRetryAfter })
}

// retryAfter estimates when a call that is busy for err should come again: when nine of ten recent holders were done.
// Before there were any it goes by the holder's lease, which may be unknown. Callers that were refused together come back
// one by one, as the last fifth of it is left to chance.
func (c *call) retryAfter(err error) time.Duration {
	var rest time.Duration
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		if rest = max(0, busy.Remaining); busy.Rate { // which knows better than the recent holds
			rest = (rest + time.Millisecond - 1).Truncate(time.Millisecond)
			return min(rest, cmp.Or(c.maxRetryAfter, rest))
		}
	}
	after := c.recent.most()
	switch {
	case after > 0:
		after += after / 4
	case c.request.Lease > 0:
		after = rest
	default:
		after = min(rest, retryUnknown)
	}
	if rest > 0 {
		after = min(after, rest)
	}
	if c.maxRetryAfter > 0 {
		after = min(after, c.maxRetryAfter)
	}
	return after - rand.N(after/5+1)
}

// recentHolds counts how long the calls of a guard hold their locks, in classes of which each is a quarter of an octave. Old
// calls count less and less: all counts are halved from time to time. It is safe for concurrent use.
type recentHolds struct {
	pass   atomic.Int32 // how many calls are not counted, until the next that is
	mu     sync.Mutex
	counts [holdClasses]uint8
	total  int
}

const (
	shortest    = 20 // as a power of two of nanoseconds: about a millisecond, below which is one class
	holdClasses = 1 + 4*24
	holdsKept   = 128 // halved at this number; a class of uint8 holds them all
	passed      = 7   // of the calls that follow a short one, on average
)

// due reports whether to count the hold that ends now. After many holds of the shortest class, it skips some, because
// reading the clock is a good part of the cost of a guard around a short hold. The number skipped is random, so that no
// pattern of calls hides the long ones.
func (r *recentHolds) due() bool { return r.pass.Load() <= 0 || r.pass.Add(-1) < 0 }

func (r *recentHolds) add(held time.Duration) {
	class := classOf(held)
	r.mu.Lock()
	defer r.mu.Unlock()
	if class == 0 && r.total >= holdsKept/2 { // the first are counted one and all: a guard may have few
		r.pass.Store(rand.Int32N(2*passed + 1))
	}
	r.counts[class]++
	r.total++
	if r.total < holdsKept {
		return
	}
	r.total = 0
	for i, n := range r.counts {
		r.counts[i] = n / 2
		r.total += int(n / 2)
	}
}

// most returns how long nine of ten calls hold their locks at most, and 0 if there were none.
func (r *recentHolds) most() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	longer := r.total / 10
	for class := holdClasses - 1; class >= 0; class-- {
		if longer -= int(r.counts[class]); longer < 0 {
			return endOf(class)
		}
	}
	return 0
}

// classOf numbers the classes from 0, which ends at 1<<shortest.
func classOf(held time.Duration) int {
	if held < 1<<shortest {
		return 0
	}
	octave := bits.Len64(uint64(held)) - 1
	quarter := int(held>>(octave-2)) & 3
	return min(1+4*(octave-shortest)+quarter, holdClasses-1)
}

// endOf is where a class ends.
func endOf(class int) time.Duration {
	octave, quarter := shortest+(class-1)/4, (class-1)%4
	if class == 0 {
		return 1 << shortest
	}
	return time.Duration(5+quarter) << (octave - 2)
}
