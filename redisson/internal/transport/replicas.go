package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is why a call failed that too few replicas have confirmed in time.
var ErrNotReplicated = errors.New("redisson: the lock was not confirmed by enough replicas")

// Replicas says how many have to confirm what a script takes, and within what time. The zero value asks for none.
type Replicas struct {
	Count   int
	Timeout time.Duration
}

// processConfirmed sends a command that takes a lock, with WAIT in the same pipeline, because that speaks of the writes of
// its own connection; in a cluster it must be one to the master of the lock's slot, so that a redirection is not followed
// but ends the attempt.
func (r *Road) processConfirmed(ctx context.Context, key string, cmd single) {
	pipe := r.rdb.Pipeline()
	if cluster := r.topology.Cluster(); cluster != nil {
		node, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			cmd.SetErr(err)
			return
		}
		pipe = node.Pipeline()
	}
	_ = pipe.Process(ctx, cmd) // queues it
	wait := single{redis.NewCmd(ctx, "wait", r.replicas.Count, r.replicas.Timeout.Milliseconds())}
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx) // each command has its own error
	values, err := reply.Ints(cmd.Cmd, new([]int64))
	if err != nil || values[0] != 1 {
		return
	}
	confirmed, err := wait.Int()
	switch {
	case err != nil:
		cmd.SetErr(fmt.Errorf("%w: %w", ErrNotReplicated, err))
	case confirmed < r.replicas.Count:
		cmd.SetErr(fmt.Errorf("%w: %d of %d within %v", ErrNotReplicated, confirmed, r.replicas.Count, r.replicas.Timeout))
	}
}
