package redisson

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The hub's patience. A connection that was silent for silence is asked for a sign of life; after as much again without
// one it is given up.
const (
	silence        = 5 * time.Second
	reconnectPause = 50 * time.Millisecond
	reconnectCap   = 2 * time.Second
)

// hub is the one pub/sub connection of a client. Channels are counted: the first follower of a channel subscribes it and
// the last one unsubscribes it. Every message is only a hint that a lock may be free, and so are a confirmed subscription
// and a renewed one, because messages before them were missed: all three advance the channel's generation.
//
// Followers say what they want in channels; one goroutine brings the connection there, so that nobody waits for it under
// the mutex, and a second one reads.
type hub struct {
	rdb  redis.UniversalClient
	ctx  context.Context
	wg   sync.WaitGroup
	kick chan struct{} // wants changed

	mu       sync.Mutex
	started  bool
	closed   bool
	channels map[string]*channel
}

// channel is a subscription that is wanted, or was until just now.
type channel struct {
	followers  int
	sent       int           // subscriptions asked for on this connection
	confirmed  int           // of these, answered
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

func newHub(ctx context.Context, rdb redis.UniversalClient) *hub {
	return &hub{rdb: rdb, ctx: ctx, kick: make(chan struct{}, 1), channels: map[string]*channel{}}
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
	h.wake()
}

func (h *hub) unfollow(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch := h.channels[name]; ch != nil && ch.followers > 0 {
		ch.followers--
	}
	h.wake()
}

// generation returns a channel that is closed by the next hint about the followed channel, and whether hints get through
// at present. Take it before looking at Redis, and nothing is missed in between.
func (h *hub) generation(name string) (changed <-chan struct{}, live bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[name]
	return ch.changed, ch.live()
}

func (h *hub) wake() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// close waits for the hub's goroutines; the context given to newHub has ended before.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wg.Wait()
}

// run keeps a connection for as long as the client lives.
func (h *hub) run() {
	pause := reconnectPause
	for h.ctx.Err() == nil {
		began := time.Now()
		h.connection()
		if time.Since(began) > reconnectCap {
			pause = reconnectPause
		}
		if !sleep(h.ctx, pause) {
			return
		}
		pause = min(2*pause, reconnectCap)
	}
}

// connection lives through one connection: it subscribes what is wanted, follows the changes, and returns when the
// connection broke.
func (h *hub) connection() {
	ps := h.rdb.Subscribe(h.ctx)
	broken := make(chan struct{})
	var once sync.Once
	fail := func() { once.Do(func() { _ = ps.Close(); close(broken) }) }
	stop := context.AfterFunc(h.ctx, fail)
	defer stop()
	defer h.reset()
	defer fail()
	var reader sync.WaitGroup
	defer reader.Wait()
	reading := false
	for {
		on, off := h.wanted()
		if len(on) > 0 && ps.Subscribe(h.ctx, on...) != nil {
			fail()
		}
		if len(off) > 0 && ps.Unsubscribe(h.ctx, off...) != nil {
			fail()
		}
		if len(on) > 0 && !reading {
			reading = true
			reader.Go(func() { defer fail(); h.read(ps) })
		}
		select {
		case <-h.kick:
		case <-broken:
			return
		}
	}
}

// reset forgets what the connection had, and drops the channels that nobody follows.
func (h *hub) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, ch := range h.channels {
		if ch.followers == 0 {
			delete(h.channels, name)
		}
		ch.sent, ch.confirmed, ch.subscribed = 0, 0, false
		ch.advance() // its followers must not sleep on a connection that is gone
	}
}

// wanted tells what is to be sent now, and notes it as sent.
func (h *hub) wanted() (on, off []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, ch := range h.channels {
		switch {
		case ch.followers > 0 && !ch.subscribed:
			ch.subscribed = true
			ch.sent++
			on = append(on, name)
		case ch.followers == 0 && ch.subscribed:
			ch.subscribed = false
			off = append(off, name)
		case ch.followers == 0 && ch.settled():
			delete(h.channels, name)
		}
	}
	return on, off
}

// read passes on what arrives until the connection fails or stays silent.
func (h *hub) read(ps *redis.PubSub) {
	asked := false
	for {
		m, err := ps.ReceiveTimeout(h.ctx, silence)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() && !asked {
			if ps.Ping(h.ctx) != nil {
				return
			}
			asked = true
			continue
		}
		if err != nil {
			return
		}
		asked = false
		switch m := m.(type) {
		case *redis.Message:
			h.hint(m.Channel)
		case *redis.Subscription:
			h.confirm(m)
		}
	}
}

func (h *hub) hint(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch := h.channels[name]; ch != nil {
		ch.advance()
	}
}

// confirm counts an answered subscription. Answers come in the order of the questions, so one that was overtaken by an
// unsubscription does not pass for a later one.
func (h *hub) confirm(s *redis.Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch := h.channels[s.Channel]
	if ch == nil {
		return
	}
	if s.Kind == "subscribe" {
		ch.confirmed++
	}
	if ch.live() {
		ch.advance()
	}
	if ch.followers == 0 {
		h.wake() // it may be forgotten now
	}
}
