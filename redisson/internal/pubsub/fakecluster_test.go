package pubsub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// fakeCluster is two fakeServers with a map that tests change.
type fakeCluster struct {
	a, b *fakeServer

	mu      sync.Mutex
	at      map[int]*fakeServer // the masters of slots; of others, it is a
	reads   int                 // of the map
	unknown bool                // the map can't be had
}

const ( // not of the loopback interface, for which go-redis has rules of its own
	addrA = "10.0.0.1:6379"
	addrB = "10.0.0.2:6379"
)

func newFakeCluster() *fakeCluster {
	return &fakeCluster{a: newFakeServer(), b: newFakeServer(), at: map[int]*fakeServer{}}
}

// subscriber returns a Subscriber of the cluster, closed when the test ends.
func (c *fakeCluster) subscriber(t *testing.T, mode Mode) *Subscriber {
	t.Helper()
	rdb := c.client(t)
	top := NewTopology(rdb, mode)
	top.Drawn = false // go-redis reads the map of a real cluster over connections of its own
	s := NewSubscriber(top)
	t.Cleanup(s.Close)
	return s
}

// client returns a client of the cluster, closed when the test ends.
func (c *fakeCluster) client(t *testing.T) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: c.slots, Dialer: c.dial})
	t.Cleanup(func() {
		_ = rdb.Close()
		time.Sleep(time.Second) // go-redis' goroutine that read the map
	})
	return rdb
}

func (c *fakeCluster) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == addrB {
		return c.b.dial(ctx, network, addr)
	}
	return c.a.dial(ctx, network, addr)
}

// move makes a server the master of a channel, for the map alone.
func (c *fakeCluster) move(channel string, to *fakeServer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[Slot(channel)] = to
}

// slots is the map of the cluster as go-redis reads it.
func (c *fakeCluster) slots(context.Context) ([]redis.ClusterSlot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if c.unknown {
		return nil, errors.New("no map")
	}
	slots := []redis.ClusterSlot{}
	from := 0
	for _, slot := range append(slices.Sorted(maps.Keys(c.at)), SlotCount) {
		if slot > from {
			slots = append(slots, redis.ClusterSlot{Start: from, End: slot - 1, Nodes: []redis.ClusterNode{{Addr: addrA}}})
		}
		addr := addrA
		if c.at[slot] == c.b {
			addr = addrB
		}
		if slot < SlotCount {
			slots = append(slots, redis.ClusterSlot{Start: slot, End: slot, Nodes: []redis.ClusterNode{{Addr: addr}}})
		}
		from = slot + 1
	}
	return slots, nil
}

// setUnknown makes the map one that can't be had, or can be again.
func (c *fakeCluster) setUnknown(unknown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown = unknown
}

// readings counts how often the map was read.
func (c *fakeCluster) readings() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// Each sharded channel has its own command, at the master that has its slot.
func TestShardedChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		c.move("b1", c.b)
		c.move("b2", c.b)
		s := c.subscriber(t, On)
		var subs []*Subscription
		for _, name := range []string{"b2", "a2", "b1", "a1"} {
			subs = append(subs, s.Subscribe(name))
		}
		time.Sleep(time.Second)
		for _, sub := range subs {
			expectLive(t, sub, true)
			sub.Close()
		}
		time.Sleep(time.Second)
		end := time.Second + Linger
		expectTrace(t, c.a, at(0, "ssubscribe a1"), at(0, "ssubscribe a2"), at(end, "sunsubscribe a1"), at(end, "sunsubscribe a2"))
		expectTrace(t, c.b, at(0, "ssubscribe b1"), at(0, "ssubscribe b2"), at(end, "sunsubscribe b1"), at(end, "sunsubscribe b2"))
		for master, key := range map[string]string{addrA: "a1", addrB: "b1"} {
			if got := s.topology.Master(key); got != master {
				t.Errorf("Master(%s) = %q, want %q", key, got, master)
			}
		}
	})
}

