package redisson

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestSlotOf(t *testing.T) {
	c := redistest.StartCluster(t, 0)
	for _, key := range []string{"", "a", "order:1", "{a}b", "x{y}z", "a{b", "a}b", "{}x", "a{}{b}", "{{a}b}", "ключ"} {
		if want := c.Masters[0].Do(t, "cluster", "keyslot", key); int64(slotOf(key)) != want {
			t.Errorf("slotOf(%q) = %d, want %d", key, slotOf(key), want)
		}
	}
	t.Run("stale map", func(t *testing.T) { testStaleMap(t, c) })
}

// A hub whose map of the cluster is old asks the wrong master, is told so, and finds the right one.
func testStaleMap(t *testing.T, c *redistest.Cluster) {
	rdb := c.Client(t, func(o *redis.ClusterOptions) { o.ContextTimeoutEnabled = true })
	ctx, cancel := context.WithCancel(t.Context())
	h := newHub(ctx, rdb, &topology{cluster: rdb, mode: ShardedOn})
	defer h.close()
	defer cancel()
	var names []string
	for i := 0; len(names) < 10; i++ { // all from one master to one other, as a cluster settles competing moves only in time
		if at, _ := c.Owner(t, fmt.Sprint("stale", i)); at == 0 {
			names = append(names, lockChannel(fmt.Sprint("stale", i)))
		}
	}
	if _, err := rdb.MasterForKey(ctx, names[0]); err != nil { // reads the map
		t.Fatal(err)
	}
	for _, name := range names {
		_, slot := c.Owner(t, name)
		c.OpenSlot(t, slot, c.Masters[0], c.Masters[1])
		c.CloseSlot(t, slot, c.Masters[0], c.Masters[1])
	}
	for _, name := range names {
		h.follow(name)
		defer h.unfollow(name)
	}
	for _, name := range names {
		deadline := time.After(10 * time.Second)
		for {
			changed, live := h.generation(name)
			if live {
				break
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%s is not subscribed", name)
			}
		}
	}
}
