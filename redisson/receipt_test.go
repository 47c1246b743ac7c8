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
		c := &Client{id: "id", timeout: DefaultTimeout}
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
		if r := c.request("k"); r.slot == again.slot {
			t.Errorf("a slot in doubt was used again at once: %+v", r)
		}
		time.Sleep(2 * receiptLife)
		if r := c.request("k"); r.slot != again.slot {
			t.Errorf("the slot was not used again after the receipt's life: %+v", r)
		}
	})
}

// An outage leaves a slot at rest for each request that was not answered. The next requests do not look at them one by one.
func TestManySlotsAtRest(t *testing.T) {
	const many = 50_000
	c := &Client{id: "id", timeout: DefaultTimeout}
	all := make([]request, many)
	start := time.Now()
	for i := range all {
		all[i] = c.request("k")
	}
	for _, r := range all {
		c.conclude(r, true)
	}
	for range many {
		c.conclude(c.request("k"), false)
	}
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("%d requests in doubt and as many later took %v", many, d)
	}
}

func TestLatchSlot(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	c := &Client{ctx: t.Context(), timeout: time.Second, topology: pubsub.NewTopology(cluster, pubsub.Auto)}
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"done", true}, {"a}b", false}, {"{a}b", false}, {"a:{b}:c", false}, {"{}x", false}, {"готово", true}} {
		if err := c.checkSlot(tt.name, latchChannel(tt.name)); (err == nil) != tt.ok {
			t.Errorf("checkSlot(%q) = %v, want ok = %v", tt.name, err, tt.ok)
		}
	}
}
