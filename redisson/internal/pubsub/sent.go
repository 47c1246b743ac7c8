package pubsub

import (
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is sent on a connection, and what comes back: what a registry does for the goroutines of one.

// flush wakes the connections that have something to send.
func (r *registry) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, addr := range slices.Sorted(maps.Keys(r.assignments)) {
		if a := r.assignments[addr]; len(a.changed) > 0 {
			wake(a.wake)
		}
	}
}

// pending lists what is to be sent on the connection now, and notes it as sent.
func (r *registry) pending(a *assignment) (subscribe, unsubscribe []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.changed)) {
		switch ch := a.changed[name]; {
		case ch.wanted() && (!ch.subscribed || ch.again):
			ch.subscribed, ch.again = true, false
			ch.sent++
			ch.subscribing++
			subscribe = append(subscribe, name)
		case !ch.wanted() && ch.subscribed:
			ch.subscribed = false
			ch.unsubscribing++
			unsubscribe = append(unsubscribe, name)
		case !ch.wanted():
			r.forgetLocked(ch)
		}
	}
	clear(a.changed)
	return subscribe, unsubscribe
}

// forgetLocked drops a channel that nobody wants and for which no answer is on its way.
func (r *registry) forgetLocked(ch *channel) {
	if !ch.wanted() && !ch.subscribed && ch.subscribing+ch.unsubscribing == 0 {
		r.dropLocked(ch)
	}
}

// confirm notes the answer to a subscription or to a cancellation. A server cancels a sharded subscription by itself when it
// gives the slot away, and confirm then reports that the channel has moved.
func (r *registry) confirm(a *assignment, s *redis.Subscription) (moved bool) {
	r.mu.Lock()
	defer r.unlock()
	ch := r.channels[s.Channel]
	if ch == nil || ch.at != a {
		return false
	}
	switch s.Kind {
	case "subscribe", "ssubscribe":
		ch.subscribing = max(0, ch.subscribing-1)
		if ch.live() { // messages were missed before
			for _, m := range ch.mails {
				m.missed = true
			}
			r.missedLocked(ch)
		}
	case "unsubscribe", "sunsubscribe":
		if ch.unsubscribing == 0 {
			return a.local() && ch.subscribed
		}
		ch.unsubscribing--
		r.forgetLocked(ch)
	}
	return false
}

// apart groups channels into commands. What the server refuses of a command, it refuses as a whole, so channels with mail go by themselves.
func (r *registry) apart(names []string) (groups [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var others []string
	for _, name := range names {
		if ch := r.channels[name]; ch != nil && len(ch.mails) > 0 {
			groups = append(groups, []string{name})
		} else {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		groups = append(groups, others)
	}
	return groups
}

// refused gives up channels with mail whose subscription is not confirmed, and reports whether there was one: the server has refused
// something on this connection, and they are what a user is most likely not to be allowed. They are to be tried again after the pause.
func (r *registry) refused(a *assignment, pause time.Duration) (found bool) {
	r.mu.Lock()
	defer r.unlock()
	for _, name := range slices.Sorted(maps.Keys(a.channels)) {
		ch := a.channels[name]
		if len(ch.mails) == 0 || ch.subscribing == 0 {
			continue
		}
		found = true
		r.releaseLocked(ch, 0)
		ch.notYet = time.Now().Add(pause)
	}
	return found
}
