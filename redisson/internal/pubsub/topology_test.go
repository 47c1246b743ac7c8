package pubsub

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// said is an answer of a server.
type said string

func (e said) Error() string { return string(e) }
func (said) RedisError()     {}

// An error that may come of a change has the map of the cluster read again, and only one that names a dead node is stale.
func TestDoubt(t *testing.T) {
	for _, tt := range []struct {
		err           error
		reload, stale bool
	}{
		{nil, false, false},
		{io.EOF, true, false},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true, true},
		{redis.ErrPoolTimeout, true, true},
		{redis.ErrClosed, true, false},
		{said("CLUSTERDOWN The cluster is down"), true, false},
		{said("WRONGTYPE Operation against a key"), false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newFakeCluster()
			top := NewTopology(c.client(t), On)
			top.Drawn = false
			if _, err := top.Sharded(t.Context()); err != nil {
				t.Fatal(err)
			}
			top.Doubt(tt.err)
			time.Sleep(time.Second)
			if n := c.readings(); (n == 2) != tt.reload {
				t.Errorf("%v: the map was read %d times", tt.err, n)
			}
			if got := top.Stale(tt.err); got != tt.stale {
				t.Errorf("Stale(%v) = %v, want %v", tt.err, got, tt.stale)
			}
		})
	}
	rdb := redis.NewClient(&redis.Options{})
	defer rdb.Close()
	one := NewTopology(rdb, Auto)
	one.Doubt(io.EOF)
	if one.Stale(&net.OpError{Op: "dial", Err: errors.New("refused")}) {
		t.Error("a single server is in no map")
	}
}

// Until Sharded has succeeded, Master knows nothing, and does not ask.
func TestMasterDoesNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster()
		top := NewTopology(c.client(t), Off)
		top.Drawn = false
		if got := top.Master("k"); got != "" || c.readings() != 0 {
			t.Errorf("Master = %q after %d questions, want none", got, c.readings())
		}
		if sharded, err := top.Sharded(t.Context()); sharded || err != nil {
			t.Errorf("Sharded = %v, %v", sharded, err)
		}
		if got := top.Master("k"); got != addrA || c.readings() != 1 {
			t.Errorf("Master = %q after %d questions, want %q after one", got, c.readings(), addrA)
		}
	})
}

// Auto finds out what the cluster can do, once it answers.
func TestAuto(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer string
		want   bool
	}{
		{"Redis 7", "*0\r\n", true},
		{"Redis 6", "-ERR Unknown subcommand or wrong number of arguments\r\n", false},
		{"an ACL that says no", "-NOPERM this user has no permissions\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFakeCluster()
				c.a.set(&c.a.refuses, true)
				c.a.shardNumSub = tt.answer
				top := NewTopology(c.client(t), Auto)
				top.Drawn = false
				if _, err := top.Sharded(t.Context()); err == nil {
					t.Error("Sharded knows without an answer")
				}
				c.a.set(&c.a.refuses, false)
				for range 2 {
					if got, err := top.Sharded(t.Context()); got != tt.want || err != nil {
						t.Errorf("Sharded = %v, %v, want %v", got, err, tt.want)
					}
				}
				if n := len(c.a.takeTrace()); n != 1 {
					t.Errorf("the cluster was asked %d times", n)
				}
			})
		})
	}
}

// What a map was drawn of says whether it is a cluster, to users who may do nothing else as well. Where nobody says it, it is taken for one.
func TestWhatAMapIsOf(t *testing.T) {
	t.Parallel()
	cluster, noHello, helpless := []string{"--cluster-enabled", "yes"}, []string{"--rename-command", "HELLO", ""}, []string{"--user", "worker", "on", ">secret", "-@all"}
	for _, tt := range []struct {
		name    string
		args    []string
		user    string
		cluster bool
	}{
		{"a server", nil, "", false},
		{"a user without rights", helpless, "worker", false},
		{"no HELLO", noHello, "", false},
		{"no HELLO and no INFO", slices.Concat(noHello, helpless), "worker", true},
		{"a node", cluster, "", true},
		{"a node without HELLO", slices.Concat(cluster, noHello), "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, tt.args...)
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Username: tt.user, Password: "secret"[:len(tt.user)], ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: SlotCount - 1, Nodes: []redis.ClusterNode{{Addr: s.Addr}}}}, nil
			}})
			defer rdb.Close()
			for _, mode := range []Mode{Auto, On, Off} {
				top := NewTopology(rdb, mode)
				sharded, err := top.Sharded(t.Context())
				if err != nil || top.Cluster() != tt.cluster || sharded && !tt.cluster {
					t.Errorf("mode %v: Cluster = %v, Sharded = %v, %v, want Cluster = %v", mode, top.Cluster(), sharded, err, tt.cluster)
				}
			}
		})
	}
}
