package redisson

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// ShardedMode is the kind of channels on which releases are announced in a Redis Cluster, Redisson's
// shardedSubscriptionMode. Peers must agree: who listens to the other kind gets the lock only when its lease is over or
// a third of the watchdog's timeout has passed. Redisson before 3.22.0 knows only ShardedOff.
type ShardedMode int

// The modes of ShardedPubSub.
const (
	ShardedAuto ShardedMode = iota // sharded if the cluster answers PUBSUB SHARDNUMSUB, as Redis 7 does; the default
	ShardedOn                      // SPUBLISH and SSUBSCRIBE; Redis 7 is needed
	ShardedOff                     // PUBLISH and SUBSCRIBE, which a cluster passes on to all of its nodes
)

// errCrossSlot is why a name is refused in a cluster.
var errCrossSlot = errors.New("redisson: the braces in this name put the lock and what belongs to it into different slots of the cluster")

// topology is what a client must know of the servers behind it.
type topology struct {
	cluster *redis.ClusterClient // nil if there is one server at a time
	mode    ShardedMode
	found   atomic.Int32 // the mode that ShardedAuto has come to, or 0
}

// sharded tells whether releases are announced on sharded channels. It asks the cluster once, when that is first needed.
func (t *topology) sharded(ctx context.Context) (bool, error) {
	if t.cluster == nil {
		return false, nil
	}
	mode := t.mode
	if mode == ShardedAuto {
		mode = ShardedMode(t.found.Load())
	}
	if mode != ShardedAuto {
		return mode == ShardedOn, nil
	}
	node, err := t.cluster.MasterForKey(ctx, "latchkey") // any one
	if err == nil {
		err = node.PubSubShardNumSub(ctx).Err()
	}
	mode = ShardedOn
	if isReply(err) && !repeatable(err) {
		mode, err = ShardedOff, nil
	}
	if err != nil {
		t.doubt(err)
		return false, err
	}
	t.found.Store(int32(mode))
	return mode == ShardedOn, nil
}

// publish is the command that scripts announce a release with.
func (t *topology) publish(ctx context.Context) (string, error) {
	sharded, err := t.sharded(ctx)
	if sharded {
		return "spublish", err
	}
	return "publish", err
}

// doubt has the map of the cluster read again when an error may mean that it has changed. go-redis does so by itself only
// for redirections.
func (t *topology) doubt(err error) {
	if err != nil && (!isReply(err) || repeatable(err)) {
		t.reload()
	}
}

// stale tells whether err is that of a node which the map of the cluster may name in vain: another one has its slots, or
// will have, and go-redis asks nobody else.
func (t *topology) stale(err error) bool {
	return t.cluster != nil && !isReply(err) && !mayHaveRun(err) && !errors.Is(err, redis.ErrClosed)
}

// isReply tells whether err is what a server said.
func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// reload has the map of the cluster read again, in the background.
func (t *topology) reload() {
	if t.cluster != nil {
		t.cluster.ReloadState(context.Background())
	}
}

// check refuses a name, as mapped, whose derived names are in other slots of the cluster than itself. All that follow
// Redisson's two rules are looked at; those that don't are given.
func (t *topology) check(name string, derived ...string) error {
	if t.cluster == nil {
		return nil
	}
	for _, d := range append(derived, prefixed("p", name), suffixed(name, "s")) {
		if slotOf(d) != slotOf(name) {
			return fmt.Errorf("%w: an opening brace needs a closing one behind it, with something in between", errCrossSlot)
		}
	}
	return nil
}

const slotCount = 16384

// slotOf is the slot of a key or a sharded channel: CRC-16/XMODEM of its hash tag, or of all of it.
func slotOf(key string) int {
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
	return int(crc) % slotCount
}
