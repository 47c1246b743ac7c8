// Package pubsub listens to the channels on which locks are announced as free.
//
//	Subscriber ──── the state of all channels and its mutex; one goroutine finds out where each wanted channel belongs and assigns it
//	    │
//	connection ──── one in all, or with sharded channels one a master; one goroutine sends and another reads
//
// Every message is only a hint that a lock may be free. A confirmed subscription is one, too, because messages before it were
// missed, and so is a connection that broke, because messages after it will be.
package pubsub

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// Linger is how long a channel stays subscribed after its last Subscription was closed. The waiters of a hot lock come and
	// go; without it, each would subscribe anew.
	Linger = 250 * time.Millisecond

	// gather is how long a connection waits before it sends its commands. It is the shortest time there is: just enough
	// that, in the virtual time of a simulation, every goroutine that acts at this moment has acted. Their channels
	// then share a command, in which names are in order, whoever came first.
	gather = time.Nanosecond

	// closeTimeout is how long Close waits for goroutines that go-redis does not let go of.
	closeTimeout = 400 * time.Millisecond
)

// Subscriber keeps the subscriptions of a client. Channels are counted: the first Subscription of a channel subscribes it, and
// the last one unsubscribes it, after Linger. A Subscriber is safe for concurrent use.
type Subscriber struct {
	topology *Topology
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
	wake     chan struct{} // there are unassigned channels

	mu          sync.Mutex
	channels    map[string]*channel
	unassigned  map[string]*channel    // those to assign now
	connections map[string]*connection // by address; "" where one connection has all channels
	broken      map[string]broken      // by address
	turn        int                    // counts how often channels were assigned
	telling     []func()               // for unlock
}

// NewSubscriber returns a Subscriber to the servers of t, if that has a client. The caller closes it, before that client.
func NewSubscriber(t *Topology) *Subscriber {
	s := &Subscriber{topology: t, wake: make(chan struct{}, 1), channels: map[string]*channel{}, unassigned: map[string]*channel{},
		connections: map[string]*connection{}, broken: map[string]broken{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if t.client != nil || t.Mapped() {
		s.tasks.Go(s.run)
	}
	return s
}

// run assigns channels to connections until Close.
func (s *Subscriber) run() {
	for {
		select {
		case <-s.wake:
			s.assign()
		case <-s.ctx.Done():
			return
		}
	}
}

// Subscribe begins to listen to a channel, in the background. The caller closes the Subscription.
func (s *Subscriber) Subscribe(channel string) *Subscription {
	return s.join(channel, &Subscription{})
}

// Hear is Subscribe, and has f called with each message, which is no hint then, and with "" when messages may have been missed. It is called on
// the connection's goroutine, and must not stay.
func (s *Subscriber) Hear(channel string, f func(message string)) *Subscription {
	return s.join(channel, &Subscription{hear: f})
}

// Receive is Subscribe, and has the messages kept for [Subscription.Read] that are published after this call: older ones may be on their way.
// Where the server refuses the channel, others do not suffer from that, and it is tried again once a minute.
func (s *Subscriber) Receive(channel string) *Subscription {
	return s.join(channel, &Subscription{mail: new(mail)})
}

// Changed is that of a Subscription, for a channel that has lingered so far. The next Subscription has the same, unless something has
// changed in between.
func (s *Subscriber) Changed(channel string) (changed <-chan struct{}, live bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[channel]; ch != nil && ch.live() {
		return ch.changed, true
	}
	return nil, false
}

// Channels returns how many channels are wanted or linger.
func (s *Subscriber) Channels() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.channels)
}

// Close ends all connections and waits for its goroutines. It returns within half a second even if a server says nothing: a
// goroutine that can't be interrupted, because it is in a dialler that does not heed its context (that of TLS does not) or in
// a cluster's first map, ends by itself later and does nothing any more. After Close, no subscription is live.
func (s *Subscriber) Close() {
	s.cancel()
	done := make(chan struct{})
	go func() { s.tasks.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeTimeout):
	}
}

// Subscription is the interest of one waiter in a channel.
type Subscription struct {
	subscriber *Subscriber
	channel    *channel
	mail       *mail                // of Receive
	hear       func(message string) // of Hear
}

// Changed returns a channel that is closed by the next hint that the lock may be free (a message, a confirmed or
// renewed subscription, a broken connection), and whether messages get through at present. Take it before looking at
// Redis, and nothing is missed in between. A Subscription to a channel that lingers is live at once.
func (s *Subscription) Changed() (changed <-chan struct{}, live bool) {
	s.subscriber.mu.Lock()
	defer s.subscriber.mu.Unlock()
	return s.channel.changed, s.channel.live()
}

// Read returns the messages since the last Read, for a Subscription of Receive, and whether others may have been missed: before the
// subscription was confirmed, while there was no connection, or because there were too many.
func (s *Subscription) Read() (messages []string, missed bool) {
	s.subscriber.mu.Lock()
	defer s.subscriber.mu.Unlock()
	m := s.mail
	messages, missed = m.messages, m.missed
	*m = mail{from: m.from}
	return messages, missed
}

// channel is a channel that has subscriptions, or had some until a moment ago. The subscriber's mutex guards it.
type channel struct {
	name          string
	subscriptions []*Subscription // that are not closed
	changed       chan struct{}   // closed and replaced by each hint

	// A channel that has no subscriptions any more lingers as long as it has a connection, and for no longer than Linger.
	// One that has subscriptions again may still be said to linger: it often has none again soon.
	lingers bool
	until   time.Time // if it lingers

	at *connection // where it is subscribed; nil while it is unassigned

	// The commands sent on the connection, where answers come in the order of the commands.
	subscribed    bool // the last command was a subscription
	again         bool // a new reader reads only what follows a subscription of its own
	sent          int  // subscriptions, on all connections
	subscribing   int  // subscriptions without an answer
	unsubscribing int  // cancellations without an answer
}

func (ch *channel) wanted() bool { return len(ch.subscriptions) > 0 || ch.lingers }

// live reports whether a message published now will arrive.
func (ch *channel) live() bool { return ch.subscribed && ch.subscribing == 0 }

// read reports whether the messages of the channel have a reader.
func (ch *channel) read() bool {
	return slices.ContainsFunc(ch.subscriptions, func(s *Subscription) bool { return s.mail != nil })
}

// hint wakes the waiters of the channel: its lock may be free.
func (ch *channel) hint() {
	close(ch.changed)
	ch.changed = make(chan struct{})
}

// mail is the messages of a channel that one reader has not read yet.
type mail struct {
	from     int // the first subscription of the channel behind which messages count
	messages []string
	size     int  // of these, in bytes
	missed   bool // there may have been others
}

// mostMail bounds the messages that wait to be read, in bytes, each with what it takes to keep it.
const mostMail = 256 << 10

// put adds a message, or notes that there was one.
func (m *mail) put(message string) {
	const each = 16
	if m.size+len(message)+each > mostMail {
		m.missed = true
		return
	}
	m.messages, m.size = append(m.messages, message), m.size+len(message)+each
}

// wake makes the reader of c look, now or when it next can.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
