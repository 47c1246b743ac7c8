package pubsub

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t, 0)
	t.Run("topology", func(t *testing.T) { testTopology(t, c) })
	for _, mode := range []Mode{Auto, On, Off} {
		if mode == On && !c.Sharded {
			continue
		}
		t.Run(fmt.Sprint("mode ", mode), func(t *testing.T) { testMode(t, c, mode) })
	}
	t.Run("lost connections", func(t *testing.T) { testLostConnections(t, c) })
	t.Run("slot moves", func(t *testing.T) { testSlotMoves(t, c) })
	t.Run("stale map", func(t *testing.T) { testStaleMap(t, c) })
	t.Run("close", func(t *testing.T) { testCloseInACluster(t, c) })
}

func testTopology(t *testing.T, c *redistest.Cluster) {
	keys := []string{"a", "order:1", "{a}b", "x{y}z", "a{b", "a}b", "{}x", "a{}{b}", "{{a}b}", "ключ"}
	for _, key := range append(keys, "") {
		if _, want := c.Owner(t, key); Slot(key) != want {
			t.Errorf("Slot(%q) = %d, want %d", key, Slot(key), want)
		}
	}
	for mode, want := range map[Mode]bool{Auto: c.Sharded, On: true, Off: false} {
		rdb := c.Client(t)
		top := NewTopology(rdb, mode)
		if got := top.Master("a"); got != "" {
			t.Errorf("mode %v: Master before anything was asked = %q", mode, got)
		}
		if got, err := top.Sharded(t.Context()); got != want || err != nil {
			t.Errorf("mode %v: Sharded = %v, %v, want %v", mode, got, err, want)
		}
		for _, key := range keys {
			i, _ := c.Owner(t, key)
			if got, want := top.Master(key), c.Masters[i].Addr; got != want {
				t.Errorf("mode %v: Master(%q) = %q, want %q", mode, key, got, want)
			}
		}
		if !top.Cluster() {
			t.Errorf("mode %v: this is no cluster", mode)
		}
	}
}

// subscribed counts the channels of both kinds that are subscribed at a node.
func subscribed(t *testing.T, c *redistest.Cluster, n *redistest.Node) (sharded, classic int) {
	t.Helper()
	if c.Sharded {
		sharded = len(n.Do(t, "pubsub", "shardchannels").([]any))
	}
	return sharded, len(n.Do(t, "pubsub", "channels").([]any))
}

// total sums up subscribed.
func total(t *testing.T, c *redistest.Cluster) (sharded, classic int) {
	t.Helper()
	for _, n := range slices.Concat(c.Masters, c.Replicas) {
		s, o := subscribed(t, c, n)
		sharded, classic = sharded+s, classic+o
	}
	return sharded, classic
}

// publish announces a release as the mode has it.
func publish(t *testing.T, c *redistest.Cluster, mode Mode, channel string) {
	t.Helper()
	command := "spublish"
	if mode == Off || mode == Auto && !c.Sharded {
		command = "publish"
	}
	if err := c.Client(t).Do(t.Context(), command, channel, "0").Err(); err != nil {
		t.Fatal(err)
	}
}

// A message is received at whichever master it is published, on the kind of channel that the mode says.
func testMode(t *testing.T, c *redistest.Cluster, mode Mode) {
	s := newSubscriber(t, c.Client(t), mode)
	var subs []*Subscription
	for i := range 9 {
		subs = append(subs, s.Subscribe(fmt.Sprint("k", i)))
	}
	for _, sub := range subs {
		awaitLive(t, sub, true)
	}
	for i, sub := range subs {
		changed, _ := sub.Changed()
		publish(t, c, mode, fmt.Sprint("k", i))
		await(t, "a message", changed)
	}
	sharded, classic := total(t, c) // while all are used: a channel stays for a moment only
	if shards := mode != Off && c.Sharded; !shards && (sharded > 0 || classic != 9) || shards && (sharded != 9 || classic > 0) {
		t.Errorf("%d sharded and %d classic channels are subscribed", sharded, classic)
	}
	for _, sub := range subs {
		sub.Close()
	}
	eventually(t, "nothing is left", func() bool { sharded, classic := total(t, c); return sharded+classic == 0 })
	closeInTime(t, s)
}

