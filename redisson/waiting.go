package redisson

import (
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// pollInterval is how often a lock is tried while no message about it can arrive.
const pollInterval = 250 * time.Millisecond

// queueInRedis stands in the queue of a fair lock, where each waiter has a place of its own, and tries when it is told that
// its turn has come.
func (w *wait) queueInRedis(cl *claim) (*hold, error) {
	cl.queued = true
	h, ttl, err := w.try(cl)
	if h != nil || err != nil {
		return h, err
	}
	channel := w.c.channels.Subscribe(cl.family.channel(cl))
	defer channel.Close()
	for tried := true; ; tried = false {
		hint, live := channel.Changed()
		if live || !tried {
			if h, ttl, err = w.try(cl); h != nil || err != nil {
				return h, err
			}
		}
		if err := w.await(hint, w.nap(ttl, live), nil, ttl); err != nil {
			return nil, err
		}
	}
}

// queue stands in line for the lock and, at the head of the line, tries whenever it may be free: at once, after a message,
// after a (new) subscription, when the holder's lease is over, and in any case once in a third of the watchdog's timeout.
func (w *wait) queue(claim **claim) (*hold, error) {
	cl := *claim
	place := w.c.lines.join(lineKey{cl.name, cl.family, cl.kind}, cl.family.channel(cl))
	defer w.c.lines.leave(place)
	if err := w.await(place.turn, nil, place, 0); err != nil {
		return nil, err
	}
	pause := w.c.spin
	var failing time.Time // since when Redis has not answered this head of a line that it did answer before
	for {
		// Taken before the try, so that a message in between is not missed.
		hint, live := place.hint()
		h, ttl, err := w.try(cl)
		if h != nil {
			place.expect(ttl)
			return h, nil
		}
		if err != nil && place.answered() && passing(err) && (failing.IsZero() || time.Since(failing) < w.c.timeout) {
			if failing.IsZero() {
				failing = time.Now()
			}
			if err := w.await(nil, time.After(pollInterval), place, 0); err != nil {
				return nil, err
			}
			w.clear(cl, lock.ErrBusy) // of what was not answered; a claim that is removed can't be had any more
			cl = w.newClaim(cl.seat)
			*claim = cl
			continue
		}
		if err != nil {
			if w.ctx.Err() == nil {
				place.fail(err) // Redis would answer those behind no better
			}
			return nil, err
		}
		failing = time.Time{}
		place.expect(ttl)
		if hint == nil && place.line.channel != "" {
			// The first refusal in this line: from now on it listens. The confirmation is a hint, too, and so
			// makes up for a message that came before it.
			place.listen()
			if hint, live = place.hint(); live {
				continue
			}
		}
		soon := w.nap(ttl, live)
		if place.line.channel == "" {
			soon = time.After(pause.next())
		}
		if err := w.await(hint, soon, place, ttl); err != nil {
			return nil, err
		}
	}
}

// nap is how long to sleep without a hint. A lock without a time to live, which Redisson never makes, is looked at again
// like any other.
func (w *wait) nap(ttl time.Duration, live bool) <-chan time.Time {
	d := w.c.watchdog.timeout / 3
	if ttl >= 0 {
		d = min(d, ttl+time.Millisecond)
	}
	if !live {
		d = min(d, pollInterval)
	}
	return time.After(d)
}

// await returns nil when ready or soon was received from, and the reason when there is nothing left to wait for. The place
// is nil for a waiter who is in no line of this process; then ttl is how long the lock is held at least.
func (w *wait) await(ready <-chan struct{}, soon <-chan time.Time, p *place, ttl time.Duration) error {
	var failed <-chan struct{}
	if p != nil {
		failed = p.line.failed
	}
	select {
	case <-ready:
		return nil
	case <-soon:
		return nil
	case <-failed:
		return p.line.err
	case <-w.over():
		if p == nil {
			return w.busy(ttl)
		}
		return w.verdict(p)
	case <-w.ctx.Done():
	case <-w.c.ctx.Done():
	}
	return firstCause(w.ctx, w.c.ctx)
}

// verdict is what a wait that is over has come to. As long as Redis has answered nobody in the line, it is not known that
// the lock is busy, but the question is under way.
func (w *wait) verdict(p *place) error {
	select {
	case <-p.line.heard:
		return w.busy(p.remaining())
	default:
	}
	select {
	case <-p.line.heard:
		return w.busy(p.remaining())
	case <-p.line.failed:
		return p.line.err
	case <-time.After(w.c.timeout):
		return w.c.errTimeout()
	case <-w.ctx.Done():
	case <-w.c.ctx.Done():
	}
	return firstCause(w.ctx, w.c.ctx)
}
