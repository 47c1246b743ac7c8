package guard

import (
	"math"
	"sync"
	"time"
)

// Times is how long something took in the last five to ten minutes, in classes of which each is about a quarter longer
// than the one before; all below a millisecond are one. Its zero value has seen nothing.
type Times struct {
	counts [holdClasses]int64
}

// Count is how often it happened.
func (t *Times) Count() (n int64) {
	for _, count := range t.counts {
		n += count
	}
	return n
}

// Quantile returns the time within which a share of q stayed: one in a hundred took longer than Quantile(0.99). It is
// the end of a class, so it is too long by a quarter at most. It is 0 if there were none.
func (t *Times) Quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q*float64(t.Count()) - 1e-9)) // where 0.98*50 is a little more than 49
	for class, n := range t.counts {
		if rank -= n; rank <= 0 && n > 0 {
			return endOf(class)
		}
	}
	return 0
}

// generation is how long recentTimes counts in one place before it begins anew.
const generation = 5 * time.Minute

// recentTimes counts Times: those of this generation, and of the one before. It is safe for concurrent use.
type recentTimes struct {
	mu              sync.Mutex
	begun           time.Duration // this generation, by the clock
	current, before Times
}

func (r *recentTimes) add(d, at time.Duration) {
	class := classOf(d)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnLocked(at)
	r.current.counts[class]++
}

// sum returns the counts of both generations.
func (r *recentTimes) sum(at time.Duration) Times {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnLocked(at)
	sum := r.current
	for class, n := range r.before.counts {
		sum.counts[class] += n
	}
	return sum
}

// turnLocked begins a new generation if it is time.
func (r *recentTimes) turnLocked(at time.Duration) {
	switch old := at - r.begun; {
	case old < generation:
		return
	case old < 2*generation:
		r.before = r.current
	default:
		r.before = Times{}
	}
	r.current, r.begun = Times{}, at
}
