package redisson

import (
	"context"
	"errors"
	"fmt"

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

// errCrossSlot is why a name is refused in a cluster, and where a map puts its keys at different servers.
var errCrossSlot = errors.New("redisson: the braces in this name put the lock and what belongs to it into different slots of the cluster")

// checkSlot refuses a name, as mapped, whose derived names are in other slots of the cluster than itself, or at other servers where there
// is a map and no cluster. All that follow Redisson's two rules are looked at; those that don't are given.
func (c *Client) checkSlot(name string, derived ...string) error {
	if !c.topology.Mapped() {
		return nil
	}
	for _, d := range append(derived, prefixed("p", name), suffixed(name, "s")) {
		if pubsub.Slot(d) == pubsub.Slot(name) {
			continue
		}
		var err error
		if c.topology.Drawn {
			ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
			_, err = c.topology.Sharded(ctx) // what the servers are
			cancel()
		}
		switch {
		case err != nil:
			return fmt.Errorf("redisson: %w", err)
		case c.topology.Cluster() || c.topology.Master(d) != c.topology.Master(name):
			return fmt.Errorf("%w: an opening brace needs a closing one behind it, with something in between", errCrossSlot)
		}
	}
	return nil
}
