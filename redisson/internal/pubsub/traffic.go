package pubsub

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

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

// read passes on what arrives until the connection fails.
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

// receive returns what arrives next. go-redis panics over what it does not know, such as an empty list; that ends the connection like
// any other failure.
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
