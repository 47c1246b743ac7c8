package pubsub

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// assigned returns a subscription to "k" that is assigned to addr, by a connection that does nothing by itself.
func assigned(addr string) (*Subscription, *connection) {
	s := NewSubscriber(&Topology{})
	sub := s.Subscribe("k")
	s.cancel()
	return sub, take(sub, addr)
}

// take assigns a subscription to addr.
func take(sub *Subscription, addr string) *connection {
	s := sub.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.connectLocked(addr, "", nil)
	sub.channel.at, c.channels[sub.channel.name] = c, sub.channel
	c.changeLocked(sub.channel)
	clear(s.unassigned)
	return c
}

// expectPending compares what is to be sent.
func expectPending(t *testing.T, c *connection, subscribe, unsubscribe []string) {
	t.Helper()
	if _, s, u := c.pending(); !slices.Equal(s, subscribe) || !slices.Equal(u, unsubscribe) {
		t.Errorf("pending = %q, %q, want %q, %q", s, u, subscribe, unsubscribe)
	}
}

func (c *connection) answer(kind, name string) (moved bool) {
	return c.confirm(&redis.Subscription{Kind: kind, Channel: name})
}

// waits returns how many channels are to be assigned now.
func (s *Subscriber) waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unassigned)
}

// pass lets time pass, and what is to happen by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// A channel that was unsubscribed, and then wanted for so short that nothing was sent, is kept until the answer to its
// cancellation: that would else be taken for one of a later subscription.
func TestForgetAfterTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub, c := assigned("addr")
		s := sub.subscriber
		expectPending(t, c, []string{"k"}, nil)
		c.answer("ssubscribe", "k")
		sub.Close()
		pass(Linger)
		expectPending(t, c, nil, []string{"k"})
		s.Subscribe("k").Close()
		pass(Linger)
		expectPending(t, c, nil, nil)
		if s.channels["k"] != sub.channel {
			t.Fatal("the channel was forgotten before the answer")
		}
		c.answer("sunsubscribe", "k")
		if n, _ := s.size(); n != 0 || len(c.channels) != 0 {
			t.Error("the channel was not forgotten after the answer")
		}
	})
}

// A channel for which nothing was sent when it has lingered long enough leaves its connection.
func TestForgetWhatWasNeverSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub, c := assigned("addr")
		sub.Close()
		pass(Linger)
		if n, _ := sub.subscriber.size(); n != 0 || len(c.channels) != 0 {
			t.Error("the channel was not forgotten")
		}
		expectPending(t, c, nil, nil)
	})
}

// Only a sharded channel that is subscribed can move.
func TestMoved(t *testing.T) {
	for _, tt := range []struct {
		name, addr, kind string
		sent, want       bool
	}{
		{"sharded", "addr", "sunsubscribe", true, true},
		{"sharded, not yet subscribed", "addr", "sunsubscribe", false, false},
		{"classic", "", "unsubscribe", true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, c := assigned(tt.addr)
			if tt.sent {
				c.pending()
			}
			if got := c.answer(tt.kind, "k"); got != tt.want {
				t.Errorf("%s: moved = %v, want %v", tt.name, got, tt.want)
			}
			if c.answer(tt.kind, "other") {
				t.Errorf("%s: a channel that nobody knows has moved", tt.name)
			}
		})
	}
}

// Answers of a connection that a channel has left are not for its next one.
func TestAnswerOfAnotherConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sub, old := assigned("old")
		old.pending()
		old.release(time.Second, func(*channel) bool { return true })
		pass(time.Second - 1)
		if sub.subscriber.waits() != 0 {
			t.Error("the channel is assigned before a second is over")
		}
		pass(1)
		if sub.subscriber.waits() != 1 {
			t.Error("the channel is not assigned again")
		}
		c := take(sub, "new")
		c.pending()
		old.answer("ssubscribe", "k")
		if _, live := sub.Changed(); live {
			t.Error("live by the old connection's answer")
		}
		c.answer("ssubscribe", "k")
		if _, live := sub.Changed(); !live {
			t.Error("not live after the answer")
		}
	})
}

// A channel that nobody wants any more when its place is found is not assigned.
func TestAssignToNobody(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	s := NewSubscriber(&Topology{})
	s.topology = NewTopology(rdb, Auto)
	s.Subscribe("k").Close()
	s.assign()
	if len(s.connections) != 0 || len(s.channels) != 0 {
		t.Errorf("%d connections, %d channels", len(s.connections), len(s.channels))
	}
}