// A channel whose slot moves is followed, whether the old master says so by itself, when it is asked, or not at all.
func TestSlotMoves(t *testing.T) {
	for _, tt := range []struct {
		name string
		says string // what the old master says
	}{
		{"pushed", array("sunsubscribe", "k", 0)},
		{"answered", fmt.Sprintf("-MOVED %d %s\r\n", Slot("k"), addrB)},
		{"unsaid", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFakeCluster()
				s := c.subscriber(t, On)
				sub, other := s.Subscribe("k"), s.Subscribe("other")
				time.Sleep(time.Second)
				expectLive(t, sub, true)
				changed, _ := sub.Changed()
				changedOther, _ := other.Changed()

				c.move("k", c.b)
				c.a.lose("k")
				if tt.says != "" {
					c.a.reply(tt.says)
				} else {
					s.topology.Reload()
					time.Sleep(silence)
				}
				if !hinted(changed) {
					t.Error("nobody was notified")
				}
				time.Sleep(reconnectPause + gather)
				expectLive(t, sub, true)
				expectLive(t, other, true)
				changed, _ = sub.Changed()
				c.b.publish("k")
				if !hinted(changed) {
					t.Error("a message of the new master did not arrive")
				}
				if hinted(changedOther) || c.a.connections() != 1 {
					t.Error("another channel of the old master was disturbed")
				}
			})
		})
	}
}

// When a master dies, its channels follow the map to the next one.
func TestMasterDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		s := c.subscriber(t, On)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		expectLive(t, sub, true)
		c.move("k", c.b)
		c.a.set(&c.a.refuses, true)
		c.a.drop()
		expectLive(t, sub, false)
		time.Sleep(reconnectPause + gather)
		expectLive(t, sub, true)
		if n := len(c.a.dialled()); n != 1 { // go-redis reads the map elsewhere
			t.Errorf("the dead master was dialled %d times, want once", n)
		}
	})
}

// As long as the cluster does not say where channels belong, it is asked again and again.
func TestUnknownTopology(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		c.setUnknown(true)
		s := c.subscriber(t, On)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		expectLive(t, sub, false)
		c.setUnknown(false)
		time.Sleep(reconnectPause + gather)
		expectLive(t, sub, true)
	})
}

// A map that stays old for a while sends the subscriber to the wrong master, which says so each time.
func TestOldMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		c.a.lose("k")
		s := c.subscriber(t, On)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		expectLive(t, sub, false)
		if n := len(c.a.takeTrace()); n < 15 || n > 20 { // once in reconnectPause
			t.Errorf("the wrong master was asked %d times within a second", n)
		}
		c.move("k", c.b)
		time.Sleep(time.Second)
		expectLive(t, sub, true)
	})
}

// The answer to a cancellation of our own, even if it is late, does not mean that the slot has moved.
func TestLateAnswerToUnsubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		s := c.subscriber(t, On)
		sub := s.Subscribe("k")
		time.Sleep(time.Second)
		c.a.set(&c.a.silent, true)
		sub.Close()
		time.Sleep(time.Second)
		expectTrace(t, c.a, at(0, "ssubscribe k"), at(time.Second+Linger, "sunsubscribe k"))
		sub = s.Subscribe("k")
		time.Sleep(time.Second)
		c.a.reply(array("sunsubscribe", "k", 0))
		c.a.reply(array("ssubscribe", "k", 1))
		expectLive(t, sub, true)
		time.Sleep(time.Second)
		expectTrace(t, c.a, at(2*time.Second, "ssubscribe k"))
	})
}

// Classic channels share a connection to any master, and leave one that is down or no longer has a part in the cluster.
func TestClassicChannelsInACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		c.move("b1", c.b)
		c.a.set(&c.a.refuses, true)
		s := c.subscriber(t, Off)
		a, b := s.Subscribe("a1"), s.Subscribe("b1")
		time.Sleep(time.Second)
		expectLive(t, a, true)
		expectLive(t, b, true)
		trace := c.b.takeTrace()
		if len(trace) != 1 || !strings.HasSuffix(trace[0], " subscribe a1 b1") {
			t.Errorf("the master that is up saw %q", trace)
		}
		if n := len(c.a.dialled()); n > 2 {
			t.Errorf("the master that is down was tried %d times", n)
		}

		c.a.set(&c.a.refuses, false)
		c.move("b1", c.a)
		s.topology.Reload()
		time.Sleep(2 * silence)
		expectLive(t, a, true)
		if c.a.connections() != 1 || c.b.connections() != 0 {
			t.Errorf("connections: %d and %d, want one to the master that is left", c.a.connections(), c.b.connections())
		}
	})
}
