package memlock

import (
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// entry is one key that is held. The Locker's mutex guards it.
type entry struct {
	holds  []*hold
	queue  []*hold // in the order of arrival
	owners int     // different ones among holds
}

// admits reports whether h may hold the lock now; behind says that others are ahead of it in the queue. Re-entry passes
// them: they wait for the owner of h, so it would wait for itself.
func (e *entry) admits(h *hold, behind bool) bool {
	if slices.ContainsFunc(e.holds, h.reenters) {
		return true
	}
	if behind {
		return false
	}
	switch {
	case len(e.holds) == 0:
		return true
	case h.mode == exclusive || e.excludes(h.mode):
		return false
	}
	return h.mode == shared || e.owners < h.r.Limit
}

// excludes reports whether any of the holds does not go together with others of mode m.
func (e *entry) excludes(m mode) bool {
	return slices.ContainsFunc(e.holds, func(o *hold) bool { return o.mode != m })
}

func (e *entry) add(h *hold) {
	if !e.owns(h.owner) {
		e.owners++
	}
	e.holds = append(e.holds, h)
}

// remove takes h out and reports whether it was there, as a hold or in the queue.
func (e *entry) remove(h *hold) bool {
	if i := slices.Index(e.holds, h); i >= 0 {
		e.holds = slices.Delete(e.holds, i, i+1)
		if !e.owns(h.owner) {
			e.owners--
		}
		return true
	}
	i := slices.Index(e.queue, h)
	if i >= 0 {
		e.queue = slices.Delete(e.queue, i, i+1)
	}
	return i >= 0
}

func (e *entry) owns(o lock.Owner) bool {
	return slices.ContainsFunc(e.holds, func(h *hold) bool { return h.owner == o })
}

// remaining is the time until all of the holds have ended by themselves, or 0 if one of them never does.
func (e *entry) remaining() time.Duration {
	var last time.Time
	for _, h := range e.holds {
		if h.until.IsZero() {
			return 0
		}
		if h.until.After(last) {
			last = h.until
		}
	}
	return max(0, time.Until(last))
}
