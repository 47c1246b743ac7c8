package redisson

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A link's patience. A connection that was silent for silence is asked for a sign of life; after as much again without
// one it is given up. A link to one of several servers ends when it was without channels and a connection for idle.
const (
	silence        = 5 * time.Second
	idle           = time.Minute
	reconnectPause = 50 * time.Millisecond
	reconnectCap   = 2 * time.Second
)

// link is the hub's connection to one server, made again as often as it breaks.
type link struct {
	h    *hub
	addr string // of the server; empty when there is only this link
	open func(context.Context) *redis.PubSub
	kick chan struct{} // wants changed
}

// sharded tells whether the link is one of several, with sharded channels.
func (l *link) sharded() bool { return l.addr != "" }

// run keeps a connection until the client is closed or the link is not needed any more.
func (l *link) run() {
	pause := reconnectPause
	for l.h.ctx.Err() == nil {
		began := time.Now()
		if l.connection() {
			return
		}
		if time.Since(began) > reconnectCap {
			pause = reconnectPause
		}
		l.h.topology.reload()
		if !sleep(l.h.ctx, pause) {
			return
		}
		if l.sharded() { // the server may have lost its slots together with the connection
			l.h.displace(l, func(string) bool { return true })
		}
		pause = min(2*pause, reconnectCap)
	}
}

// connection lives through one connection: it subscribes what is wanted, follows the changes, and returns when the
// connection broke, or with true when the link has ended.
func (l *link) connection() (ended bool) {
	ctx := l.h.ctx
	ps := l.open(ctx)
	broken := make(chan struct{})
	var once sync.Once
	fail := func() { once.Do(func() { _ = ps.Close(); close(broken) }) }
	stop := context.AfterFunc(ctx, fail)
	defer stop()
	defer l.reset()
	defer fail()
	var reader sync.WaitGroup
	defer reader.Wait()
	reading := false
	for {
		on, off := l.wanted()
		if l.send(ps, on, off) != nil {
			fail()
		}
		if len(on) > 0 && !reading {
			reading = true
			reader.Go(func() { defer fail(); l.read(ps) })
		}
		var unused <-chan time.Time
		if l.sharded() && !reading {
			unused = time.After(idle)
		}
		select {
		case <-l.kick:
		case <-unused:
			if l.retire() {
				return true
			}
		case <-broken:
			return false
		}
	}
}

// send asks for subscriptions and cancels others. Sharded channels go one by one: those of one command must share a slot.
func (l *link) send(ps *redis.PubSub, on, off []string) error {
	ctx := l.h.ctx
	if l.sharded() {
		var err error
		for _, name := range on {
			err = errors.Join(err, ps.SSubscribe(ctx, name))
		}
		for _, name := range off {
			err = errors.Join(err, ps.SUnsubscribe(ctx, name))
		}
		return err
	}
	if len(on) > 0 {
		if err := ps.Subscribe(ctx, on...); err != nil {
			return err
		}
	}
	if len(off) > 0 {
		return ps.Unsubscribe(ctx, off...)
	}
	return nil
}

// reset forgets what the connection had, and drops the channels that nobody follows.
func (l *link) reset() {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	for name, ch := range l.h.channels {
		if ch.link != l {
			continue
		}
		ch.forget()
		if ch.followers == 0 {
			delete(l.h.channels, name)
		}
	}
}

// retire ends the link unless it has a channel.
func (l *link) retire() bool {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	for _, ch := range l.h.channels {
		if ch.link == l {
			return false
		}
	}
	delete(l.h.links, l.addr)
	return true
}

// wanted tells what is to be sent now, and notes it as sent.
func (l *link) wanted() (on, off []string) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	for name, ch := range l.h.channels {
		switch {
		case ch.link != l:
		case ch.followers > 0 && !ch.subscribed:
			ch.subscribed = true
			ch.sent++
			on = append(on, name)
		case ch.followers == 0 && ch.subscribed:
			ch.subscribed = false
			ch.leaving++
			off = append(off, name)
		case ch.followers == 0 && ch.settled():
			delete(l.h.channels, name)
		}
	}
	return on, off
}

// read passes on what arrives until the connection fails or stays silent.
func (l *link) read(ps *redis.PubSub) {
	asked := false
	for {
		m, err := ps.ReceiveTimeout(l.h.ctx, silence)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() && !asked {
			if ps.Ping(l.h.ctx) != nil {
				return
			}
			asked = true
			continue
		}
		if err != nil && !l.redirected(err) {
			return
		}
		asked = false
		switch m := m.(type) {
		case *redis.Message:
			l.h.hint(m.Channel)
		case *redis.Subscription:
			if l.h.confirm(l, m) {
				l.moved(func(name string) bool { return name == m.Channel })
			}
		}
	}
}

// redirected tells whether err is the server's answer that another one has the slot of a channel, and acts on it.
func (l *link) redirected(err error) bool {
	if !l.sharded() || !redis.HasErrorPrefix(err, "MOVED") {
		return false
	}
	words := strings.Fields(err.Error())
	i := slices.Index(words, "MOVED")
	if i < 0 || i+1 >= len(words) {
		return false
	}
	slot, err := strconv.Atoi(words[i+1])
	if err != nil {
		return false
	}
	l.moved(func(name string) bool { return slotOf(name) == slot })
	return true
}

// moved gives up the channels for which gone is true.
func (l *link) moved(gone func(name string) bool) {
	l.h.topology.reload()
	l.h.displace(l, gone)
}
