package memlock

import (
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/queue"
	"github.com/latchkey-go/latchkey/lock"
)

// rate is one key with permits that were given lately. The Locker's mutex guards it.
//
// It remembers each permit for the longest Interval that a request has named meanwhile, so that each request can go by its own. A timer
// lets in who waits, and forgets the key when the last permit is that old.
type rate struct {
	key     string
	given   []time.Duration // when, by the clock, in order
	longest time.Duration
	waiters queue.Queue[*waiter]
	timer   *time.Timer
}

// give counts a permit for h, which holds from now on.
func (l *Locker) give(h *hold) {
	r := l.rates[h.r.Key]
	if r == nil {
		r = &rate{key: h.r.Key}
		r.timer = time.AfterFunc(h.r.Rate.Interval, func() { l.timed(r) })
		l.rates[r.key] = r
	}
	r.longest = max(r.longest, h.r.Rate.Interval)
	r.given = append(r.given, h.start)
	r.changed(l)
}

// timed serves those who wait for r, unless it has been forgotten meanwhile.
func (l *Locker) timed(r *rate) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rates[r.key] == r {
		l.serve(r)
	}
}

// next is when r has a permit for h, by the clock, if nobody else gets that. It may be long ago.
func (r *rate) next(h *hold) time.Duration {
	want := h.r.Rate
	r.longest = max(r.longest, want.Interval)
	if n := len(r.given) - want.Permits; n >= 0 {
		return later(r.given[n], want.Interval)
	}
	return math.MinInt64
}

// shut implements gate.
func (r *rate) shut(h *hold) bool { return r.next(h) > clock.Now() }

func (r *rate) line() *queue.Queue[*waiter] { return &r.waiters }

// refusal names the time until the next permit, be it for h or for those ahead of it.
func (r *rate) refusal(h *hold) *refusal {
	now := clock.Now()
	next := max(now, r.next(h))
	if w := r.waiters.First(); w != nil {
		next = max(next, r.next(w.hold))
	}
	return &refusal{BusyError: lock.BusyError{Rate: true, Remaining: next - now}}
}

// changed forgets permits that are too old to matter, and sets the timer.
func (r *rate) changed(l *Locker) {
	now := clock.Now()
	for len(r.given) > 0 && later(r.given[0], r.longest) <= now {
		r.given = r.given[1:]
	}
	switch w := r.waiters.First(); {
	case w != nil:
		r.timer.Reset(max(now, r.next(w.hold)) - now)
	case len(r.given) > 0:
		r.timer.Reset(later(r.given[len(r.given)-1], r.longest) - now)
	default:
		r.timer.Stop()
		delete(l.rates, r.key)
	}
}
