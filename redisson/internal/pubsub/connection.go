package pubsub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/reply"
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

// connection is one TCP connection, from the pause before it until its end, with its channels. Cutting its context
// closes it, and so ends all reads and writes on it.
type connection struct {
	subscriber *Subscriber
	addr       string         // of the master; empty where one connection has all channels
	options    *redis.Options // of the server
	key        string         // what the server was found by in a map
	broken     broken         // those before it
	wake       chan struct{}  // pending has something to send
	ctx        context.Context
	cut        context.CancelFunc
	ps         *redis.PubSub
	quiet      *time.Timer // nothing was received for long
	pinged     atomic.Bool // since something was received

	// The subscriber's mutex guards these.
	channels   map[string]*channel // all of them
	changed    map[string]*channel // those for which something may have to be sent
	emptySince time.Time           // if there are no channels
}

// broken is the state of an address whose connections have ended.
type broken struct {
	pause time.Duration // after the last one
	until time.Time     // the end of that
}

// local reports whether the connection is one of several, each with the channels of its master.
func (c *connection) local() bool { return c.addr != "" }

// changeLocked has the connection send the next command for a channel.
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

// run connects after the pause, if there are channels then, and gives them up at the end.
func (c *connection) run() {
	defer c.cut()
	began := time.Now()
	if clock.Sleep(c.ctx, max(0, time.Until(c.broken.until))+gather) && !c.emptyFor(0) {
		began = time.Now()
		c.connect()
	}
	pause := max(reconnectPause, min(2*c.broken.pause, reconnectCap))
	if time.Since(began) > reconnectCap {
		pause = reconnectPause
	}
	s := c.subscriber
	s.mu.Lock()
	delete(s.connections, c.addr)
	s.broken[c.addr] = broken{pause, time.Now().Add(pause)}
	s.mu.Unlock()
	if c.release(pause, func(*channel) bool { return true }) {
		s.topology.Reload()
	}
}

// emptyFor reports whether the connection had no channels for that long.
func (c *connection) emptyFor(d time.Duration) bool {
	c.subscriber.mu.Lock()
	defer c.subscriber.mu.Unlock()
	return len(c.channels) == 0 && time.Since(c.emptySince) >= d
}

// connect runs the TCP connection until it ends.
func (c *connection) connect() {
	client := redis.NewClient(dedicated(c.ctx, c.options))
	defer client.Close()
	c.ps, c.quiet = client.Subscribe(c.ctx), time.NewTimer(silence) // dials when there is something to subscribe
	defer c.ps.Close()
	var reader sync.WaitGroup
	defer reader.Wait()
	defer c.cut()
	if c.send() == nil {
		reader.Go(func() { defer c.cut(); c.read() })
		c.serve()
	}
}

// serve sends what changes, and looks after the connection, until it has ended or was idle.
func (c *connection) serve() {
	look := time.NewTicker(silence)
	defer look.Stop()
	for {
		var ok bool
		select {
		case <-c.wake:
			ok = clock.Sleep(c.ctx, gather) && c.send() == nil
		case <-c.quiet.C:
			ok = !c.pinged.Swap(true) && c.bounded(func() error { return c.ps.Ping(c.ctx) }) == nil
			c.quiet.Reset(silence)
		case <-look.C:
			ok = !c.emptyFor(idle) && c.follow()
		case <-c.ctx.Done():
			ok = false
		}
		if !ok {
			return
		}
	}
}

// release gives up the channels for which gone is true, and reports whether there was one. They are assigned again only
// after the pause: an old map must not send them back and forth.
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

// pending lists the commands to send now, in order, and marks them as sent. The server refuses a command as a whole, so
// channels that somebody reads go alone.
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

// errEnded is the error for go-redis when it dials a second time.
var errEnded = errors.New("redisson: the pub/sub connection has ended")

