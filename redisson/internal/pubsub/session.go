package pubsub

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// session is one TCP connection. Cutting its context closes that, and so ends whatever is under way on it.
type session struct {
	*connection
	target target
	ctx    context.Context
	cut    context.CancelFunc
	ps     *redis.PubSub
	quiet  *time.Timer // nothing was received for long
	pinged atomic.Bool // since something was received
}

// connect lives through one session, from the first subscriptions to the end of its TCP connection.
func (c *connection) connect(ctx context.Context, at target) {
	ctx, cut := context.WithCancel(ctx)
	client := redis.NewClient(dedicated(ctx, at.Options))
	defer client.Close()
	s := &session{connection: c, target: at, ctx: ctx, cut: cut, quiet: time.NewTimer(silence)}
	s.ps = client.Subscribe(ctx) // dials when there is something to subscribe
	defer s.ps.Close()
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cut()
	if s.send() == nil {
		reader.Go(func() { defer cut(); s.read() })
		s.serve()
	}
}

// serve sends what changes, and looks after the TCP connection, until that has ended or the connection has retired.
func (s *session) serve() {
	look := time.NewTicker(silence)
	defer look.Stop()
	for {
		ok := true
		select {
		case <-s.wake:
			ok = clock.Sleep(s.ctx, gather) && s.send() == nil
		case <-s.quiet.C:
			ok = !s.pinged.Swap(true) && s.bounded(func() error { return s.ps.Ping(s.ctx) }) == nil
			s.quiet.Reset(silence)
		case <-look.C:
			ok = !s.retire() && s.follow()
		case <-s.ctx.Done():
			ok = false
		}
		if !ok {
			return
		}
	}
}

// bounded writes, for as long as silence at most.
func (s *session) bounded(write func() error) error {
	bound := time.AfterFunc(silence, s.cut)
	defer bound.Stop()
	return write()
}

// send subscribes channels and unsubscribes others. Sharded channels go one by one: those of one command must share a slot.
func (s *session) send() error {
	alone, subscribe, unsubscribe := s.pending()
	begin, end, most := s.ps.Subscribe, s.ps.Unsubscribe, math.MaxInt
	if s.subscriber.topology.kind() == On {
		begin, end, most = s.ps.SSubscribe, s.ps.SUnsubscribe, 1
	}
	do := func(command func(context.Context, ...string) error, names []string, most int) (err error) {
		for part := range slices.Chunk(names, most) {
			err = cmp.Or(err, command(s.ctx, part...)) // after one that fails, go-redis has no connection for any
		}
		return err
	}
	return s.bounded(func() error {
		return cmp.Or(do(begin, alone, 1), do(begin, subscribe, most), do(end, unsubscribe, most))
	})
}

// follow compares the session with the map, and reports whether it is still at the right server. A server
// that was cut off from the others, or has left the cluster, may answer pings and yet get no messages.
func (s *session) follow() bool {
	master := s.subscriber.topology.Master
	if !s.local() {
		at := master(s.target.key)
		return at == "" || at == s.target.Addr
	}
	s.release(reconnectPause, func(ch *channel) bool {
		at := master(ch.name)
		return at != "" && at != s.addr
	})
	return true
}

// read passes on what arrives until the connection fails.
func (s *session) read() {
	for {
		m, err := s.receive()
		if err != nil && !s.refused(err) {
			return
		}
		s.pinged.Store(false)
		s.quiet.Reset(silence)
		switch m := m.(type) {
		case *redis.Message:
			s.subscriber.message(m.Channel, m.Payload)
		case *redis.Subscription:
			if s.confirm(m) {
				s.moved(func(ch *channel) bool { return ch.name == m.Channel })
			}
		}
	}
}

// receive returns what arrives next. go-redis panics over what it does not know, such as an empty list; that ends the connection like
// any other failure.
func (s *session) receive() (m any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("redisson: a message that go-redis can't read: %v", p)
		}
	}()
	return s.ps.ReceiveTimeout(s.ctx, 0) // without a timeout: serve sees to that
}

// refused reports whether err is the server's answer in place of a confirmation, and acts on it: another server has the slot of a channel, or its user
// may not subscribe one. That is most likely one that somebody reads, without which the others are as good.
func (s *session) refused(err error) bool {
	class, slot := reply.Classify(err), 0
	if class.Refused {
		return s.release(refusedPause, func(ch *channel) bool { return ch.subscribing > 0 && ch.read() })
	}
	if n, _ := fmt.Sscanf(err.Error(), "MOVED %d", &slot); n == 0 || !class.Slot || !s.local() {
		return false
	}
	s.moved(func(ch *channel) bool { return Slot(ch.name) == slot })
	return true
}

// moved gives up channels that are elsewhere, says their server.
func (s *session) moved(gone func(*channel) bool) {
	s.subscriber.topology.Reload()
	s.release(reconnectPause, gone)
}
