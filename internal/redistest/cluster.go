package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	slots = 16384
	// busOffset is how far the port on which nodes talk to each other is above the first. Redis before 7.0 has no
	// setting for it.
	busOffset = 10000
	// nodeTimeout is after how many milliseconds of silence the nodes of a cluster take one of them for dead. Where no replica can
	// take over, they are more patient, as a machine that is busy with many tests may well not hear a node for half a second.
	nodeTimeout, patientTimeout = "500", "3000"
	// settleTimeout bounds how long a change may take to be known everywhere in a cluster or a group of sentinels.
	settleTimeout = 30 * time.Second
)

// Cluster is a Redis Cluster for one test: three masters, each with an equal part of the slots, and perhaps a replica each.
type Cluster struct {
	Masters []*Node
	// Replicas[i] is the replica of Masters[i], or there are none.
	Replicas []*Node
	// Sharded says that it has sharded channels, as from Redis 7.0 on.
	Sharded bool
}

// Node is a server of a cluster.
type Node struct {
	*Server
	// ID is its name in the cluster.
	ID string
	// Admin is a client of this node alone, for what a test asks or does there.
	Admin *redis.Client
}

// StartCluster runs three masters with so many replicas each: 0 or 1. It is like Start in all else, and args go to each node.
func StartCluster(tb testing.TB, replicas int, args ...string) *Cluster {
	tb.Helper()
	c := &Cluster{}
	timeout := patientTimeout
	if replicas > 0 {
		timeout = nodeTimeout
	}
	args = append([]string{"--cluster-node-timeout", timeout}, args...)
	for range 3 {
		c.Masters = append(c.Masters, startNode(tb, args))
	}
	for range 3 * replicas {
		c.Replicas = append(c.Replicas, startNode(tb, args))
	}
	for i, n := range c.Masters {
		n.Do(tb, append([]any{"cluster", "addslots"}, numbers(i*slots/3, (i+1)*slots/3)...)...)
		n.Do(tb, "cluster", "set-config-epoch", i+1)
	}
	for _, n := range c.nodes()[1:] {
		host, port := n.HostPort()
		c.Masters[0].Do(tb, "cluster", "meet", host, port)
	}
	c.await(tb, "all nodes know each other", func(n *Node) bool {
		known := n.Do(tb, "cluster", "info").(string)
		// A node that still shakes hands is known, and its slots are not; without full coverage, that is a state to be content with.
		return strings.Contains(known, "cluster_state:ok") && strings.Contains(known, fmt.Sprintf("cluster_known_nodes:%d", len(c.nodes()))) &&
			strings.Contains(known, fmt.Sprintf("cluster_slots_ok:%d", slots))
	})
	for i, n := range c.Replicas {
		n.Do(tb, "cluster", "replicate", c.Masters[i].ID)
	}
	for i, n := range c.Replicas {
		c.AwaitReplica(tb, n)
		c.await(tb, "the replica is known", func(other *Node) bool { return other.serving(tb, c.Masters[i]) == 2 })
	}
	c.Sharded = c.Masters[0].Has(tb, "ssubscribe")
	return c
}

func startNode(tb testing.TB, args []string) *Node {
	tb.Helper()
	s := start(tb, []int{busOffset}, append([]string{"--cluster-enabled", "yes",
		"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0"}, args...))
	n := &Node{Server: s, Admin: s.Client(tb)}
	n.ID = n.Do(tb, "cluster", "myid").(string)
	return n
}

// numbers are those from from to before to.
func numbers(from, to int) (all []any) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

func (c *Cluster) nodes() []*Node { return append(append([]*Node{}, c.Masters...), c.Replicas...) }

// Client returns a client of the cluster, closed when the test ends. The changes are applied to its options.
func (c *Cluster) Client(tb testing.TB, changes ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	tb.Helper()
	opts := &redis.ClusterOptions{}
	for _, n := range c.Masters {
		opts.Addrs = append(opts.Addrs, n.Addr)
	}
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewClusterClient(opts)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Owner returns the index of the master that had the key's slot when the cluster was made.
func (c *Cluster) Owner(tb testing.TB, key string) (index, slot int) {
	tb.Helper()
	slot = int(c.Masters[0].Do(tb, "cluster", "keyslot", key).(int64))
	for i := range c.Masters {
		if slot < (i+1)*slots/3 {
			return i, slot
		}
	}
	panic("no such slot")
}

// OpenSlot begins to move a slot: from then on, clients look at the new master for keys that the old one does not have.
func (c *Cluster) OpenSlot(tb testing.TB, slot int, from, to *Node) {
	tb.Helper()
	to.Do(tb, "cluster", "setslot", slot, "importing", from.ID)
	from.Do(tb, "cluster", "setslot", slot, "migrating", to.ID)
}

// CloseSlot moves the keys of an open slot and ends its move.
func (c *Cluster) CloseSlot(tb testing.TB, slot int, from, to *Node) {
	tb.Helper()
	host, port := to.HostPort()
	for _, key := range from.Do(tb, "cluster", "getkeysinslot", slot, 1000).([]any) {
		from.Do(tb, "migrate", host, port, key, 0, 5000)
	}
	to.Do(tb, "cluster", "setslot", slot, "node", to.ID)
	for _, n := range c.Masters {
		n.Do(tb, "cluster", "setslot", slot, "node", to.ID)
	}
}

// Failover has the replica of Masters[i] take its place, as an operator does, and waits until it has.
func (c *Cluster) Failover(tb testing.TB, i int) {
	tb.Helper()
	c.Replicas[i].Do(tb, "cluster", "failover")
	c.AwaitMaster(tb, c.Replicas[i])
}

// AwaitMaster waits until n has become a master.
func (c *Cluster) AwaitMaster(tb testing.TB, n *Node) {
	tb.Helper()
	n.awaitReplication(tb, "role:master")
}

// AwaitReplica waits until n is a replica that has all its master has.
func (c *Cluster) AwaitReplica(tb testing.TB, n *Node) {
	tb.Helper()
	n.awaitReplication(tb, "master_link_status:up")
}

// serving counts the servers of master's slots, as n knows them.
func (n *Node) serving(tb testing.TB, master *Node) int {
	tb.Helper()
	for _, part := range n.Do(tb, "cluster", "slots").([]any) {
		if servers := part.([]any)[2:]; servers[0].([]any)[2] == master.ID {
			return len(servers)
		}
	}
	return 0
}

// Do asks this node and fails the test on an error.
func (n *Node) Do(tb testing.TB, args ...any) any {
	tb.Helper()
	got, err := n.Admin.Do(context.Background(), args...).Result()
	if err != nil {
		tb.Fatalf("redistest: node %s: %v: %v", n.Addr, args, err)
	}
	return got
}

func (c *Cluster) await(tb testing.TB, what string, ok func(*Node) bool) {
	tb.Helper()
	for _, n := range c.nodes() {
		await(tb, n.Addr+": "+what, func() bool { return ok(n) })
	}
}

// awaitReplication waits until the server says that of its replication.
func (s *Server) awaitReplication(tb testing.TB, says string) {
	tb.Helper()
	admin := s.Client(tb)
	await(tb, s.Addr+": "+says, func() bool {
		return strings.Contains(admin.Info(context.Background(), "replication").Val(), says)
	})
}

// await waits until ok.
func await(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(settleTimeout); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			tb.Fatalf("redistest: not within %v: %s", settleTimeout, what)
		}
	}
}
