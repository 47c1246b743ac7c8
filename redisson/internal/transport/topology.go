package transport

import (
	"context"
	"maps"
	"slices"

	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// Topology is what is known of the servers, and how they are asked to announce something.
type Topology struct{ *pubsub.Topology }

// Publish is the command that scripts announce a release with, as the argument that it becomes.
func (t Topology) Publish(ctx context.Context) (command any, err error) {
	sharded, err := t.Sharded(ctx)
	if sharded {
		return "spublish", err
	}
	return "publish", err
}

// ByMaster cuts what concerns keys into parts, each for one master. A single server gets all as it is: there can be very many.
func ByMaster[T any](t Topology, all []T, key func(T) string) (parts [][]T) {
	if !t.Mapped() && len(all) > 0 {
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
