package redisson

import (
	"sync/atomic"
	"time"
)

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
