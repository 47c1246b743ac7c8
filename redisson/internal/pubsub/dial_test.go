package pubsub

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// The client's own options stay as they are.
func TestDedicatedCopies(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{MinIdleConns: 3})
	defer rdb.Close()
	before := *rdb.Options()
	o := dedicated(t.Context(), rdb.Options())
	after := rdb.Options()
	if o.MinIdleConns != 0 || after.MinIdleConns != 3 || after.ReadTimeout != before.ReadTimeout {
		t.Errorf("MinIdleConns %d, ReadTimeout %v after a copy was made", after.MinIdleConns, after.ReadTimeout)
	}
}
