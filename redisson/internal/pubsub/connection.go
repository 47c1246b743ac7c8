package pubsub

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/redis/go-redis/v9"
)

const (
	// silence is how long a connection may be without traffic before it is pinged; after as long again it is closed. It also
	// bounds the dialling, the handshake and each write.
	silence = 5 * time.Second
	// idle is how long a connection without channels is kept.
	idle = time.Minute
	// reconnectPause is the pause before a connection that broke is made again, and before a server that could not be found is
	// looked for again. The first doubles with each connection that breaks soon, up to reconnectCap.
	reconnectPause = 50 * time.Millisecond
	reconnectCap   = 2 * time.Second
	// refusedPause is how long a channel is left alone that the server has refused.
	refusedPause = time.Minute
)

// connection subscribes its channels, in one session after the other.
type connection struct {
	subscriber *Subscriber
	addr       string        // of the master; empty where one connection has all channels
	wake       chan struct{} // pending has something to send

	// The subscriber's mutex guards these.
	target     target              // where the first of the channels was found
	channels   map[string]*channel // all of them
	changed    map[string]*channel // those for which something may have to be sent
	emptySince time.Time           // if there are no channels
}

// target is where a session goes.
type target struct {
	*redis.Options
	key string // what it was found by in a map
}

// local reports whether the connection is one of several, each with the channels of its master.
func (c *connection) local() bool { return c.addr != "" }

// takeLocked gives a channel to the connection.
func (c *connection) takeLocked(ch *channel, at target) {
	if len(c.channels) == 0 {
		c.target = at
	}
	ch.at, c.channels[ch.name] = c, ch
	c.changeLocked(ch)
}

// changeLocked has the connection send what is to be sent for a channel.
func (c *connection) changeLocked(ch *channel) {
	c.changed[ch.name] = ch
	wake(c.wake)
}

// leaveLocked takes a channel from the connection.
func (c *connection) leaveLocked(ch *channel) {
	ch.at = nil
	delete(c.channels, ch.name)
	delete(c.changed, ch.name)
	if len(c.channels) == 0 {
		c.emptySince = time.Now()
	}
}

// run has sessions until the subscriber is closed or the connection was idle.
func (c *connection) run() {
	ctx, pause := c.subscriber.ctx, reconnectPause
	for at, ok := c.await(ctx); ok; at, ok = c.await(ctx) {
		began := time.Now()
		c.connect(ctx, at)
		if time.Since(began) > reconnectCap {
			pause = reconnectPause
		}
		if c.release(pause, func(*channel) bool { return true }) {
			c.subscriber.topology.Reload()
		}
		if !clock.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, reconnectCap)
	}
}

// await returns where to go once there is something to subscribe. It is not ok when the connection is not needed any more.
func (c *connection) await(ctx context.Context) (at target, ok bool) {
	for !c.retire() {
		select {
		case <-c.wake:
		case <-time.After(idle):
		case <-ctx.Done():
		}
		if !clock.Sleep(ctx, gather) {
			break
		}
		if at, ok = c.due(); ok {
			return at, true
		}
	}
	return at, false
}

// due reports whether there is something to send, and returns where to go then.
func (c *connection) due() (at target, ok bool) {
	c.subscriber.mu.Lock()
	defer c.subscriber.mu.Unlock()
	return c.target, len(c.changed) > 0
}

// retire forgets a connection that had no channels for idle, and reports whether it has.
func (c *connection) retire() bool {
	s := c.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(c.channels) > 0 || time.Since(c.emptySince) < idle {
		return false
	}
	maps.DeleteFunc(s.connections, func(_ string, other *connection) bool { return other == c })
	return true
}

// release gives up the channels for which gone is true, and reports whether there was one. They are to be assigned again, but only after the
// pause: an old map must not send them back and forth.
func (c *connection) release(pause time.Duration, gone func(*channel) bool) bool {
	s := c.subscriber
	s.mu.Lock()
	defer s.unlock()
	var released []*channel
	for _, name := range slices.Sorted(maps.Keys(c.channels)) {
		if ch := c.channels[name]; gone(ch) {
			c.leaveLocked(ch)
			ch.lingers, ch.subscribed, ch.subscribing, ch.unsubscribing = false, false, 0, 0
			s.missedLocked(ch) // nobody must sleep on what is gone
			s.forgetLocked(ch)
			released = append(released, ch)
		}
	}
	s.laterLocked(released, pause)
	return len(released) > 0
}

// pending lists what is to be sent now, in order, and notes it as sent. What the server refuses of a command, it refuses as a whole, so channels
// that somebody reads go alone.
func (c *connection) pending() (alone, subscribe, unsubscribe []string) {
	c.subscriber.mu.Lock()
	defer c.subscriber.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.changed)) {
		switch ch := c.changed[name]; {
		case ch.wanted() && (!ch.subscribed || ch.again):
			ch.subscribed, ch.again = true, false
			ch.sent++
			ch.subscribing++
			if ch.read() {
				alone = append(alone, name)
			} else {
				subscribe = append(subscribe, name)
			}
		case !ch.wanted() && ch.subscribed:
			ch.subscribed = false
			ch.unsubscribing++
			unsubscribe = append(unsubscribe, name)
		}
	}
	clear(c.changed)
	return alone, subscribe, unsubscribe
}

// confirm notes the answer to a subscription or to a cancellation. A server cancels a sharded subscription by itself when it
// gives the slot away, and confirm then reports that the channel has moved.
func (c *connection) confirm(m *redis.Subscription) (moved bool) {
	s := c.subscriber
	s.mu.Lock()
	defer s.unlock()
	ch := c.channels[m.Channel]
	if ch == nil {
		return false
	}
	switch m.Kind {
	case "subscribe", "ssubscribe":
		ch.subscribing = max(0, ch.subscribing-1)
		if ch.live() { // messages were missed before
			for _, sub := range ch.subscriptions {
				if sub.mail != nil {
					sub.mail.missed = true
				}
			}
			s.missedLocked(ch)
		}
	case "unsubscribe", "sunsubscribe":
		if ch.unsubscribing == 0 {
			return c.local() && ch.subscribed
		}
		ch.unsubscribing--
		s.forgetLocked(ch)
	}
	return false
}
