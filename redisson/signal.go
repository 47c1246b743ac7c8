package redisson

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// hub is what a client listens with: one pub/sub connection, and in a Redis Cluster with sharded channels one to each
// master that has some. Channels are counted: the first follower of a channel subscribes it and the last one unsubscribes
// it. Every message is only a hint that a lock may be free, and so are a confirmed subscription and a renewed one, because
// messages before them were missed: all three advance the channel's generation.
//
// Followers say what they want in channels. One goroutine gives each channel to the link where it belongs; each link has
// one that brings its connection there, so that nobody waits for it under the mutex, and a second one that reads.
type hub struct {
	rdb      redis.UniversalClient
	topology *topology
	ctx      context.Context
	wg       sync.WaitGroup
	kick     chan struct{} // there are channels without a link

	mu       sync.Mutex
	started  bool
	closed   bool
	channels map[string]*channel
	links    map[string]*link // by address; "" where one connection has all channels
}

// channel is a subscription that is wanted, or was until just now.
type channel struct {
	link       *link // nil until it is known where it belongs
	followers  int
	sent       int           // subscriptions asked for on this connection
	confirmed  int           // of these, answered
	leaving    int           // cancellations that are not answered
	subscribed bool          // the last thing sent was a subscription
	changed    chan struct{} // closed and replaced with each generation
}

// live tells whether a message that is published now will be received.
func (ch *channel) live() bool { return ch.subscribed && ch.settled() }

// settled tells whether all subscriptions are answered. There can be more answers than that, when go-redis changes to
// another connection by itself.
func (ch *channel) settled() bool { return ch.confirmed >= ch.sent }

func (ch *channel) advance() {
	close(ch.changed)
	ch.changed = make(chan struct{})
}

// forget makes ch one that was never subscribed. Its followers must not sleep on what is gone.
func (ch *channel) forget() {
	ch.sent, ch.confirmed, ch.leaving, ch.subscribed = 0, 0, 0, false
	ch.advance()
}

func newHub(ctx context.Context, rdb redis.UniversalClient, t *topology) *hub {
	return &hub{rdb: rdb, topology: t, ctx: ctx, kick: make(chan struct{}, 1), channels: map[string]*channel{}, links: map[string]*link{}}
}

// follow counts a follower of the channel. unfollow must be called once for it.
func (h *hub) follow(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.started && !h.closed {
		h.started = true
		h.wg.Go(h.run)
	}
	ch := h.channels[name]
	if ch == nil {
		ch = &channel{changed: make(chan struct{})}
		h.channels[name] = ch
	}
	ch.followers++
	h.wake(ch)
}

func (h *hub) unfollow(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[name]
	if ch == nil || ch.followers == 0 {
		return
	}
	ch.followers--
	if ch.followers == 0 && ch.link == nil {
		delete(h.channels, name)
		return
	}
	h.wake(ch)
}

// generation returns a channel that is closed by the next hint about the followed channel, and whether hints get through
// at present. Take it before looking at Redis, and nothing is missed in between.
func (h *hub) generation(name string) (changed <-chan struct{}, live bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[name]
	return ch.changed, ch.live()
}

// wake has what is wanted of ch looked at.
func (h *hub) wake(ch *channel) {
	if ch.link == nil {
		nudge(h.kick)
		return
	}
	nudge(ch.link.kick)
}

// close waits for the hub's goroutines; the context given to newHub has ended before.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wg.Wait()
}

// run gives channels to links for as long as the client lives.
func (h *hub) run() {
	for {
		select {
		case <-h.kick:
		case <-h.ctx.Done():
			return
		}
		for _, name := range h.homeless() {
			addr, open, err := h.seek(name)
			if err != nil {
				time.AfterFunc(reconnectPause, func() { nudge(h.kick) })
				break
			}
			h.settle(name, addr, open)
		}
	}
}

// nudge wakes the reader of kick, now or when it next looks.
func nudge(kick chan struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// homeless lists the channels without a link.
func (h *hub) homeless() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for name, ch := range h.channels {
		if ch.link == nil {
			names = append(names, name)
		}
	}
	return names
}

// seek finds out on which connection the channel is to be heard, and how to make it.
func (h *hub) seek(name string) (addr string, open func(context.Context) *redis.PubSub, err error) {
	ctx, cancel := context.WithTimeout(h.ctx, reconnectCap)
	defer cancel()
	if sharded, err := h.topology.sharded(ctx); !sharded || err != nil {
		return "", func(ctx context.Context) *redis.PubSub { return h.rdb.Subscribe(ctx) }, err
	}
	node, err := h.topology.cluster.MasterForKey(ctx, name)
	if err != nil {
		h.topology.doubt(err)
		return "", nil, err
	}
	return node.Options().Addr, func(ctx context.Context) *redis.PubSub { return node.SSubscribe(ctx) }, nil
}

// settle gives the channel to the link with that address, and makes the link if there is none.
func (h *hub) settle(name, addr string, open func(context.Context) *redis.PubSub) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[name]
	if ch == nil {
		return
	}
	l := h.links[addr]
	if l == nil {
		l = &link{h: h, addr: addr, open: open, kick: make(chan struct{}, 1)}
		h.links[addr] = l
		h.wg.Go(l.run)
	}
	ch.link = l
	h.wake(ch)
}

// displace takes channels that l does not serve any more from it, for the hub to find out who does. It does so after
// a pause, so that an old map of the cluster does not make the two race.
func (h *hub) displace(l *link, gone func(name string) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, ch := range h.channels {
		if ch.link != l || !gone(name) {
			continue
		}
		ch.link = nil
		ch.forget()
		if ch.followers == 0 {
			delete(h.channels, name)
		}
	}
	time.AfterFunc(reconnectPause, func() { nudge(h.kick) })
}

func (h *hub) hint(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch := h.channels[name]; ch != nil {
		ch.advance()
	}
}

// confirm counts an answered subscription. Answers come in the order of the questions, so one that was overtaken by an
// unsubscription does not pass for a later one. A server cancels sharded subscriptions by itself when it gives the slot
// away: moved says so.
func (h *hub) confirm(l *link, s *redis.Subscription) (moved bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[s.Channel]
	if ch == nil || ch.link != l {
		return false
	}
	switch s.Kind {
	case "subscribe", "ssubscribe":
		ch.confirmed++
	case "unsubscribe", "sunsubscribe":
		if ch.leaving == 0 {
			return l.sharded() && ch.subscribed
		}
		ch.leaving--
	}
	if ch.live() {
		ch.advance()
	}
	if ch.followers == 0 {
		h.wake(ch) // it may be forgotten now
	}
	return false
}
