package redisson_test

import (
	"sync"
	"testing"
	"time"
)

// Calls that are made at once, and how long each of them took on a machine that may be busy with something else.

// soon is how much later than a bound a caller may leave. The client's own limit is 100ms.
const soon = 250 * time.Millisecond

// calls are under way in goroutines of their own.
type calls struct {
	ended chan outcome
	n     int
}

// outcome is how a call ended.
type outcome struct {
	name         string
	err          error
	began, ended time.Time
}

func (o outcome) took() time.Duration { return o.ended.Sub(o.began) }

// after reports whether the call ended clearly later than at. The time in which the process stood still does not count.
func (o outcome) after(at time.Time) bool { return o.ended.After(at.Add(soon + stood(o.began))) }

// tooLong reports whether the call took clearly longer than d.
func (o outcome) tooLong(d time.Duration) bool { return o.after(o.began.Add(d)) }

func newCalls() *calls {
	return &calls{ended: make(chan outcome, 1000)}
}

func (c *calls) start(name string, call func() error) {
	c.n++
	go func() {
		o := outcome{name: name, began: time.Now()}
		o.err = call()
		o.ended = time.Now()
		c.ended <- o
	}()
}

// await returns how the calls ended. Those that have not ended within limit are let go by thaw.
func (c *calls) await(t *testing.T, limit time.Duration, thaw func()) []outcome {
	t.Helper()
	stop := make(chan struct{})
	defer close(stop)
	go watch(stop, func(ran, _ time.Duration) bool {
		if limit -= ran; limit <= 0 {
			thaw()
		}
		return limit > 0
	})
	all := make([]outcome, c.n)
	for i := range all {
		select {
		case all[i] = <-c.ended:
		case <-time.After(20 * time.Second):
			t.Fatal("a call has not ended, 20s after all others")
		}
	}
	return all
}

// callAll makes calls at once.
func callAll(t *testing.T, limit time.Duration, thaw func(), all map[string]func() error) []outcome {
	t.Helper()
	c := newCalls()
	for name, call := range all {
		c.start(name, call)
	}
	return c.await(t, limit, thaw)
}

// standstills are the times in which this process stood still, because others had the machine.
var standstills struct {
	sync.Mutex
	ends []time.Time
	took []time.Duration
}

func init() {
	go watch(nil, func(_, stalled time.Duration) bool {
		if stalled > 0 {
			standstills.Lock()
			defer standstills.Unlock()
			standstills.ends, standstills.took = append(standstills.ends, time.Now()), append(standstills.took, stalled)
		}
		return true
	})
}

// stood is how long this process has stood still since start.
func stood(start time.Time) (sum time.Duration) {
	standstills.Lock()
	defer standstills.Unlock()
	for i := len(standstills.ends) - 1; i >= 0 && standstills.ends[i].After(start); i-- {
		sum += standstills.took[i]
	}
	return sum
}

// ran is how long this process has run since start. Bounds are for that time.
func ran(start time.Time) time.Duration { return time.Since(start) - stood(start) }
