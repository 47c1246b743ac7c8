package pubsub

import (
	"context"
	"fmt"
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

// connection subscribes the channels of an assignment, in one session after the other.
type connection struct {
	assignment *assignment
	registry   *registry
	topology   *Topology
}

// run serves the assignment until ctx ends or the connection was idle.
func (c *connection) run(ctx context.Context) {
	defer c.registry.releaseAll(c.assignment, 0)
	pause := reconnectPause
	for {
		select {
		case <-c.assignment.wake:
		case <-time.After(idle):
			if c.registry.retire(c.assignment) {
				return
			}
		case <-ctx.Done():
			return
		}
		// Without a session nothing is subscribed, and so there is nothing to unsubscribe.
		subscribe, _ := c.registry.pending(c.assignment)
		if len(subscribe) == 0 {
			continue
		}
		began := time.Now()
		if c.connect(ctx, subscribe) {
			return
		}
		if time.Since(began) > reconnectCap {
			pause = reconnectPause
		}
		c.topology.Reload()
		c.registry.releaseAll(c.assignment, pause)
		if !clock.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, reconnectCap)
	}
}

// connect lives through one session, from the first subscriptions to the end of its TCP connection. It reports whether the
// connection has retired.
func (c *connection) connect(ctx context.Context, first []string) (retired bool) {
	ctx, cut := context.WithCancel(ctx)
	target := c.registry.serverOf(c.assignment)
	client := redis.NewClient(dedicated(ctx, target.options))
	defer client.Close()
	s := &session{connection: c, target: target, ctx: ctx, cut: cut, began: time.Now()}
	s.ps = client.Subscribe(ctx) // dials when there is something to subscribe
	defer s.ps.Close()
	var reader sync.WaitGroup
	defer reader.Wait()
	defer cut()
	if s.send(first, nil) != nil {
		return false
	}
	reader.Go(func() { defer cut(); s.read() })
	return s.serve()
}

// session is one TCP connection. Cutting its context closes that, and so ends whatever is under way on it.
type session struct {
	*connection
	target server
	ctx    context.Context
	cut    context.CancelFunc
	ps     *redis.PubSub

	began  time.Time
	heard  atomic.Int64  // when something was last received: nanoseconds since began
	pinged time.Duration // when the last ping was sent, since began
}

// serve sends what changes, and looks after the TCP connection, until that has ended or the connection has retired.
func (s *session) serve() (retired bool) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		select {
		case <-s.assignment.wake:
			if s.send(s.registry.pending(s.assignment)) != nil {
				return false
			}
		case <-timer.C:
			if s.registry.retire(s.assignment) {
				return true
			}
			next, ok := s.check()
			if !ok {
				return false
			}
			timer.Reset(next)
		case <-s.ctx.Done():
			return false
		}
	}
}

// send subscribes channels and unsubscribes others. Sharded channels go one by one: those of one command must share a slot.
func (s *session) send(subscribe, unsubscribe []string) error {
	bound := time.AfterFunc(silence, s.cut)
	defer bound.Stop()
	begin, end := s.ps.Subscribe, s.ps.Unsubscribe
	groups, most := s.registry.apart(subscribe), max(1, len(unsubscribe))
	if s.topology.kind() == On {
		begin, end = s.ps.SSubscribe, s.ps.SUnsubscribe
		groups, most = slices.Collect(slices.Chunk(subscribe, 1)), 1
	}
	for _, names := range groups {
		if err := begin(s.ctx, names...); err != nil {
			return err
		}
	}
	for names := range slices.Chunk(unsubscribe, most) {
		if err := end(s.ctx, names...); err != nil {
			return err
		}
	}
	return nil
}

// check returns when to check again, or false if the session is to end: its server says nothing, or is the wrong one.
func (s *session) check() (next time.Duration, ok bool) {
	if !s.follow() {
		return 0, false
	}
	now, heard := time.Since(s.began), time.Duration(s.heard.Load())
	switch {
	case now < heard+silence:
		return heard + silence - now, true
	case s.pinged > heard:
		return 0, false
	}
	s.pinged = now
	bound := time.AfterFunc(silence, s.cut)
	defer bound.Stop()
	return silence, s.ps.Ping(s.ctx) == nil
}

// follow compares the session with the map, and reports whether it is still at the right server. A server
// that was cut off from the others, or has left the cluster, may answer pings and yet get no messages.
func (s *session) follow() bool {
	if !s.assignment.local() {
		at := s.topology.Master(s.target.key)
		return at == "" || at == s.target.options.Addr
	}
	s.release(func(name string) bool {
		at := s.topology.Master(name)
		return at != "" && at != s.assignment.addr
	})
	return true
}

// read passes on what arrives until the connection fails.
func (s *session) read() {
	for {
		m, err := s.receive()
		if err != nil && !s.redirected(err) && !s.refused(err) {
			return
		}
		s.heard.Store(int64(time.Since(s.began)))
		switch m := m.(type) {
		case *redis.Message:
			s.registry.message(m.Channel, m.Payload)
		case *redis.Subscription:
			if s.registry.confirm(s.assignment, m) {
				s.topology.Reload()
				s.release(func(name string) bool { return name == m.Channel })
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

// redirected reports whether err is the server's answer that another one has the slot of a channel, and acts on it.
func (s *session) redirected(err error) bool {
	var slot int
	if !s.assignment.local() || !reply.Classify(err).Slot {
		return false
	}
	if _, err := fmt.Sscanf(err.Error(), "MOVED %d", &slot); err != nil {
		return false
	}
	s.topology.Reload()
	s.release(func(name string) bool { return Slot(name) == slot })
	return true
}

// refused reports whether err is the server's answer that its user may not subscribe a channel without which the others are as good.
func (s *session) refused(err error) bool {
	return reply.Classify(err).Refused && s.registry.refused(s.assignment, refusedPause)
}

// release gives up the channels for which gone is true, to be assigned anew.
func (s *session) release(gone func(name string) bool) {
	names := slices.DeleteFunc(s.registry.names(s.assignment), func(name string) bool { return !gone(name) })
	s.registry.release(s.assignment, names, reconnectPause)
}
