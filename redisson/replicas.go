package redisson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/internal/reply"
	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is why an Acquire fails that too few replicas have confirmed within the time given to SyncReplicas.
// The lock is not held: it was given back.
var ErrNotReplicated = errors.New("redisson: the lock was not confirmed by enough replicas")

// syncReplicas is what SyncReplicas asks for; the zero value asks for nothing.
type syncReplicas struct {
	count   int
	timeout time.Duration
}

func (s syncReplicas) check(clientTimeout time.Duration) error {
	switch {
	case s == syncReplicas{}:
		return nil
	case s.count < 1:
		return fmt.Errorf("redisson: SyncReplicas of %d replicas", s.count)
	case s.timeout < time.Millisecond || s.timeout >= clientTimeout:
		return fmt.Errorf("redisson: SyncReplicas within %v: it must be at least 1ms and less than the client's timeout, %v", s.timeout, clientTimeout)
	}
	return nil
}

// processConfirmed sends a command that takes a lock, with WAIT in the same pipeline, because that speaks of the writes of
// its own connection; in a cluster it must be one to the master of the lock's slot, so that a redirection is not followed
// but ends the attempt.
func (r *road) processConfirmed(ctx context.Context, key string, cmd single) {
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
	wait := single{redis.NewCmd(ctx, "wait", r.replicas.count, r.replicas.timeout.Milliseconds())}
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
	case confirmed < r.replicas.count:
		cmd.SetErr(fmt.Errorf("%w: %d of %d within %v", ErrNotReplicated, confirmed, r.replicas.count, r.replicas.timeout))
	}
}
