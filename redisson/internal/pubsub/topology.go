package pubsub

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// Mode is the kind of channels that a client uses in a Redis Cluster.
type Mode int

// The modes of a Topology.
const (
	Auto Mode = iota // sharded if the cluster answers PUBSUB SHARDNUMSUB, as Redis 7 does
	On               // sharded: SPUBLISH and SSUBSCRIBE
	Off              // classic: PUBLISH and SUBSCRIBE, which a cluster passes on to all of its nodes
)

// Topology is what a client knows of the servers behind it: whether there is a cluster, which of its masters has a key, and
// the kind of its channels. It is safe for concurrent use.
type Topology struct {
	client  *redis.Client        // of one server at a time
	cluster *redis.ClusterClient // nil for one server at a time
	mode    Mode
	found   atomic.Int32 // what Auto has come to; Auto as long as that is not known
	mapped  atomic.Bool  // go-redis has a map of the cluster, so that it names a master without asking the network
}

// NewTopology returns what there is to know about rdb before anything was asked.
func NewTopology(rdb redis.UniversalClient, mode Mode) *Topology {
	client, _ := rdb.(*redis.Client)
	cluster, _ := rdb.(*redis.ClusterClient)
	return &Topology{client: client, cluster: cluster, mode: mode}
}

// Cluster returns the client of the cluster, or nil if there is one server at a time.
func (t *Topology) Cluster() *redis.ClusterClient { return t.cluster }

// Sharded reports whether releases are announced on sharded channels. The first call asks the cluster, for its map and, with
// Auto, for the kind of its channels, and so may block as long as a command. Later calls know the answer.
func (t *Topology) Sharded(ctx context.Context) (bool, error) {
	if sharded, known := t.known(); known {
		return sharded, nil
	}
	err := t.ask(ctx)
	if err != nil {
		t.Doubt(err)
	}
	sharded, _ := t.known()
	return sharded, err
}

// known is Sharded as far as it is known, and asks nobody.
func (t *Topology) known() (sharded, known bool) {
	if t.cluster == nil {
		return false, true
	}
	mode := t.mode
	if mode == Auto {
		mode = Mode(t.found.Load())
	}
	return mode == On, mode != Auto && t.mapped.Load()
}

// ask finds out what known does not know. Any key will do.
func (t *Topology) ask(ctx context.Context) error {
	node, err := t.cluster.MasterForKey(ctx, "latchkey")
	if err != nil {
		return err
	}
	t.mapped.Store(true)
	if t.mode != Auto {
		return nil
	}
	found := On
	err = node.PubSubShardNumSub(ctx).Err()
	if reply.IsReply(err) && !reply.Classify(err).Repeat {
		found, err = Off, nil
	}
	if err == nil {
		t.found.Store(int32(found))
	}
	return err
}

// Master returns the address of the master that has the key, as far as is known. It is empty if there is one server at a
// time, and before Sharded has first succeeded. Master never waits for the network.
func (t *Topology) Master(key string) string {
	if t.cluster == nil {
		return ""
	}
	if node := t.Node(key); node != nil {
		return node.Options().Addr
	}
	return ""
}

// Node returns the client of the one server, or of the master that has the key: nil as long as that is not known. It never waits
// for the network. go-redis blocks in MasterForKey only until it has its first map of the cluster; newer ones it reads in the
// background.
func (t *Topology) Node(key string) *redis.Client {
	if t.cluster == nil || !t.mapped.Load() {
		return t.client
	}
	node, err := t.cluster.MasterForKey(context.Background(), key)
	if err != nil {
		t.Doubt(err)
		return nil
	}
	return node
}

// Doubt has the map of the cluster read again if err may mean that it has changed. By itself, go-redis does so only for
// redirections. A nil err is no reason for doubt.
func (t *Topology) Doubt(err error) {
	if err != nil && (!reply.IsReply(err) || reply.Classify(err).Repeat) {
		t.Reload()
	}
}

// Stale reports whether err is that of a node which the map of the cluster may name in vain: another one has its slots, or
// will have, and go-redis asks nobody else.
func (t *Topology) Stale(err error) bool {
	return err != nil && t.cluster != nil && !reply.IsReply(err) && !reply.MayHaveRun(err) && !errors.Is(err, redis.ErrClosed)
}

// Reload has the map of the cluster read again, in the background.
func (t *Topology) Reload() {
	if t.cluster != nil {
		t.cluster.ReloadState(context.Background())
	}
}

// SlotCount is how many slots a cluster has.
const SlotCount = 16384

// Slot returns the slot of a key or a sharded channel: CRC-16/XMODEM of its hash tag, or of all of it if it has none.
func Slot(key string) int {
	if _, tail, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tail, "}"); ok && tag != "" {
			key = tag
		}
	}
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % SlotCount
}
