package redisson

import (
	"math"
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
