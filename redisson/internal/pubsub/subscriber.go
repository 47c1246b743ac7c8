// Package pubsub listens to the channels on which locks are announced as free.
//
//	Subscriber ──── one goroutine finds out where each wanted channel belongs and assigns it
//	    │
//	registry ────── the state of all channels and its mutex
//	    │
//	connection ──── one in all, or with sharded channels one a master; one goroutine sends and another reads
//	    │
//	session ─────── one TCP connection, from the dialling to its end
//
// Every message is only a hint that a lock may be free. A confirmed subscription is one, too, because messages before it were
// missed, and so is a connection that broke, because messages after it will be.
package pubsub

import (
	"context"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
)

const (
	// Linger is how long a channel stays subscribed after its last Subscription was closed. The waiters of a hot lock come and
	// go; without it, each would subscribe anew.
	Linger = 250 * time.Millisecond

	// gather is how long the subscriber waits before it does what is wanted. It is the shortest time there is: just enough that,
	// in the virtual time of a simulation, every goroutine that acts at this moment has acted. Their channels then share a
	// command, in which names are in order, whoever came first.
	gather = time.Nanosecond

	// closeTimeout is how long Close waits for goroutines that go-redis does not let go of.
	closeTimeout = 400 * time.Millisecond
)

// Subscriber keeps the subscriptions of a client. Channels are counted: the first Subscription of a channel subscribes it, and
// the last one unsubscribes it, after Linger. A Subscriber is safe for concurrent use.
type Subscriber struct {
	topology *Topology
	registry *registry
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	tasks    sync.WaitGroup
	turn     int // counts how often a classic channel chose the master to connect to; only run uses it
}

// NewSubscriber returns a Subscriber to the servers of t, if that has a client. The caller closes it, before that client.
func NewSubscriber(t *Topology) *Subscriber {
	s := &Subscriber{topology: t, registry: newRegistry()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if t.client != nil || t.Mapped() {
		s.tasks.Go(s.run)
	}
	return s
}

// Subscribe begins to listen to a channel, in the background. The caller closes the Subscription.
func (s *Subscriber) Subscribe(channel string) *Subscription {
	return &Subscription{registry: s.registry, channel: s.registry.subscribe(channel, nil, nil)}
}

// Hear is Subscribe, and has f called with each message, which is no hint then, and with "" when messages may have been missed. It is called on
// the connection's goroutine, and must not stay.
func (s *Subscriber) Hear(channel string, f func(message string)) *Subscription {
	e := &ear{f}
	return &Subscription{registry: s.registry, channel: s.registry.subscribe(channel, nil, e), ear: e}
}

// Receive is Subscribe, and has the messages kept for [Subscription.Read] that are published after this call: older ones may be on their way.
// Where the server refuses the channel, others do not suffer from that, and it is tried again once a minute.
func (s *Subscriber) Receive(channel string) *Subscription {
	m := new(mail)
	return &Subscription{registry: s.registry, channel: s.registry.subscribe(channel, m, nil), mail: m}
}

// Changed is that of a Subscription, for a channel that has lingered so far. The next Subscription has the same, unless something has
// changed in between.
func (s *Subscriber) Changed(channel string) (changed <-chan struct{}, live bool) {
	return s.registry.find(channel)
}

// Channels returns how many channels are wanted or linger.
func (s *Subscriber) Channels() int { return s.registry.count() }

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
	registry *registry
	channel  *channel
	mail     *mail // of Receive
	ear      *ear  // of Hear
	close    sync.Once
}

// Changed returns what is closed by the next hint that the channel's lock may be free (a message, a confirmed or renewed
// subscription, a broken connection), and whether messages get through at present. Take it before looking at Redis, and
// nothing is missed in between. A Subscription to a channel that lingers is live at once.
func (s *Subscription) Changed() (changed <-chan struct{}, live bool) {
	return s.registry.changed(s.channel)
}

// Read returns the messages since the last Read, for a Subscription of Receive, and whether others may have been missed: before the
// subscription was confirmed, while there was no connection, or because there were too many.
func (s *Subscription) Read() (messages []string, missed bool) {
	return s.registry.read(s.mail)
}

// Close takes the interest back. A second Close does nothing.
func (s *Subscription) Close() {
	s.close.Do(func() { s.registry.unsubscribe(s.channel, s.mail, s.ear) })
}

// run assigns channels to connections, and ends the lingering of others, until Close.
func (s *Subscriber) run() {
	var alarm <-chan time.Time
	for {
		select {
		case <-s.registry.wake:
		case <-alarm:
		case <-s.ctx.Done():
			return
		}
		if !clock.Sleep(s.ctx, gather) {
			return
		}
		expiry := s.registry.expire()
		next := earlier(expiry, s.assign())
		s.registry.flush()
		alarm = nil
		if !next.IsZero() {
			alarm = time.After(time.Until(next))
		}
	}
}

// assign gives the channels that are due to connections, and returns when to call it again: the zero time if nothing waits.
func (s *Subscriber) assign() (next time.Time) {
	names, next := s.registry.due()
	if len(names) == 0 {
		return next
	}
	places := s.locate(names)
	if places == nil {
		retry := time.Now().Add(reconnectPause)
		s.registry.postpone(names, retry)
		return earlier(next, retry)
	}
	for _, a := range s.registry.assign(places) {
		c := &connection{assignment: a, registry: s.registry, topology: s.topology}
		s.tasks.Go(func() { c.run(s.ctx) })
	}
	return next
}

// locate finds out where the channels are to be subscribed. It returns nil if that is not known.
func (s *Subscriber) locate(names []string) []place {
	ctx, cancel := context.WithTimeout(s.ctx, reconnectCap)
	defer cancel()
	local, err := s.topology.Local(ctx)
	if err != nil {
		return nil
	}
	// Where any node has all messages, another channel chooses it the next time, in case that this one's master is down.
	s.turn++
	key := names[s.turn%len(names)]
	var places []place
	for _, name := range names {
		if local {
			key = name
		}
		node := s.topology.Node(key)
		if node == nil {
			return nil
		}
		p := place{channel: name, server: server{options: node.Options(), key: key}}
		if local {
			p.addr = node.Options().Addr
		}
		places = append(places, p)
	}
	return places
}
