package pubsub

import (
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Which connection has which channels: what a registry does for the goroutine that makes connections.

// assignment is the channels of one connection.
type assignment struct {
	addr string        // of the master; empty where one connection has all channels
	wake chan struct{} // pending has something to send

	// The registry's mutex guards these.
	server     server              // where the first of the channels was found
	channels   map[string]*channel // all of them
	changed    map[string]*channel // those for which something may have to be sent
	emptySince time.Time           // if there are no channels
}

func newAssignment(addr string) *assignment {
	return &assignment{addr: addr, wake: make(chan struct{}, 1), channels: map[string]*channel{}, changed: map[string]*channel{}}
}

// local reports whether the assignment is one of several, each with the channels of its master.
func (a *assignment) local() bool { return a.addr != "" }

// server is where a connection goes.
type server struct {
	options *redis.Options
	key     string // what it was found by in a map
}

// place is where a channel is to be subscribed.
type place struct {
	channel string
	addr    string // of the assignment
	server  server
}

// due lists the channels that are to be assigned now, and returns when the next ones are: the zero time if there are none.
func (r *registry) due() (names []string, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for name, ch := range r.unassigned {
		if ch.notYet.After(now) {
			next = earlier(next, ch.notYet)
		} else {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, next
}

// earlier returns the earlier of two times, of which a zero one is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// postpone leaves channels unassigned until then.
func (r *registry) postpone(names []string, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if ch := r.unassigned[name]; ch != nil {
			ch.notYet = until
		}
	}
}

// assign gives channels to connections, unless nobody wants them any more, and returns the assignments that are new and need
// a connection.
func (r *registry) assign(places []place) (created []*assignment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range places {
		ch := r.unassigned[p.channel]
		if ch == nil {
			continue
		}
		a := r.assignments[p.addr]
		if a == nil {
			a = newAssignment(p.addr)
			r.assignments[p.addr] = a
			created = append(created, a)
		}
		if len(a.channels) == 0 {
			a.server = p.server
		}
		ch.at = a
		a.channels[ch.name], a.changed[ch.name] = ch, ch
		delete(r.unassigned, ch.name)
	}
	return created
}

// release takes channels from a connection that does not serve them any more. They are to be assigned again, but only after
// the pause if others are elsewhere: an old map must not send them back and forth.
func (r *registry) release(a *assignment, names []string, pause time.Duration) {
	r.mu.Lock()
	defer r.unlock()
	for _, name := range names {
		if ch := a.channels[name]; ch != nil {
			r.releaseLocked(ch, pause)
		}
	}
}

// releaseAll is release for all channels of a connection that has ended.
func (r *registry) releaseAll(a *assignment, pause time.Duration) {
	r.mu.Lock()
	defer r.unlock()
	for _, name := range slices.Sorted(maps.Keys(a.channels)) {
		r.releaseLocked(a.channels[name], pause)
	}
}

func (r *registry) releaseLocked(ch *channel, pause time.Duration) {
	if ch.subscriptions == 0 {
		r.dropLocked(ch)
		return
	}
	if ch.at.local() {
		ch.notYet = time.Now().Add(pause)
	}
	r.leaveLocked(ch)
	r.unassigned[ch.name] = ch
	ch.subscribed, ch.subscribing, ch.unsubscribing = false, 0, 0
	r.missedLocked(ch) // nobody must sleep on what is gone
	wake(r.wake)
}

// leaveLocked takes a channel from its connection.
func (r *registry) leaveLocked(ch *channel) {
	a := ch.at
	ch.at = nil
	delete(a.channels, ch.name)
	delete(a.changed, ch.name)
	if len(a.channels) == 0 {
		a.emptySince = time.Now()
	}
}

// retire removes an assignment that had no channels for idle, and reports whether it has.
func (r *registry) retire(a *assignment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(a.channels) > 0 || time.Since(a.emptySince) < idle {
		return false
	}
	delete(r.assignments, a.addr)
	return true
}

// names lists the channels of a connection.
func (r *registry) names(a *assignment) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(a.channels))
}

// serverOf returns where the connection goes.
func (r *registry) serverOf(a *assignment) server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.server
}
