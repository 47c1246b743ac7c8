package pubsub

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// The state of a Subscriber: which channels are wanted, and to which connection each is assigned. Each method is a whole transition under its
// mutex. None does I/O under it.
//
// A channel's life:
//
//	unassigned ──assign──► assigned ──pending──► subscribing ──confirm──► live
//	live ──Close──► lingering ──linger, pending──► unsubscribing ──confirm──► forgotten
//
// When a connection breaks or a slot moves, release makes a channel unassigned again, and forgets one that only lingers.

// join counts a subscription, which its owner closes once.
func (s *Subscriber) join(name string, sub *Subscription) *Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		ch = &channel{name: name, changed: make(chan struct{})}
		s.channels[name], s.unassigned[name] = ch, ch
		wake(s.wake)
	}
	ch.subscriptions = append(ch.subscriptions, sub)
	sub.subscriber, sub.channel = s, ch
	if m := sub.mail; m != nil {
		m.from = ch.sent + 1
		ch.again = true
	}
	if ch.at != nil && (!ch.subscribed || ch.again) {
		ch.at.changeLocked(ch)
	}
	return sub
}

// Close takes the interest back. A second Close does nothing. The last one leaves a channel that is assigned for others to find for a while.
func (s *Subscription) Close() {
	r, ch := s.subscriber, s.channel
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(ch.subscriptions, s)
	if i < 0 {
		return
	}
	ch.subscriptions = slices.Delete(ch.subscriptions, i, i+1)
	if ch.at == nil {
		r.forgetLocked(ch)
	} else if ch.until = time.Now().Add(Linger); !ch.lingers && len(ch.subscriptions) == 0 {
		r.lingerLocked(ch)
	}
}

// lingerLocked has a channel unsubscribed at its time, unless somebody wants it again.
func (s *Subscriber) lingerLocked(ch *channel) {
	ch.lingers = true
	s.after(time.Until(ch.until), func() {
		switch ch.lingers = false; {
		case ch.at == nil || len(ch.subscriptions) > 0:
		case ch.until.After(time.Now()):
			s.lingerLocked(ch)
		case ch.subscribed:
			ch.at.changeLocked(ch)
		default:
			s.forgetLocked(ch)
		}
	})
}

// after calls f in a while, with the mutex.
func (s *Subscriber) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	})
}

// forgetLocked forgets a channel that nobody wants and for which no answer is on its way.
func (s *Subscriber) forgetLocked(ch *channel) {
	if ch.wanted() || ch.subscribed || ch.subscribing+ch.unsubscribing > 0 {
		return
	}
	delete(s.channels, ch.name)
	delete(s.unassigned, ch.name)
	if ch.at != nil {
		ch.at.leaveLocked(ch)
	}
}

// assign gives unassigned channels to connections. If their servers are not known, it is called again.
func (s *Subscriber) assign() {
	ctx, cancel := context.WithTimeout(s.ctx, reconnectCap)
	defer cancel()
	local, err := s.topology.Local(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	var unknown []*channel
	names := slices.Sorted(maps.Keys(s.unassigned))
	for _, name := range names {
		ch, key := s.unassigned[name], name
		if !local { // any node has all messages: another channel chooses it the next time, in case that this one's master is down
			key = names[s.turn%len(names)]
		}
		node := s.topology.Node(key)
		if err != nil || node == nil {
			unknown = append(unknown, ch)
			continue
		}
		addr := ""
		if local {
			addr = node.Options().Addr
		}
		c := s.connections[addr]
		if c == nil {
			c = s.connectLocked(addr, key, node.Options())
			s.tasks.Go(c.run)
		}
		ch.at, c.channels[name] = c, ch
		c.changeLocked(ch)
	}
	clear(s.unassigned)
	s.laterLocked(unknown, reconnectPause)
}

// connectLocked returns a new connection, to be run.
func (s *Subscriber) connectLocked(addr, key string, options *redis.Options) *connection {
	c := &connection{subscriber: s, addr: addr, key: key, options: options, broken: s.broken[addr],
		wake: make(chan struct{}, 1), channels: map[string]*channel{}, changed: map[string]*channel{}}
	c.ctx, c.cut = context.WithCancel(s.ctx)
	s.connections[addr] = c
	return c
}

// laterLocked has channels assigned after a pause.
func (s *Subscriber) laterLocked(channels []*channel, pause time.Duration) {
	if len(channels) == 0 {
		return
	}
	s.after(pause, func() {
		for _, ch := range channels {
			if s.channels[ch.name] == ch {
				s.unassigned[ch.name] = ch
			}
		}
		wake(s.wake)
	})
}

// message passes a message on. It is a hint, except for subscriptions of Hear.
func (s *Subscriber) message(name, payload string) {
	s.mu.Lock()
	defer s.unlock()
	ch := s.channels[name]
	if ch == nil {
		return
	}
	for _, sub := range ch.subscriptions {
		if m := sub.mail; m != nil && m.from <= ch.sent-ch.subscribing {
			m.put(payload)
		}
	}
	if !s.tellLocked(ch, payload) {
		ch.hint()
	}
}

// missedLocked records that messages on a channel may have been missed.
func (s *Subscriber) missedLocked(ch *channel) {
	ch.hint()
	s.tellLocked(ch, "")
}

// tellLocked has unlock call the functions of Hear for a channel, and reports whether there is one.
func (s *Subscriber) tellLocked(ch *channel, message string) (heard bool) {
	for _, sub := range ch.subscriptions {
		if sub.hear != nil {
			s.telling, heard = append(s.telling, func() { sub.hear(message) }), true
		}
	}
	return heard
}

// unlock gives back the mutex, and then makes the calls that were put off because it was held.
func (s *Subscriber) unlock() {
	telling := s.telling
	s.telling = nil
	s.mu.Unlock()
	for _, tell := range telling {
		tell()
	}
}
