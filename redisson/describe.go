package redisson

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/lock"
)

// Describe has a client with a [Name] say more for those who look at its locks: since when it holds each and what for, see [About], for locks of all
// kinds, and the permits of lock.Permit. It costs no command a lock, but one a second at most, as long as what the client holds for longer than a
// moment changes, with the newest 1,000 holds. Guards' names, ids of traces and keys get into Redis by it.
func Describe() Option {
	return optionFunc(func(s *settings) { s.describes = true })
}

const (
	describeInterval = time.Second
	// mostDescribed is how many holds are described, and mostWaits how many keys of one.
	mostDescribed = 1000
	mostWaits     = 10
)

// described is a hold, with what of it may change.
type described struct {
	*hold
	renews bool
}

// newest returns the newest holds, the first of each holder, and whether there are more.
func (s *registry) newest(most int) (all []described, more bool) {
	s.mu.Lock()
	for ho := range s.holders.all() {
		if len(ho.holds) > 0 {
			all = append(all, described{ho.holds[0], ho.renewed()})
		}
	}
	s.unlock()
	if more = len(all) > most; more {
		slices.SortFunc(all, func(a, b described) int { return int(b.since - a.since) })
		all = all[:most]
	}
	return all, more
}

// publicID is a holder's id as [Holder] has it.
func (ho *holder) publicID() string {
	if ho.kind == lock.Permit {
		return hex.EncodeToString([]byte(ho.id))
	}
	return ho.id
}

// describe adds what is to be said of holds, and reports whether there are few enough to look at them often.
func (p *presence) describe(fields map[string]string) (often bool) {
	waits := map[string][]string{} // by the holder above
	p.waits.Range(func(one, _ any) bool {
		w := one.(*waiter)
		for a := range lock.Ancestors(w.ctx) {
			if h, ok := a.(interface{ inner() *hold }); ok {
				id := h.inner().holder.publicID()
				if keys := waits[id]; len(keys) < mostWaits && !slices.Contains(keys, w.stay.name) {
					waits[id] = append(keys, w.stay.name)
				}
			}
		}
		return true
	})
	all, more := p.c.registry.newest(mostDescribed)
	for _, h := range all {
		about := About{Since: h.since.time().Round(time.Millisecond).UTC(), For: h.by, Renews: h.renews, Waits: waits[h.holder.publicID()]}
		if t := trace.SpanContextFromContext(&h.ctx).TraceID(); t.IsValid() {
			about.Trace = t.String()
		}
		slices.Sort(about.Waits)
		text, _ := json.Marshal(about) // never fails
		fields[h.holder.publicID()] = string(text)
	}
	return !more
}
