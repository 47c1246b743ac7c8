package redisson

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/redis/go-redis/v9"
)

// Slots are used again as soon as that is safe, so that there are no more receipts than requests at a time.
func TestReceiptSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{id: "id", settings: settings{timeout: DefaultTimeout}}
		first, second := c.request("k"), c.request("k")
		if first.slot == second.slot || second.number <= first.number {
			t.Errorf("requests at a time: %+v and %+v, want two slots and growing numbers", first, second)
		}
		if want := "latchkey_receipt:{k}:id:0"; first.receipt != want {
			t.Errorf("receipt key %q, want %q", first.receipt, want)
		}
		c.conclude(first, false)
		again := c.request("k")
		if again.slot != first.slot || again.number <= second.number {
			t.Errorf("next request: %+v, want slot %d and a new number", again, first.slot)
		}
		c.conclude(again, true)
		third := c.request("k")
		if third.slot == again.slot {
			t.Errorf("a slot in doubt was used again at once: %+v", third)
		}
		time.Sleep(2 * receiptLife)
		if r := c.request("k"); r.slot == again.slot {
			t.Errorf("a slot in doubt was used again later: %+v", r)
		}
		if undo, next := third.undo(), c.request("k"); undo.number <= third.number || undo.number >= next.number || undo.receipt != third.receipt {
			t.Errorf("undo of %+v: %+v, and the next request: %+v", third, undo, next)
		}
	})
}

func TestLatchSlot(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	c := &Client{ctx: t.Context(), settings: settings{timeout: time.Second}, topology: pubsub.NewTopology(cluster, pubsub.Auto)}
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"done", true}, {"a}b", false}, {"{a}b", false}, {"a:{b}:c", false}, {"{}x", false}, {"готово", true}} {
		if err := c.checkSlot(tt.name, latchChannel(tt.name)); (err == nil) != tt.ok {
			t.Errorf("checkSlot(%q) = %v, want ok = %v", tt.name, err, tt.ok)
		}
	}
}
