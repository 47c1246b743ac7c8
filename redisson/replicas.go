package redisson

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotReplicated is why an Acquire fails that too few replicas have confirmed within the time given to SyncReplicas.
// The lock is not held: it was given back.
var ErrNotReplicated = errors.New("redisson: the lock was not confirmed by enough replicas")

// syncReplicas is what SyncReplicas asks for; without replicas nothing is asked.
type syncReplicas struct {
	replicas int
	timeout  time.Duration
}

func (s syncReplicas) check(clientTimeout time.Duration) error {
	switch {
	case s == syncReplicas{}:
		return nil
	case s.replicas < 1:
		return fmt.Errorf("redisson: SyncReplicas of %d replicas", s.replicas)
	case s.timeout < time.Millisecond || s.timeout >= clientTimeout:
		return fmt.Errorf("redisson: SyncReplicas within %v: it must be at least 1ms and less than the client's timeout, %v", s.timeout, clientTimeout)
	}
	return nil
}

// process sends one attempt of cl. Where replicas are to confirm it, WAIT goes in the same pipeline, because it speaks of
// the writes of its own connection; in a cluster that must be one to the master of the lock's slot, so that a redirection
// is not followed but ends the attempt.
func (c *Client) process(ctx context.Context, cl call, cmd once) error {
	if c.sync.replicas == 0 || !cl.script.takes {
		return c.rdb.Process(ctx, cmd)
	}
	pipe := c.rdb.Pipeline()
	if c.topology.Cluster() != nil {
		node, err := c.topology.Cluster().MasterForKey(ctx, cl.keys[0])
		if err != nil {
			return err
		}
		pipe = node.Pipeline()
	}
	_ = pipe.Process(ctx, cmd) // queues it
	wait := once{redis.NewCmd(ctx, "wait", c.sync.replicas, c.sync.timeout.Milliseconds())}
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if cmd.Err() != nil {
		return cmd.Err()
	}
	values, err := cmd.Int64Slice()
	if err != nil || values[0] == 0 {
		return err
	}
	confirmed, err := wait.Int()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNotReplicated, err)
	case confirmed < c.sync.replicas:
		return fmt.Errorf("%w: %d of %d within %v", ErrNotReplicated, confirmed, c.sync.replicas, c.sync.timeout)
	}
	return nil
}