// dedicated returns options like those given, for a client that makes one TCP connection, which is closed when ctx ends.
//
// go-redis makes that connection, handshake and all, and each write under the mutex of its PubSub, for as long as its
// timeouts allow and whatever becomes of a context. When it breaks, go-redis makes another one before it says so, and sends
// all subscriptions again in the order of a map. Here it can do neither: the end of ctx interrupts it at any point, which
// makes its timeouts needless, and another connection is another session.
//
// Hooks of the client that the options are of do not come along; its dialler, its credentials and its OnConnect do.
func dedicated(ctx context.Context, options *redis.Options) *redis.Options {
	o := reply.Lone(options)
	var dialled atomic.Bool
	dial := reply.Bounded(options.Dialer)
	o.Dialer = func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		if dialled.Swap(true) {
			return nil, errEnded
		}
		conn, err := dial(dialCtx, network, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		return conn, nil
	}
	o.ReadTimeout, o.WriteTimeout = -2, -2 // no deadlines
	return o
}

// bounded writes, for as long as silence at most.
func (c *connection) bounded(write func() error) error {
	bound := time.AfterFunc(silence, c.cut)
	defer bound.Stop()
	return write()
}

// send subscribes channels and unsubscribes others. Sharded channels go one by one: those of one command must share a slot.
func (c *connection) send() error {
	alone, subscribe, unsubscribe := c.pending()
	begin, end, most := c.ps.Subscribe, c.ps.Unsubscribe, math.MaxInt
	if c.subscriber.topology.kind() == On {
		begin, end, most = c.ps.SSubscribe, c.ps.SUnsubscribe, 1
	}
	do := func(command func(context.Context, ...string) error, names []string, most int) (err error) {
		for part := range slices.Chunk(names, most) {
			err = cmp.Or(err, command(c.ctx, part...)) // after one that fails, go-redis has no connection for any
		}
		return err
	}
	return c.bounded(func() error {
		return cmp.Or(do(begin, alone, 1), do(begin, subscribe, most), do(end, unsubscribe, most))
	})
}

// follow compares the connection with the map, and reports whether it is still at the right server. A server
// that was cut off from the others, or has left the cluster, may answer pings and yet get no messages.
func (c *connection) follow() bool {
	master := c.subscriber.topology.Master
	if !c.local() {
		at := master(c.key)
		return at == "" || at == c.options.Addr
	}
	c.release(reconnectPause, func(ch *channel) bool {
		at := master(ch.name)
		return at != "" && at != c.addr
	})
	return true
}

// read passes on the messages until the connection fails.
func (c *connection) read() {
	for {
		m, err := c.receive()
		if err != nil && !c.refused(err) {
			return
		}
		c.pinged.Store(false)
		c.quiet.Reset(silence)
		switch m := m.(type) {
		case *redis.Message:
			c.subscriber.message(m.Channel, m.Payload)
		case *redis.Subscription:
			if c.confirm(m) {
				c.moved(func(ch *channel) bool { return ch.name == m.Channel })
			}
		}
	}
}

// receive returns the next message. go-redis panics over one that it does not know, such as an empty list; that ends
// the connection like any other failure.
func (c *connection) receive() (m any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("redisson: a message that go-redis can't read: %v", p)
		}
	}()
	return c.ps.ReceiveTimeout(c.ctx, 0) // without a timeout: serve sees to that
}

// refused reports whether err is the server's answer in place of a confirmation, and acts on it: another server has the slot of a channel, or its user
// may not subscribe one. That is most likely one that somebody reads, without which the others are as good.
func (c *connection) refused(err error) bool {
	class, slot := reply.Classify(err), 0
	if class.Refused {
		return c.release(refusedPause, func(ch *channel) bool { return ch.subscribing > 0 && ch.read() })
	}
	if n, _ := fmt.Sscanf(err.Error(), "MOVED %d", &slot); n == 0 || !class.Slot || !c.local() {
		return false
	}
	c.moved(func(ch *channel) bool { return Slot(ch.name) == slot })
	return true
}

// moved gives up channels that are elsewhere, says their server.
func (c *connection) moved(gone func(*channel) bool) {
	c.subscriber.topology.Reload()
	c.release(reconnectPause, gone)
}
