package pubsub

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// registry owns the state of a Subscriber: which channels are wanted, to which connection each is assigned, and what was sent
// and answered there. It does no I/O. Each method is a whole transition under its mutex, and lists names in order, so that
// neither what is sent nor who is woken first depends on the order of a map.
//
// A channel's life:
//
//	unassigned ──assign──► assigned ──pending──► subscribing ──confirm──► live
//	live ──unsubscribe──► lingering ──expire, pending──► unsubscribing ──confirm──► forgotten
//
// When a connection breaks or a slot moves, release makes a channel unassigned again, and forgets one that only lingers.
type registry struct {
	wake chan struct{} // the subscriber's goroutine has something to do

	mu          sync.Mutex
	channels    map[string]*channel
	unassigned  map[string]*channel
	assignments map[string]*assignment // by address; "" where one connection has all channels
	lingering   list.List              // of *channel, the one that has lingered longest first
	alarm       time.Time              // when expire will be called again; zero if nothing lingered the last time
}

func newRegistry() *registry {
	return &registry{
		wake:        make(chan struct{}, 1),
		channels:    map[string]*channel{},
		unassigned:  map[string]*channel{},
		assignments: map[string]*assignment{},
	}
}

// subscribe counts a subscription, for which unsubscribe must be called once.
func (r *registry) subscribe(name string) *channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.subscribeLocked(name)
}

// receive is subscribe for a channel with mail.
func (r *registry) receive(name string) *channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := r.subscribeLocked(name)
	if ch.mail == nil {
		ch.mail = new(mail)
	}
	return ch
}

func (r *registry) subscribeLocked(name string) *channel {
	ch := r.channels[name]
	if ch == nil {
		ch = &channel{name: name, changed: make(chan struct{})}
		r.channels[name], r.unassigned[name] = ch, ch
		wake(r.wake)
	}
	ch.subscriptions++
	r.endLingeringLocked(ch)
	if ch.at != nil && !ch.subscribed {
		ch.at.changed[name] = ch
		wake(r.wake)
	}
	return ch
}

// unsubscribe takes back a subscription. The last one leaves a channel that is assigned for others to find for a while.
func (r *registry) unsubscribe(ch *channel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch.subscriptions--
	if ch.subscriptions > 0 {
		return
	}
	if ch.at == nil {
		r.dropLocked(ch)
		return
	}
	ch.until = time.Now().Add(Linger)
	ch.lingering = r.lingering.PushBack(ch)
	if r.alarm.IsZero() {
		r.alarm = ch.until
		wake(r.wake)
	}
}

// changed returns what the channel's next hint closes, and whether messages get through now.
func (r *registry) changed(ch *channel) (changed <-chan struct{}, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ch.changed, ch.live()
}

// find is changed for a channel that may be there.
func (r *registry) find(name string) (changed <-chan struct{}, live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := r.channels[name]
	if ch == nil || !ch.live() {
		return nil, false
	}
	return ch.changed, true
}

func (r *registry) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.channels)
}

func (r *registry) endLingeringLocked(ch *channel) {
	if ch.lingering != nil {
		r.lingering.Remove(ch.lingering)
		ch.lingering = nil
	}
}

// dropLocked forgets a channel.
func (r *registry) dropLocked(ch *channel) {
	r.endLingeringLocked(ch)
	delete(r.channels, ch.name)
	delete(r.unassigned, ch.name)
	if ch.at != nil {
		r.leaveLocked(ch)
	}
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

// expire has channels unsubscribed that have lingered long enough, and returns when to call it again: the zero time if
// nothing lingers.
func (r *registry) expire() (next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for r.lingering.Len() > 0 {
		ch := r.lingering.Front().Value.(*channel)
		if ch.until.After(now) {
			r.alarm = ch.until
			return r.alarm
		}
		r.endLingeringLocked(ch)
		ch.at.changed[ch.name] = ch
	}
	r.alarm = time.Time{}
	return r.alarm
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
		case ch.wanted() && !ch.subscribed:
			ch.subscribed = true
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
	defer r.mu.Unlock()
	ch := r.channels[s.Channel]
	if ch == nil || ch.at != a {
		return false
	}
	switch s.Kind {
	case "subscribe", "ssubscribe":
		ch.subscribing = max(0, ch.subscribing-1)
		if ch.live() { // messages were missed before
			if ch.mail != nil {
				ch.mail.missed = true
			}
			ch.hint()
		}
	case "unsubscribe", "sunsubscribe":
		if ch.unsubscribing == 0 {
			return a.sharded() && ch.subscribed
		}
		ch.unsubscribing--
		r.forgetLocked(ch)
	}
	return false
}

// message notes a message on a channel.
func (r *registry) message(name, payload string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ch := r.channels[name]; ch != nil {
		if ch.mail != nil {
			ch.mail.put(payload)
		}
		ch.hint()
	}
}

// read returns what was said on a channel since the last time.
func (r *registry) read(ch *channel) (messages []string, missed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages, missed = ch.mail.messages, ch.mail.missed
	*ch.mail = mail{}
	return messages, missed
}

// apart groups channels into commands. What the server refuses of a command, it refuses as a whole, so channels with mail go by themselves.
func (r *registry) apart(names []string) (groups [][]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var others []string
	for _, name := range names {
		if ch := r.channels[name]; ch != nil && ch.mail != nil {
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
func (r *registry) refused(a *assignment, pause time.Duration) (any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.channels)) {
		ch := a.channels[name]
		if ch.mail == nil || ch.subscribing == 0 {
			continue
		}
		any = true
		r.releaseLocked(ch, 0)
		ch.notYet = time.Now().Add(pause)
	}
	return any
}

// release takes channels from a connection that does not serve them any more. They are to be assigned again, but only after
// the pause if they are sharded: an old map of the cluster must not send them back and forth.
func (r *registry) release(a *assignment, names []string, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if ch := a.channels[name]; ch != nil {
			r.releaseLocked(ch, pause)
		}
	}
}

// releaseAll is release for all channels of a connection that has ended.
func (r *registry) releaseAll(a *assignment, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.channels)) {
		r.releaseLocked(a.channels[name], pause)
	}
}

func (r *registry) releaseLocked(ch *channel, pause time.Duration) {
	if ch.subscriptions == 0 {
		r.dropLocked(ch)
		return
	}
	if ch.at.sharded() {
		ch.notYet = time.Now().Add(pause)
	}
	r.leaveLocked(ch)
	r.unassigned[ch.name] = ch
	ch.subscribed, ch.subscribing, ch.unsubscribing = false, 0, 0
	ch.hint() // nobody must sleep on what is gone
	wake(r.wake)
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
