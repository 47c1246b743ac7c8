package redisson

import (
	"container/heap"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// instant is a time on the monotonic clock: a third as long as a time.Time, of which a holder would have nine. Zero is no time.
type instant int64

// epoch is long before the process, so that all its instants are positive, those of tests in virtual time included.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

func present() instant { return instant(time.Since(epoch)) } // which reads one clock, and time.Now two

func instantOf(t time.Time) instant { return instant(t.Sub(epoch)) }

func (i instant) time() time.Time { return epoch.Add(time.Duration(i)) }

// add returns the latest instant if the sum is later than that.
func (i instant) add(d time.Duration) instant {
	if d > 0 && i > math.MaxInt64-instant(d) {
		return math.MaxInt64
	}
	return i + instant(d)
}

func (i instant) sub(from instant) time.Duration { return time.Duration(i - from) }

// soonInterval is how long the watchdog collects what has just come up. What comes up at about the same time travels together, and
// not before what was due already.
const soonInterval = time.Millisecond

func soon() instant { return present().add(soonInterval) }

// forever is longer than anything waits.
const forever = 100 * 365 * 24 * time.Hour

// schedule is a heap of what the registry has to see to. What is due first is at the top.
type schedule []*entry

// entry is a part of what can be scheduled.
type entry struct {
	of    any // a *holder or a *retry
	due   instant
	index int // in the heap, from 1; 0 when not there
}

// set gives the entry a time, or takes it out of the schedule if that is zero.
func (s *schedule) set(e *entry, of any, due instant) {
	switch e.of, e.due = of, due; {
	case due == 0 && e.index > 0:
		heap.Remove(s, e.index-1)
	case due == 0:
	case e.index > 0:
		heap.Fix(s, e.index-1)
	default:
		heap.Push(s, e)
	}
}

// Len implements [heap.Interface].
func (s schedule) Len() int { return len(s) }

// Less implements [heap.Interface].
func (s schedule) Less(i, j int) bool { return s[i].due < s[j].due }

// Swap implements [heap.Interface].
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i+1, j+1
}

// Push implements [heap.Interface].
func (s *schedule) Push(x any) {
	*s = append(*s, x.(*entry))
	(*s)[len(*s)-1].index = len(*s)
}

// Pop implements [heap.Interface].
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last], e.index = nil, 0
	*s = (*s)[:last]
	return e
}

// without returns list without one element, in place.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// alarm calls a function some time after it was set, in a goroutine of its own, and can be set again from then on.
type alarm struct {
	f     func()
	armed atomic.Bool
}

// set has the function called after d, unless it will be called anyway.
func (a *alarm) set(d time.Duration) {
	if !a.armed.Swap(true) {
		time.AfterFunc(d, a.ring)
	}
}

func (a *alarm) ring() {
	a.armed.Store(false) // what comes up from now on sets it again
	a.f()
}
