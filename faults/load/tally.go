package main

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// tally is what processes have done. Its size does not depend on how much that was.
type tally struct {
	Ops, Busy, Errors, Overlaps int64
	First                       string // error
	Waits                       waits
}

// steps is how many buckets a waits has: each is 3 % wider than the one before, from a microsecond to minutes.
const steps, growth = 700, 1.03

// waits counts durations.
type waits struct {
	Counts [steps]int64
	Max    time.Duration
}

func (w *waits) add(d time.Duration) {
	i := int(math.Log(max(1, float64(d)/float64(time.Microsecond))) / math.Log(growth))
	atomic.AddInt64(&w.Counts[min(i, steps-1)], 1)
	for {
		longest := atomic.LoadInt64((*int64)(&w.Max))
		if int64(d) <= longest || atomic.CompareAndSwapInt64((*int64)(&w.Max), longest, int64(d)) {
			return
		}
	}
}

// quantile returns the duration which a part p of all does not exceed, 3 % off at most.
func (w *waits) quantile(p float64) time.Duration {
	var all, sum int64
	for _, n := range w.Counts {
		all += n
	}
	for i, n := range w.Counts {
		if sum += n; sum > 0 && float64(sum) >= p*float64(all) {
			return min(w.Max, time.Duration(math.Pow(growth, float64(i+1))*float64(time.Microsecond)))
		}
	}
	return 0
}

func (t tally) plus(o tally) tally {
	t.Ops, t.Busy, t.Errors, t.Overlaps = t.Ops+o.Ops, t.Busy+o.Busy, t.Errors+o.Errors, t.Overlaps+o.Overlaps
	t.First = cmp.Or(t.First, o.First)
	for i, n := range o.Waits.Counts {
		t.Waits.Counts[i] += n
	}
	t.Waits.Max = max(t.Waits.Max, o.Waits.Max)
	return t
}

// counter is a tally under way.
type counter struct {
	t     tally
	first sync.Once
}

func (c *counter) done(wait time.Duration) { c.t.Waits.add(wait); atomic.AddInt64(&c.t.Ops, 1) }
func (c *counter) busy()                   { atomic.AddInt64(&c.t.Busy, 1) }
func (c *counter) overlap()                { atomic.AddInt64(&c.t.Overlaps, 1) }

func (c *counter) failed(err error) {
	c.first.Do(func() { c.t.First = err.Error() })
	atomic.AddInt64(&c.t.Errors, 1)
}
