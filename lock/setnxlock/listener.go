package setnxlock

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// linger is how long, at least, a channel stays subscribed after its last ear has gone: the next one may be near.
	linger = 250 * time.Millisecond
	// subscribeTimeout bounds one attempt to subscribe. A waiter polls meanwhile.
	subscribeTimeout = 3 * time.Second
)

// listener receives the messages on channels. It has one connection and one goroutine of its own, and none of them
// while nobody listens.
type listener struct {
	rdb redis.UniversalClient

	mu       sync.Mutex
	channels map[string]*channel // that somebody listens to, or did a moment ago
	running  bool
	news     chan struct{} // has room for one: there is a channel to subscribe to
}

// channel is guarded by the mutex of its listener.
type channel struct {
	ears       map[*ear]struct{}
	subscribed bool // asked for
	confirmed  bool
	quiet      bool // nobody has listened since the last sweep
}

// ear is one listener's channel. It has room for one value.
type ear struct{ heard chan struct{} }

func (e *ear) ring() {
	select {
	case e.heard <- struct{}{}:
	default:
	}
}

func newListener(rdb redis.UniversalClient) *listener {
	return &listener{rdb: rdb, channels: make(map[string]*channel), news: make(chan struct{}, 1)}
}

// listen returns a channel that gets a value for messages on the named channel, and when it is subscribed: what was announced before
// that is missed. The function stops that.
func (l *listener) listen(name string) (heard <-chan struct{}, stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.channels[name]
	if c == nil {
		c = &channel{ears: make(map[*ear]struct{})}
		l.channels[name] = c
	}
	e := &ear{make(chan struct{}, 1)}
	c.ears[e] = struct{}{}
	if c.confirmed {
		e.ring()
	}
	if !l.running {
		l.running = true
		go l.run()
	} else if !c.subscribed {
		l.announceLocked()
	}
	return e.heard, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(c.ears, e)
	}
}

func (l *listener) announceLocked() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// run subscribes to channels, and passes on what it hears, until nobody listens anymore. Go-redis makes the connection again
// if it breaks, and subscribes again, which is confirmed again.
func (l *listener) run() {
	ps := l.rdb.Subscribe(context.Background())
	defer ps.Close()
	messages := ps.ChannelWithSubscriptions()
	sweep := time.NewTicker(linger)
	defer sweep.Stop()
	for {
		if names := l.wanted(); len(names) > 0 {
			call(ps.Subscribe, names)
		}
		select {
		case m, open := <-messages:
			if !open { // the client was closed, which those who wait find out when they ask
				messages = nil
				l.ringAll()
				continue
			}
			l.hear(m)
		case <-l.news:
		case <-sweep.C:
			names, done := l.unwanted()
			if done {
				return
			}
			if len(names) > 0 {
				call(ps.Unsubscribe, names)
			}
		}
	}
}

// call ignores errors: go-redis remembers the channels to subscribe, and tries again with the next connection.
func call(f func(context.Context, ...string) error, names []string) {
	ctx, cancel := context.WithTimeout(context.Background(), subscribeTimeout)
	defer cancel()
	_ = f(ctx, names...)
}

// wanted returns the channels that are not subscribed yet, and marks them as subscribed.
func (l *listener) wanted() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, c := range l.channels {
		if !c.subscribed {
			c.subscribed = true
			names = append(names, name)
		}
	}
	return names
}

// unwanted forgets the channels to which nobody has listened for a while, and returns them. If there is no other one, run is done.
func (l *listener) unwanted() (names []string, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, c := range l.channels {
		if len(c.ears) > 0 {
			c.quiet = false
		} else if !c.quiet {
			c.quiet = true
		} else {
			names = append(names, name)
			delete(l.channels, name)
		}
	}
	l.running = len(l.channels) > 0
	return names, !l.running
}

// hear passes a message on.
func (l *listener) hear(m any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *redis.Message:
		l.ringLocked(m.Channel)
	case *redis.Subscription:
		if c := l.channels[m.Channel]; c != nil && m.Kind == "subscribe" {
			c.confirmed = true
		}
		l.ringLocked(m.Channel)
	}
}

func (l *listener) ringAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.channels {
		l.ringLocked(name)
	}
}

func (l *listener) ringLocked(name string) {
	if c := l.channels[name]; c != nil {
		for e := range c.ears {
			e.ring()
		}
	}
}
