package checkup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

var errType = errors.New("a client of this type can't be looked at")

// runCluster looks at each master, one after the other so that the lines of a server stay together, and at what the cluster is.
func runCluster(ctx context.Context, c *redis.ClusterClient, o Options) error {
	var mu sync.Mutex
	var masters []*server
	err := c.ForEachMaster(ctx, func(_ context.Context, rdb *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		masters = append(masters, &server{rdb: rdb, node: rdb.Options().Addr, o: o, ctx: ctx})
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range masters {
		if err := s.reach(); err != nil {
			s.report(Fail, "connection", err.Error(), "")
			continue
		}
		s.look()
	}
	for _, s := range masters[:min(1, len(masters))] {
		s.clusterState()
		s.sharded()
	}
	home, err := c.MasterForKey(ctx, o.Key)
	if err != nil {
		return fmt.Errorf("no master for the key: %w", err)
	}
	(&server{rdb: home, o: o, ctx: ctx, node: home.Options().Addr}).rights()
	return nil
}

func (s *server) clusterState() {
	text, err := s.do("cluster", "info").Text()
	if err != nil {
		s.mayNot("cluster", "CLUSTER INFO", err)
		return
	}
	info := parseInfo(text)
	if info["cluster_state"] != "ok" {
		s.report(Fail, "cluster", fmt.Sprintf("its state is %s, %s of 16384 slots are served", info["cluster_state"], info["cluster_slots_ok"]),
			"CLUSTER NODES shows who is missing; redis-cli --cluster check")
		return
	}
	s.report(OK, "cluster", fmt.Sprintf("ok, %s nodes, %s masters", info["cluster_known_nodes"], info["cluster_size"]), "")
}

// sharded asks what Redisson and Latchkey decide by in their automatic modes.
func (s *server) sharded() {
	err := s.do("pubsub", "shardnumsub").Err()
	switch {
	case err == nil:
		s.report(OK, "channels", "sharded: peers must use them, too; Redisson does from 3.22.0 on, unless shardedSubscriptionMode is OFF", "")
	case denied(err):
		s.report(Fail, "channels", "this user may not ask PUBSUB SHARDNUMSUB, by which clients choose their channels", "ACL SETUSER … +pubsub|shardnumsub +spublish +ssubscribe +sunsubscribe, or ShardedPubSub(ShardedOff) here and in Java")
	default:
		s.report(Warn, "channels", "classic only: the cluster passes each release on to all its nodes", "upgrade to Redis 7")
	}
}
