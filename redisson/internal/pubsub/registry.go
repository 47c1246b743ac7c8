package pubsub

import (
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/queue"
)

// registry owns the state of a Subscriber: which channels are wanted, to which connection each is assigned, and what was sent
// and answered there. It does no I/O. Each method is a whole transition under its mutex, and lists names in order, so that
// neither what is sent nor who is woken first depends on the order of a map.
// Methods for subscribers are below, those for connections in assignment.go and sent.go.
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
	lingering   queue.Queue[*channel]  // the one that has lingered longest first
	missed      []*ear                 // to be called by unlock
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

// subscribe counts a subscription, for which unsubscribe must be called once. What is said from its confirmation on is put into the mail, unless
// that is nil.
func (r *registry) subscribe(name string, m *mail, e *ear) *channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := r.channels[name]
	if ch == nil {
		ch = &channel{name: name, changed: make(chan struct{})}
		r.channels[name], r.unassigned[name] = ch, ch
		wake(r.wake)
	}
	ch.subscriptions++
	if m != nil {
		m.from = ch.sent + 1
		ch.mails, ch.again = append(ch.mails, m), true
	}
	if e != nil {
		ch.ears = append(ch.ears, e)
	}
	if ch.at != nil && (!ch.subscribed || ch.again) {
		ch.at.changed[name] = ch
		wake(r.wake)
	}
	return ch
}

// unsubscribe takes back a subscription. The last one leaves a channel that is assigned for others to find for a while.
func (r *registry) unsubscribe(ch *channel, m *mail, e *ear) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch.mails = slices.DeleteFunc(ch.mails, func(o *mail) bool { return o == m })
	ch.ears = slices.DeleteFunc(ch.ears, func(o *ear) bool { return o == e })
	ch.subscriptions--
	if ch.subscriptions > 0 {
		return
	}
	if ch.at == nil {
		r.dropLocked(ch)
		return
	}
	ch.until = time.Now().Add(Linger)
	ch.lingering.Leave()
	r.lingering.Join(&ch.lingering, ch)
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

// message notes a message on a channel. It is a hint, but for those who are called.
func (r *registry) message(name, payload string) {
	for _, e := range r.noted(name, payload) {
		e.hear(payload)
	}
}

func (r *registry) noted(name, payload string) []*ear {
	r.mu.Lock()
	defer r.mu.Unlock()
	ch := r.channels[name]
	if ch == nil {
		return nil
	}
	for _, m := range ch.mails {
		if m.from <= ch.sent-ch.subscribing {
			m.put(payload)
		}
	}
	if len(ch.ears) == 0 {
		ch.hint()
	}
	return slices.Clone(ch.ears)
}

// missedLocked is that messages on a channel may have been missed.
func (r *registry) missedLocked(ch *channel) {
	ch.hint()
	r.missed = append(r.missed, ch.ears...)
}

// unlock calls those who may have missed something, without the mutex.
func (r *registry) unlock() {
	missed := r.missed
	r.missed = nil
	r.mu.Unlock()
	for _, e := range missed {
		e.hear("")
	}
}

// read returns what was said since the last time.
func (r *registry) read(m *mail) (messages []string, missed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	messages, missed = m.messages, m.missed
	*m = mail{from: m.from}
	return messages, missed
}

// dropLocked forgets a channel.
func (r *registry) dropLocked(ch *channel) {
	ch.lingering.Leave()
	delete(r.channels, ch.name)
	delete(r.unassigned, ch.name)
	if ch.at != nil {
		r.leaveLocked(ch)
	}
}

// expire has channels unsubscribed that have lingered long enough, and returns when to call it again: the zero time if
// nothing lingers.
func (r *registry) expire() (next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for ch := r.lingering.First(); ch != nil; ch = r.lingering.First() {
		if ch.until.After(now) {
			r.alarm = ch.until
			return r.alarm
		}
		ch.lingering.Leave()
		if ch.subscriptions == 0 {
			ch.at.changed[ch.name] = ch
		}
	}
	r.alarm = time.Time{}
	return r.alarm
}
