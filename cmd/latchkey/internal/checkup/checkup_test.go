package checkup_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey/internal/checkup"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// look returns the findings by check, a line each.
func look(t *testing.T, rdb redis.UniversalClient, key string) string {
	t.Helper()
	var all strings.Builder
	err := checkup.Run(t.Context(), rdb, checkup.Options{Key: key, Pings: 5, Timeout: 5 * time.Second, Report: func(f checkup.Finding) {
		all.WriteString(strings.Join([]string{string(f.Level), f.Check, f.Text, f.Type}, " | ") + "\n")
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func expect(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in:\n%s", w, got)
		}
	}
}

func TestSound(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--dir", t.TempDir())
	got := look(t, s.Client(t), "order:1")
	expect(t, got, "ok | latency | PING takes", "ok | clock | the server's is", "ok | version | ", "ok | eviction | maxmemory-policy is noeviction",
		"ok | persistence | append-only file, fsync everysec", "warn | replicas | none", "ok | channels | one server", "ok | rights | Lock, MultiLock, RedLock", "ok | rights | RateLimiter")
	if strings.Contains(got, "fail |") || strings.Contains(got, "not for") {
		t.Errorf("a sound server fails:\n%s", got)
	}
	if n := s.Client(t).DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("it left %d keys", n)
	}
}

func TestEvictionAndNoPersistence(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	expect(t, look(t, s.Client(t), "k"), "fail | eviction | maxmemory-policy is allkeys-lru: when memory is short, locks are evicted while they are held | CONFIG SET maxmemory-policy noeviction",
		"warn | persistence | none: a restart loses all locks", "CONFIG SET appendonly yes")
	rdb := s.Client(t)
	rdb.ConfigSet(t.Context(), "maxmemory", "0")
	rdb.ConfigSet(t.Context(), "save", "60 1")
	expect(t, look(t, rdb, "k"), "warn | eviction | maxmemory-policy is allkeys-lru, which evicts", "warn | persistence | snapshots (save 60 1) only")
}

func TestReplica(t *testing.T) {
	master, replica := redistest.Start(t), redistest.Start(t)
	host, port := master.HostPort()
	rdb := replica.Client(t)
	rdb.ReplicaOf(t.Context(), host, port)
	for end := time.Now().Add(20 * time.Second); !strings.Contains(rdb.Info(t.Context(), "replication").Val(), "master_link_status:up"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	expect(t, look(t, rdb, "k"), "fail | replicas | this server is a slave of "+host+":"+port)
	expect(t, look(t, master.Client(t), "k"), "ok | replicas | 1, at most")
	replica.Pause(t)
	for end := time.Now().Add(20 * time.Second); !strings.Contains(look(t, master.Client(t), "k"), "fail | replicas | 1, and none has answered for"); {
		if time.Now().After(end) {
			t.Fatal("a silent replica is no finding")
		}
	}
	replica.Resume(t)
	if got := look(t, master.Client(t), "k"); strings.Contains(got, "failover") {
		t.Errorf("of a server that was never a replica it says:\n%s", got)
	}
	if err := rdb.ReplicaOf(t.Context(), "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	expect(t, look(t, rdb, "k"), "ok | failover | this server was promoted since it started")
}

// Users without rights learn what they may, what they may not, and what to type.
func TestRights(t *testing.T) {
	s := redistest.Start(t)
	admin := s.Client(t)
	const lock = "~order:* ~latchkey_wake:{order:* ~latchkey_receipt:{order:* &redisson_lock__channel:{order:* &latchkey_client:* +evalsha +eval +exists +get +set +hdel +hexists +hget +hset +hkeys +del +zadd +zcount +zrange +zrem +zscore +pexpire +pttl +time +publish +subscribe +unsubscribe +ping +role"
	for _, tt := range []struct {
		name, words string
		key         string
		want        []string
	}{
		{"by dry run", lock + " +acl|dryrun", "order:1", []string{"found out by ACL DRYRUN", "ok | rights | Lock, MultiLock", "ok | rights | SpinLock",
			"warn | rights | not for FencedLock, kind=fenced | ACL SETUSER user ~redisson_lock_token:{order:1}* +incr\n",
			"warn | rights | not for ReadWriteLock, kind=read and kind=write | ACL SETUSER user ~{order:1}* &redisson_rwlock:{order:1}* +hgetall", "skip | info | this user may not ask INFO | ask as a user with +info"}},
		{"by a transaction", lock + " +multi +discard", "order:1", []string{"found out by MULTI and DISCARD", "ok | rights | Lock, MultiLock",
			"not for FencedLock, kind=fenced | ACL SETUSER user ~redisson_lock_token:{order:1}* +incr\n"}},
		{"another key", lock + " +acl|dryrun", "invoice:1", []string{"fail | rights | not for Lock, MultiLock, RedLock, and guards without a kind | ACL SETUSER user ~invoice:1 ~latchkey_wake:{invoice:1}* ~latchkey_receipt:{invoice:1}* &redisson_lock__channel:{invoice:1}*\n"}},
		{"a hash tag of its own", lock + " +acl|dryrun", "order:{1}", []string{"not for Lock, MultiLock, RedLock, and guards without a kind | ACL SETUSER user ~latchkey_wake:order:{1}* ~latchkey_receipt:order:{1}* &redisson_lock__channel:order:{1}*\n"}},
		{"no channel", strings.Replace(lock, "&redisson_lock__channel:{order:*", "", 1) + " +acl|dryrun", "order:1", []string{"not for Lock, MultiLock, RedLock, and guards without a kind | ACL SETUSER user &redisson_lock__channel:{order:1}*\n"}},
		{"nothing to ask with", lock, "order:1", []string{"skip | rights | this user may ask neither ACL DRYRUN nor MULTI"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := []any{"acl", "setuser", "user", "reset", "on", ">secret"}
			for word := range strings.FieldsSeq(tt.words) {
				args = append(args, word)
			}
			if err := admin.Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			rdb := s.Client(t, func(o *redis.Options) { o.Username, o.Password = "user", "secret" })
			expect(t, look(t, rdb, tt.key), tt.want...)
			if n := admin.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("it left %d keys", n)
			}
		})
	}
}

func TestCluster(t *testing.T) {
	c := redistest.StartCluster(t, 0)
	got := look(t, c.Client(t), "order:1")
	expect(t, got, "ok | cluster | ok, 3 nodes, 3 masters", "ok | rights | Lock, MultiLock", "ok | rights | A cluster, in addition")
	if c.Sharded {
		expect(t, got, "ok | channels | sharded")
	}
	if n := strings.Count(got, "| version |"); n != 3 {
		t.Errorf("%d masters were looked at:\n%s", n, got)
	}
	got = look(t, c.Masters[0].Admin, "order:1")
	expect(t, got, "fail | cluster | this server is one node of a cluster", "| name it by a URL with addr")
	if strings.Contains(got, "rights") {
		t.Errorf("locks at a node alone:\n%s", got)
	}
}

// The lines are those of the documents, and each of their words can be asked for.
func TestRightsAreTheDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n# Lock, MultiLock")
	rest, _, _ = strings.Cut(rest, "```")
	lines, err := os.ReadFile("rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	if want := "# Lock, MultiLock" + rest; string(lines) != want {
		t.Errorf("rights.txt is not what docs/security.md says; copy it from there")
	}
	if missing := checkup.Unasked(); len(missing) > 0 {
		t.Errorf("there is no question for %v", missing)
	}
}