// Scenario 18: the connections on which a waiter listens are killed.
func testLostConnections(t *testing.T, c *redistest.Cluster) {
	s := newSubscriber(t, c.Client(t), Auto)
	sub := s.Subscribe("killed")
	changed := awaitLive(t, sub, true)
	for _, n := range c.Masters {
		n.Do(t, "client", "kill", "type", "pubsub")
	}
	await(t, "the connection broke", changed)
	changed = awaitLive(t, sub, true)
	publish(t, c, Auto, "killed")
	await(t, "a message", changed)
}

// The slot of a channel moves away and back.
func testSlotMoves(t *testing.T, c *redistest.Cluster) {
	if !c.Sharded {
		t.Skip("this server has no sharded channels: a channel is in no slot")
	}
	const name = "moving"
	i, slot := c.Owner(t, name)
	from, to := c.Masters[i], c.Masters[(i+1)%3]
	s := newSubscriber(t, c.Client(t), Auto)
	sub := s.Subscribe(name)
	awaitLive(t, sub, true)
	for range 2 {
		changed, _ := sub.Changed()
		c.OpenSlot(t, slot, from, to)
		c.CloseSlot(t, slot, from, to)
		await(t, "the slot has moved", changed)
		changed = awaitLive(t, sub, true)
		if sharded, _ := subscribed(t, c, to); sharded != 1 {
			t.Errorf("%d channels are subscribed at the new master", sharded)
		}
		if sharded, _ := subscribed(t, c, from); sharded != 0 {
			t.Errorf("%d channels are subscribed at the old master", sharded)
		}
		to.Do(t, "spublish", name, "0")
		await(t, "a message", changed)
		from, to = to, from
	}
}

// A subscriber whose map of the cluster is old asks the wrong master, is redirected, and finds the right one.
func testStaleMap(t *testing.T, c *redistest.Cluster) {
	if !c.Sharded {
		t.Skip("this server has no sharded channels: a subscriber needs no map")
	}
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	s := newSubscriber(t, rdb, On)
	var names []string
	for i := 0; len(names) < 10; i++ { // all from one master to one other, as a cluster settles competing moves only in time
		if at, _ := c.Owner(t, fmt.Sprint("stale", i)); at == 0 {
			names = append(names, fmt.Sprint("stale", i))
		}
	}
	if _, err := s.topology.Sharded(t.Context()); err != nil { // reads the map
		t.Fatal(err)
	}
	for _, name := range names {
		_, slot := c.Owner(t, name)
		c.OpenSlot(t, slot, c.Masters[0], c.Masters[1])
		c.CloseSlot(t, slot, c.Masters[0], c.Masters[1])
	}
	if got := s.topology.Master(names[0]); got != c.Masters[0].Addr {
		t.Fatalf("the map is not old: it has %s at %s", names[0], got)
	}
	var subs []*Subscription
	for _, name := range names {
		subs = append(subs, s.Subscribe(name))
	}
	for _, sub := range subs {
		awaitLive(t, sub, true)
	}
	if sharded, _ := subscribed(t, c, c.Masters[1]); sharded != len(names) {
		t.Errorf("%d of %d channels are subscribed at the new master", sharded, len(names))
	}
}

// Close is bounded with one master silent, and with all of them silent before anything was known.
func testCloseInACluster(t *testing.T, c *redistest.Cluster) {
	s := newSubscriber(t, c.Client(t), Auto)
	var subs []*Subscription
	for i := range 9 {
		subs = append(subs, s.Subscribe(fmt.Sprint("k", i)))
	}
	for _, sub := range subs {
		awaitLive(t, sub, true)
	}
	for _, n := range c.Masters {
		n.Pause(t)
		defer n.Resume(t)
	}
	closeInTime(t, s)

	unknown := newSubscriber(t, c.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout, o.WriteTimeout = -1, -1 }), Auto)
	unknown.Subscribe("k")
	eventually(t, "the cluster is asked", func() bool { return len(unknown.wake) == 0 })
	start := time.Now()
	unknown.Close()
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
}
