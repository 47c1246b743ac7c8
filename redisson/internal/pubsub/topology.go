package pubsub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// none says that there is no cluster: channels are classic, and no server passes messages on to another master.
const none = Off + 1

// Topology is what a client knows of the servers behind it: whether they are a cluster, which master has a key, and the
// kind of their channels. Its client has one server at a time, or a map of masters by slot. Servers that gave the map
// themselves are a cluster. Sentinels or the program may have drawn it as well; then the Topology asks a server whether
// it is in a cluster. A Topology is safe for concurrent use.
type Topology struct {
	client *redis.Client        // of one server at a time
	mapped *redis.ClusterClient // or of those in a map
	Drawn  bool                 // by sentinels or the program: servers may be in no cluster
	mode   Mode
	found  atomic.Int32 // the Mode that servers really have; Auto as long as there is no map, or they have not said
}

// NewTopology returns the Topology of rdb, before any question to its servers.
func NewTopology(rdb redis.UniversalClient, mode Mode) *Topology {
	t := &Topology{mode: mode}
	t.client, _ = rdb.(*redis.Client)
	if t.mapped, _ = rdb.(*redis.ClusterClient); t.mapped == nil {
		t.found.Store(int32(none))
	} else {
		t.Drawn = t.mapped.Options().ClusterSlots != nil
	}
	return t
}

// Mapped reports whether there is a map of masters.
func (t *Topology) Mapped() bool { return t.mapped != nil }

// Cluster reports whether the servers are a cluster. As long as that is not known, those in a map are taken for one.
func (t *Topology) Cluster() bool { return Mode(t.found.Load()) != none }

// Local reports whether messages are heard only at the master of their channel, of several that there may be.
func (t *Topology) Local(ctx context.Context) (bool, error) {
	sharded, err := t.Sharded(ctx)
	return t.Mapped() && (sharded || !t.Cluster()), err
}

// Sharded reports whether releases are announced on sharded channels. The first call asks for the map and the kind of
// the servers, and so may block as long as a few commands. Later calls know the answer.
func (t *Topology) Sharded(ctx context.Context) (sharded bool, err error) {
	if t.kind() == Auto {
		err = t.ask(ctx)
		t.Doubt(err)
	}
	return t.kind() == On, err
}

// Publish is the command that scripts announce a release with, as the argument that it becomes. It is in capitals where
// its answer does not count all receivers: a node of a cluster knows of its own subscribers only.
func (t *Topology) Publish(ctx context.Context) (command any, err error) {
	sharded, err := t.Sharded(ctx)
	switch {
	case sharded:
		return "spublish", err
	case t.Cluster():
		return "PUBLISH", err
	}
	return "publish", err
}

// kind is the kind found so far; it asks nobody.
func (t *Topology) kind() Mode { return Mode(t.found.Load()) }

// ask finds out the kind. Any key will do.
func (t *Topology) ask(ctx context.Context) error {
	node, err := t.mapped.MasterForKey(ctx, "latchkey")
	if err != nil {
		return err
	}
	found, clustered := t.mode, true
	if t.Drawn {
		clustered, err = inCluster(ctx, node)
	}
	switch {
	case err != nil:
	case !clustered:
		found = none
	case found == Auto:
		found = On
		err = node.PubSubShardNumSub(ctx).Err()
		if reply.IsReply(err) && !reply.Classify(err).Repeat {
			found, err = Off, nil
		}
	}
	if err == nil {
		t.found.Store(int32(found))
	}
	return err
}

// inCluster reports whether a server says that it is one of a cluster. Each user may ask HELLO. Where there is neither that nor INFO, what is
// in a map is taken for a cluster.
func inCluster(ctx context.Context, node *redis.Client) (bool, error) {
	for _, question := range [][]any{{"hello"}, {"info", "cluster"}} {
		said, err := node.Do(ctx, question...).Result()
		if err == nil {
			text := fmt.Sprint(said)
			return slices.ContainsFunc([]string{"mode:cluster", "mode cluster", "cluster_enabled:1"}, func(s string) bool { return strings.Contains(text, s) }), nil
		}
		if !reply.IsReply(err) || reply.Classify(err).Repeat {
			return false, err
		}
	}
	return true, nil
}

// Master returns the address of the master that has the key, as far as is known. It is empty if there is one server at a
// time, and before Sharded has first succeeded. Master never waits for the network.
func (t *Topology) Master(key string) string {
	if node := t.Node(key); t.mapped != nil && node != nil {
		return node.Options().Addr
	}
	return ""
}

// Node returns the client of the one server, or of the master that has the key: nil as long as that is not known. It never waits
// for the network. go-redis blocks in MasterForKey only until it has its first map; newer ones it reads in the
// background.
func (t *Topology) Node(key string) *redis.Client {
	if t.mapped == nil || t.kind() == Auto {
		return t.client
	}
	node, err := t.mapped.MasterForKey(context.Background(), key)
	if err != nil {
		t.Doubt(err)
		return nil
	}
	return node
}

// ByMaster cuts a list of things with keys into parts, each for one master. A single server gets all as it is: there
// can be very many.
func ByMaster[T any](t *Topology, all []T, key func(T) string) (parts [][]T) {
	if t.mapped == nil && len(all) > 0 {
		return [][]T{all}
	}
	of := map[string][]T{}
	for _, one := range all {
		master := t.Master(key(one))
		of[master] = append(of[master], one)
	}
	for _, master := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, of[master])
	}
	return parts
}

// Doubt has the map read again if err may mean that it has changed. By itself, go-redis does so only for
// redirections. A nil err is no reason for doubt.
func (t *Topology) Doubt(err error) {
	if err != nil && (!reply.IsReply(err) || reply.Classify(err).Repeat) {
		t.Reload()
	}
}

// Stale reports whether err is that of a node which the map may name in vain: another one has its slots, or
// will have, and go-redis asks nobody else.
func (t *Topology) Stale(err error) bool {
	return err != nil && t.Mapped() && !reply.IsReply(err) && !reply.MayHaveRun(err) && !errors.Is(err, redis.ErrClosed)
}

// Reload has the map read again, in the background.
func (t *Topology) Reload() {
	if t.Mapped() {
		t.mapped.ReloadState(context.Background())
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
