package memlock

import (
	"context"
	"math"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/queue"
	"github.com/latchkey-go/latchkey/lock"
)

// entry is one key that is held. The Locker's mutex guards it.
type entry struct {
	holds queue.Queue[*hold] // all of one family of kinds; also those released with Keep, until that ends
	queue queue.Queue[*hold] // strangers to all holds, in the order of arrival
	stays int                // different ones among holds
	alone int                // those of the holds that are not shared
}

// stay is what one owner has of a key: the hold that began it, and those that re-entered. It lasts until the last of them
// is gone.
type stay struct{ holds int32 }

// admit decides on the arrival of h, which re-enters one of the holds in above, or else is a stranger. It reports whether h
// may hold the lock now, or returns why it must not even wait.
func (e *entry) admit(h *hold, above []*hold) (bool, error) {
	var first *hold
	var kinds []lock.Kind
	for _, a := range above {
		if a.Held() { // may have been released since it was found
			first = a
			kinds = append(kinds, a.r.Kind)
		}
	}
	switch holder := e.holds.First(); {
	case first != nil:
		if err := lock.Reenter(h.r.Kind, kinds...); err != nil {
			return false, err
		}
		h.stay = first.stay
		return true, nil
	case holder != nil && holder.r.Kind.Family() != h.r.Kind.Family():
		return false, &lock.KindError{Held: holder.r.Kind, Wanted: h.r.Kind}
	}
	return e.queue.First() == nil && e.admitStranger(h), nil
}

// admitStranger reports whether h, with nobody ahead of it in the queue, may hold the lock now, as a stranger to all who do.
func (e *entry) admitStranger(h *hold) bool {
	switch modeOf(h.r.Kind) {
	case shared:
		return e.alone == 0
	case counted:
		return e.stays < h.r.Limit
	}
	return e.stays == 0
}

func (e *entry) add(h *hold) {
	if h.stay == nil {
		h.stay = &h.own
	}
	if h.stay.holds == 0 {
		e.stays++
	}
	h.stay.holds++
	if modeOf(h.r.Kind) != shared {
		e.alone++
	}
	h.entry = e
	e.holds.Join(&h.place, h)
}

// remove takes h out and reports whether it was there, as a hold or in the queue.
func (e *entry) remove(h *hold) bool {
	if !h.place.Leave() {
		return false
	}
	if h.stay == nil { // in the queue
		return true
	}
	if modeOf(h.r.Kind) != shared {
		e.alone--
	}
	h.stay.holds--
	if h.stay.holds == 0 {
		e.stays--
	}
	return true
}

// refusal is what one who gives up is to know about the holders. Their contexts may run code that we know nothing about,
// so they are only collected here, and looked into after the mutex is unlocked.
type refusal struct {
	remaining time.Duration
	holders   []*hold
}

func (e *entry) refusal() refusal {
	f := refusal{remaining: e.remaining()}
	for h := range e.holds.All() {
		if h.Held() {
			f.holders = append(f.holders, h)
		}
	}
	return f
}

// busy makes the error for the caller with ctx.
func (f refusal) busy(ctx context.Context, waited time.Duration) error {
	busy := &lock.BusyError{Remaining: f.remaining, Waited: waited}
	for _, h := range f.holders {
		busy.HeldBy(ctx, &h.ctx, h.r.Holder)
	}
	return busy
}

// remaining is the time until all of the holds have ended by themselves, or 0 if one of them never does.
func (e *entry) remaining() time.Duration {
	last := time.Duration(math.MinInt64)
	for h := range e.holds.All() {
		if h.until == 0 {
			return 0
		}
		last = max(last, h.until)
	}
	return max(0, last-clock.Now())
}
