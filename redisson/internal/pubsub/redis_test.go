package pubsub

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// patience bounds what a test waits for; it is reached only when the test fails.
const patience = 15 * time.Second

// newSubscriber returns a Subscriber that is closed when the test ends.
func newSubscriber(t *testing.T, rdb redis.UniversalClient, mode Mode) *Subscriber {
	t.Helper()
	s := NewSubscriber(NewTopology(rdb, mode))
	t.Cleanup(s.Close)
	return s
}

// await waits for a hint.
func await(t *testing.T, what string, changed <-chan struct{}) {
	t.Helper()
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatalf("no hint within %v: %s", patience, what)
	}
}

// awaitLive waits until the subscription is as live as wanted, and returns the channel of its next hint.
func awaitLive(t *testing.T, sub *Subscription, want bool) <-chan struct{} {
	t.Helper()
	for {
		changed, live := sub.Changed()
		if live == want {
			return changed
		}
		await(t, fmt.Sprint("live = ", want), changed)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// closeInTime closes the Subscriber and checks that it ends in half a second, and its goroutines at that.
func closeInTime(t *testing.T, s *Subscriber) {
	t.Helper()
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("Close took %v", took)
	}
	start = time.Now()
	s.tasks.Wait()
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("goroutines outlived Close by %v", took)
	}
}

func TestRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("protocol ", protocol), func(t *testing.T) {
			rdb := redistest.Any(t).Client(t, func(o *redis.Options) { o.Protocol = protocol })
			s := newSubscriber(t, rdb, Auto)
			sub := s.Subscribe("a")
			changed := awaitLive(t, sub, true)
			rdb.Publish(t.Context(), "a", "0")
			await(t, "a message", changed)
			sub.Close()
			eventually(t, "the channel is unsubscribed", func() bool { return len(rdb.PubSubChannels(t.Context(), "a").Val()) == 0 })
			closeInTime(t, s)
			if sharded, err := s.topology.Sharded(t.Context()); sharded || err != nil {
				t.Errorf("Sharded = %v, %v for a single server", sharded, err)
			}
			if at, cluster := s.topology.Master("a"), s.topology.Cluster(); at != "" || cluster {
				t.Errorf("Master = %q, Cluster = %v for a single server", at, cluster)
			}
		})
	}
}

// What the options of the client say about its connections holds for those of the subscriber.
func TestOptions(t *testing.T) {
	server := redistest.Start(t)
	if err := server.Client(t).ConfigSet(t.Context(), "requirepass", "secret").Err(); err != nil {
		t.Fatal(err)
	}
	var connected atomic.Int64
	rdb := server.Client(t, func(o *redis.Options) {
		o.Password, o.ClientName = "secret", "latchkey"
		o.OnConnect = func(context.Context, *redis.Conn) error { connected.Add(1); return nil }
	})
	s := newSubscriber(t, rdb, Auto)
	awaitLive(t, s.Subscribe("a"), true)
	if n := connected.Load(); n != 1 {
		t.Errorf("OnConnect was called %d times, want once", n)
	}
	for line := range strings.Lines(rdb.ClientList(t.Context()).Val()) {
		if strings.Contains(line, " sub=1 ") && !strings.Contains(line, " name=latchkey ") {
			t.Errorf("the connection has not the client's name: %s", line)
		}
	}
}

func TestServerRestarts(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	s := newSubscriber(t, rdb, Auto)
	sub := s.Subscribe("a")
	awaitLive(t, sub, true)
	server.Kill(t)
	awaitLive(t, sub, false)
	server.Restart(t)
	changed := awaitLive(t, sub, true)
	rdb.Publish(t.Context(), "a", "0")
	await(t, "a message", changed)
}

// Close is bounded whatever the server and go-redis do.
func TestCloseAtAFrozenServer(t *testing.T) {
	for _, deadlines := range []bool{false, true} {
		for _, timeout := range []time.Duration{0, -1} {
			name := fmt.Sprintf("ContextTimeoutEnabled=%v/ReadTimeout=%v", deadlines, timeout)
			change := func(o *redis.Options) { o.ContextTimeoutEnabled, o.ReadTimeout = deadlines, timeout }
			t.Run(name+"/while subscribed", func(t *testing.T) {
				server := redistest.Start(t)
				s := newSubscriber(t, server.Client(t, change), Auto)
				awaitLive(t, s.Subscribe("a"), true)
				server.Pause(t)
				closeInTime(t, s)
			})
			t.Run(name+"/during the handshake", func(t *testing.T) {
				server := redistest.Start(t)
				s := newSubscriber(t, server.Client(t, change), Auto)
				server.Pause(t)
				sub := s.Subscribe("a")
				eventually(t, "the channel is assigned", func() bool { _, connections := s.size(); return connections == 1 })
				closeInTime(t, s)
				if _, live := sub.Changed(); live {
					t.Error("live after Close")
				}
			})
		}
	}
}

// The subscriber follows the master that the sentinels name.
func TestSentinels(t *testing.T) {
	sentinels := redistest.StartSentinels(t)
	s := newSubscriber(t, sentinels.Client(t), Auto)
	sub := s.Subscribe("a")
	awaitLive(t, sub, true)
	sentinels.Master.Kill(t)
	awaitLive(t, sub, false)
	sentinels.AwaitReplicaLeads(t)
	changed := awaitLive(t, sub, true)
	sentinels.Replica.Client(t).Publish(t.Context(), "a", "0")
	await(t, "a message", changed)
	closeInTime(t, s)
}
