package redistest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Sentinels is a master with a replica, watched by three sentinels.
type Sentinels struct {
	Master, Replica *Server
	// Addrs are the sentinels, and Name is what they call the master.
	Addrs []string
	Name  string
}

// StartSentinels runs five processes. The sentinels take a silent master for dead only while AwaitReplicaLeads waits for that: a machine with
// other work may stand still for a second. It is like Start in all else.
func StartSentinels(tb testing.TB) *Sentinels {
	tb.Helper()
	s := &Sentinels{Name: "latchkey", Master: Start(tb)}
	host, port := s.Master.HostPort()
	s.Replica = Start(tb, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	s.Replica.awaitReplication(tb, "master_link_status:up")
	for range 3 {
		s.Addrs = append(s.Addrs, startSentinel(tb, s.Name, host, port))
	}
	s.await(tb, "the sentinels know each other and the replica", func(sentinel *redis.SentinelClient) bool {
		m := sentinel.Master(context.Background(), s.Name).Val()
		return m["num-other-sentinels"] == "2" && m["num-slaves"] == "1" && m["flags"] == "master"
	})
	return s
}

// Client returns a client that follows the master, closed when the test ends. The changes are applied to its options.
func (s *Sentinels) Client(tb testing.TB, changes ...func(*redis.FailoverOptions)) *redis.Client {
	tb.Helper()
	opts := &redis.FailoverOptions{MasterName: s.Name, SentinelAddrs: s.Addrs}
	for _, change := range changes {
		change(opts)
	}
	rdb := redis.NewFailoverClient(opts)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Failover has the sentinels change the master, as an operator does, and waits until they have.
func (s *Sentinels) Failover(tb testing.TB) {
	tb.Helper()
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: s.Addrs[0]})
	defer sentinel.Close()
	if err := sentinel.Failover(context.Background(), s.Name).Err(); err != nil {
		tb.Fatalf("redistest: sentinel failover: %v", err)
	}
	s.awaitReplicaLeads(tb)
}

// AwaitReplicaLeads waits until the replica has taken the place of a dead master, after half a second, and all sentinels say so.
func (s *Sentinels) AwaitReplicaLeads(tb testing.TB) {
	tb.Helper()
	s.await(tb, "the sentinel may take the master for dead", func(sentinel *redis.SentinelClient) bool {
		return sentinel.Set(context.Background(), s.Name, "down-after-milliseconds", "500").Err() == nil
	})
	s.awaitReplicaLeads(tb)
}

func (s *Sentinels) awaitReplicaLeads(tb testing.TB) {
	tb.Helper()
	s.Replica.awaitReplication(tb, "role:master")
	host, port := s.Replica.HostPort()
	s.await(tb, "the sentinel names the new master", func(sentinel *redis.SentinelClient) bool {
		return slices.Equal(sentinel.GetMasterAddrByName(context.Background(), s.Name).Val(), []string{host, port})
	})
}

// await waits until ok at each sentinel.
func (s *Sentinels) await(tb testing.TB, what string, ok func(*redis.SentinelClient) bool) {
	tb.Helper()
	for _, addr := range s.Addrs {
		sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
		await(tb, addr+": "+what, func() bool { return ok(sentinel) })
		_ = sentinel.Close()
	}
}

func startSentinel(tb testing.TB, name, host, port string) (addr string) {
	tb.Helper()
	path := program(tb)
	conf := filepath.Join(tb.TempDir(), "sentinel.conf")
	return launch(tb, nil, func(own string) []string {
		text := strings.Join([]string{
			"port " + own, "bind 127.0.0.1", "dir " + tb.TempDir(), "daemonize no", "loglevel warning",
			"sentinel monitor " + name + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + name + " 60000",
			"sentinel failover-timeout " + name + " 3000",
			"sentinel parallel-syncs " + name + " 1", "",
		}, "\n")
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			tb.Fatalf("redistest: %v", err)
		}
		return []string{path, conf, "--sentinel"}
	}).Addr
}
