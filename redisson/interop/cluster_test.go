package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// clusterScenarios are played in a Redis Cluster; all but the last few repeat those of the same numbers.
var clusterScenarios = []scenario{
	plainScenarios[0], // 01
	plainScenarios[1], // 02
	plainScenarios[6], // 07
	plainScenarios[7], // 08
	{name: "18_connection_of_a_waiter_is_lost", play: waiterCutOffInACluster},
	{name: "27_fair_message", play: func(t *testing.T, on setting) { fairBothWays(t, on, fairMessage) }},
	{name: "46_count_down", play: func(t *testing.T, on setting) { latchBothWays(newWorld(t, on).latches()) }},
	{name: "47_sharded_channels", play: channelsInACluster},
	{name: "47_classic_channels", play: func(t *testing.T, on setting) {
		on.mode, on.javaMode = redisson.ShardedOff, "OFF"
		channelsInACluster(t, on)
	}},
	{name: "47_mismatched_channels", play: mismatchedChannels, long: true},
	{name: "48_failover", play: failover, long: true},
}

// waiterCutOffInACluster: the message of the release is lost, because nobody listens at the time.
func waiterCutOffInACluster(t *testing.T, on setting) {
	w := newWorld(t, on)
	java, golang := w.pair("k")
	w.wakesWithin(time.Second, func() (released, woken result) {
		w.take(java, "a", 0)
		p := w.wait(golang, "b", channelOf("k"), forever)
		for _, n := range w.cluster.Masters {
			n.Do(t, "client", "kill", "type", "pubsub")
		}
		released, woken = w.release(java, "a"), p.gets()
		w.release(golang, "b")
		return released, woken
	})
	w.clean()
}

// channelsInACluster: both sides hear each other.
func channelsInACluster(t *testing.T, on setting) {
	w := newWorld(t, on)
	for i := range 6 { // of several slots
		name := fmt.Sprint("plain", i)
		java, golang := w.pair(name)
		w.handsOver(name, java, golang)
		w.handsOver(name, golang, java)
	}
	java, golang := w.fairPair("fair")
	fairMessage(w, "fair", java, golang)
	fairMessage(w, "fair", golang, java)
	javaSides, goSides := w.rwPair("rw")
	lastReader(w, "rw", javaSides, goSides)
	lastReader(w, "rw", goSides, javaSides)
}

// mismatchedChannels: who does not hear the other one gets the lock when its lease is over, or when Go looks by itself.
func mismatchedChannels(t *testing.T, on setting) {
	on.javaMode = "OFF"
	w := newWorld(t, on)
	w.client = w.newClient(redisson.WatchdogTimeout(6 * time.Second))
	java, golang := w.pair("k")
	w.take(java, "a", 0)
	p := w.wait(golang, "b", channelOf("k"), forever)
	p.waits(500 * time.Millisecond)
	released := w.release(java, "a")
	w.between("Go acquires after", p.gets().end.Sub(released.start), 0, 2*time.Second+soon)
	p = w.wait(java, "a", channelOf("k"), forever)
	p.waits(500 * time.Millisecond)
	released = w.release(golang, "b")
	w.between("Java acquires after", p.gets().end.Sub(released.start), 500*time.Millisecond, 6*time.Second+soon)
	w.release(java, "a")
	w.clean()
}
