package redisson

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
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

// topology adds to what is known of the servers how Redisson's names fit on them.
type topology struct{ *pubsub.Topology }

// publish is the command that scripts announce a release with, as the argument that it becomes.
func (t topology) publish(ctx context.Context) (command any, err error) {
	sharded, err := t.Sharded(ctx)
	if sharded {
		return "spublish", err
	}
	return "publish", err
}

// byMaster cuts tasks into parts, each for one master. A single server gets them as they are: there can be very many.
func (t topology) byMaster(tasks []task) (parts [][]task) {
	if t.Cluster() == nil && len(tasks) > 0 {
		return [][]task{tasks}
	}
	of := map[string][]task{}
	for _, task := range tasks {
		master := t.Master(task.call.keys[0])
		of[master] = append(of[master], task)
	}
	for _, master := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, of[master])
	}
	return parts
}

// keysByMaster is byMaster for keys.
func (t topology) keysByMaster(keys []string) (parts [][]string) {
	if t.Cluster() == nil && len(keys) > 0 {
		return [][]string{keys}
	}
	of := map[string][]string{}
	for _, key := range keys {
		master := t.Master(key)
		of[master] = append(of[master], key)
	}
	for _, master := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, of[master])
	}
	return parts
}

// check refuses a name, as mapped, whose derived names are in other slots of the cluster than itself. All that follow
// Redisson's two rules are looked at; those that don't are given.
func (t topology) check(name string, derived ...string) error {
	if t.Cluster() == nil {
		return nil
	}
	for _, d := range append(derived, prefixed("p", name), suffixed(name, "s")) {
		if pubsub.Slot(d) != pubsub.Slot(name) {
			return fmt.Errorf("%w: an opening brace needs a closing one behind it, with something in between", errCrossSlot)
		}
	}
	return nil
}
