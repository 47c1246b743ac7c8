package redisson

import (
	"sync/atomic"
	"time"
)

// alarm calls a function some time after it was set, in a goroutine of its own, and can be set again from then on.
type alarm struct {
	f     func()
	timer *time.Timer
	armed atomic.Bool
}

func newAlarm(f func()) *alarm {
	a := &alarm{f: f}
	a.timer = time.AfterFunc(forever, a.ring)
	a.timer.Stop() // until it is set
	return a
}

// set has the function called after d, unless it will be called anyway.
func (a *alarm) set(d time.Duration) {
	if !a.armed.Swap(true) {
		a.timer.Reset(d)
	}
}

func (a *alarm) ring() {
	a.armed.Store(false) // what comes up from now on sets it again
	a.f()
}
