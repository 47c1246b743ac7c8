package reply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// recorder brings servers to refuse things, and notes in which situation they said what.
type recorder struct {
	*testing.T
	lines  []string
	killed error
	over   chan struct{}
}

// TestServersRefusals provokes each refusal on the server at hand. The answers are those of the table, whatever the version is.
// "make answers" writes the files that TestRecordedAnswers reads, by setting LATCHKEY_RECORD.
func TestServersRefusals(t *testing.T) {
	t.Parallel()
	r := &recorder{T: t, over: make(chan struct{})}
	r.states()
	r.loading()
	r.rights()
	r.programs()
	r.cluster()
	if os.Getenv("LATCHKEY_RECORD") != "" {
		slices.Sort(r.lines)
		name := filepath.Join("testdata", "answers", version(t)+".txt")
		if err := os.WriteFile(name, []byte(strings.Join(r.lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// version is the name of the server's line, such as redis-7.0.
func version(t *testing.T) string {
	info := redistest.Start(t).Client(t).Info(t.Context(), "server").Val()
	found := regexp.MustCompile(`(redis|valkey)_version:(\d+\.\d+)`).FindAllStringSubmatch(info, -1)
	last := found[len(found)-1] // a Valkey names the Redis that it is like first
	return last[1] + "-" + last[2]
}

// Addresses and digests differ each time, and so do slots and explanations between versions.
var address, digest = regexp.MustCompile(`127\.0\.0\.1:\d+`), regexp.MustCompile(`[0-9a-f]{40}`)

// plain is a client without repeats of its own.
func plain(o *redis.Options) { o.MaxRetries = -1 }

// note compares an answer with the table. What this version does not refuse is nothing to note.
func (r *recorder) note(situation string, err error) {
	r.Helper()
	if !IsReply(err) || errors.Is(err, redis.Nil) {
		if err != nil && !errors.Is(err, redis.Nil) {
			r.Errorf("%s: %v", situation, err)
		}
		return
	}
	text := digest.ReplaceAllString(address.ReplaceAllString(err.Error(), "127.0.0.1:6379"), "f00")
	r.lines = append(r.lines, situation+"\t"+text)
	expect(r.T, situation, text)
}

// each asks for the same as a command, in a script, and in a transaction that was queued before.
func (r *recorder) each(state string, rdb *redis.Client, begin func(), args ...any) {
	r.Helper()
	ctx := context.Background()
	tx := rdb.Conn()
	defer tx.Close()
	for _, queued := range [][]any{{"multi"}, args} {
		if err := tx.Do(ctx, queued...).Err(); err != nil {
			r.Errorf("%s: %v", state, err)
		}
	}
	begin()
	r.note(state+", command", rdb.Do(ctx, args...).Err())
	r.note(state+", script", script(rdb, args...))
	r.note(state+", transaction", tx.Do(ctx, "exec").Err())
}

// script has a script send a command, whose first argument is a key.
func script(rdb interface {
	Eval(context.Context, string, []string, ...any) *redis.Cmd
}, args ...any) error {
	text := "return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))"
	return rdb.Eval(context.Background(), text, []string{args[1].(string)}, append([]any{args[0]}, args[2:]...)...).Err()
}

// do asks what has to succeed.
func (r *recorder) do(rdb *redis.Client, args ...any) {
	r.Helper()
	if err := rdb.Do(context.Background(), args...).Err(); err != nil {
		r.Fatalf("%v: %v", args, err)
	}
}

func (r *recorder) await(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("%s: not within 10s", what)
		}
	}
}

// states are those of a server that refuses writes, or everything.
func (r *recorder) states() {
	dir := r.TempDir()
	rdb := redistest.Start(r.T, "--dir", dir).Client(r.T, plain)
	if err := os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755); err != nil {
		r.Fatal(err)
	}
	set := func(option, value string) { r.do(rdb, "config", "set", option, value) }
	r.each("no memory", rdb, func() { set("maxmemory", "1") }, "set", "k", "v")
	set("maxmemory", "0")
	r.each("too few replicas", rdb, func() { set("min-replicas-to-write", "1") }, "set", "k", "v")
	set("min-replicas-to-write", "0")
	r.each("no snapshot", rdb, func() {
		set("save", "3600 1")
		r.do(rdb, "bgsave")
		r.await("a snapshot fails", func() bool {
			return strings.Contains(rdb.Info(context.Background(), "persistence").Val(), "rdb_last_bgsave_status:err")
		})
	}, "set", "k", "v")
	set("save", "")
	r.each("busy with a script", rdb, func() {
		set("lua-time-limit", "1")
		go func() { r.killed = rdb.Eval(context.Background(), "while true do end", nil).Err(); close(r.over) }()
		r.await("the server is busy", func() bool { return rdb.Ping(context.Background()).Err() != nil })
	}, "get", "k")
	r.do(rdb, "script", "kill")
	<-r.over
	r.note("script killed", r.killed)
	nowhere := redistest.FreePort(r.T)
	r.each("read-only replica", rdb, func() { r.do(rdb, "replicaof", "127.0.0.1", nowhere) }, "set", "k", "v")
	r.do(rdb, "replicaof", "no", "one")
	r.each("replica without a master", rdb, func() {
		set("replica-serve-stale-data", "no")
		r.do(rdb, "replicaof", "127.0.0.1", nowhere)
	}, "get", "k")
	r.do(rdb, "replicaof", "no", "one")
	set("maxclients", "1")
	r.note("too many clients", r.greeting(rdb.Options().Addr))
}

// greeting returns what a server says to a new connection.
func (r *recorder) greeting(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		r.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "PING\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		r.Fatal(err)
	}
	return words(strings.TrimSpace(strings.TrimPrefix(line, "-")))
}

// loading is the state of a server that has just started.
func (r *recorder) loading() {
	master, replica := redistest.Start(r.T, "--rdbcompression", "no"), redistest.Start(r.T, "--key-load-delay", "50")
	r.do(master.Client(r.T), "eval", "for i = 1, 20000 do redis.call('set', 'k' .. i, string.rep('v', 1000)) end return 1", 0)
	rdb := replica.Client(r.T, plain)
	r.each("loading", rdb, func() {
		host, port := master.HostPort()
		r.do(rdb, "replicaof", host, port)
		r.await("the replica loads", func() bool { return redis.HasErrorPrefix(rdb.Ping(context.Background()).Err(), "LOADING") })
	}, "get", "k")
}

// rights are those of a user.
func (r *recorder) rights() {
	s := redistest.Start(r.T)
	admin := s.Client(r.T, plain)
	as := func(user, password string) *redis.Client {
		return s.Client(r.T, plain, func(o *redis.Options) { o.Username, o.Password = user, password })
	}
	r.do(admin, "acl", "setuser", "few", "on", ">secret", "resetchannels", "~own*", "&own*", "+@all", "-set")
	r.do(admin, "acl", "setuser", "default", ">secret")
	ctx := context.Background()
	few := as("few", "secret")
	r.note("no password, command", as("", "").Get(ctx, "k").Err())
	r.note("no password, script", script(as("", ""), "get", "k"))
	r.note("wrong password, HELLO", as("few", "wrong").Get(ctx, "k").Err())
	r.note("wrong password, AUTH", admin.Do(ctx, "auth", "few", "wrong").Err())
	r.note("no such user", as("nobody", "secret").Get(ctx, "k").Err())
	r.note("no right to the command, command", few.Set(ctx, "own", "v", 0).Err())
	r.note("no right to the command, script", script(few, "set", "own", "v"))
	r.note("no right to the key, command", few.Get(ctx, "k").Err())
	r.note("no right to the key, script", script(few, "get", "k"))
	r.note("no right to the key, undeclared in a script", few.Eval(ctx, "return redis.call('get', 'k')", nil).Err())
	r.note("no right to the channel, command", few.Publish(ctx, "c", "m").Err())
	r.note("no right to the channel, script", few.Eval(ctx, "return redis.call('publish', 'c', 'm')", []string{"own"}).Err())
	r.note("no right to the channel, subscription", few.Do(ctx, "subscribe", "c").Err())
	r.do(admin, "acl", "setuser", "few", "-@scripting")
	r.note("no right to scripts", script(few, "get", "own"))
}

// programs are mistakes of a program, and of data.
func (r *recorder) programs() {
	rdb := redistest.Start(r.T).Client(r.T, plain)
	ctx := context.Background()
	r.do(rdb, "set", "k", "word")
	r.do(rdb, "hset", "h", "f", "word")
	r.note("no such script", rdb.EvalSha(ctx, strings.Repeat("f", 40), nil).Err())
	for name, args := range map[string][]any{
		"another type": {"hget", "k", "f"}, "no integer": {"incr", "k"}, "no integer in a hash": {"hincrby", "h", "f", "1"},
		"no number": {"zadd", "z", "word", "m"}, "no such command": {"nonsense", "k"}, "no such subcommand": {"object", "k"},
	} {
		r.note(name+", command", rdb.Do(ctx, args...).Err())
		r.note(name+", script", script(rdb, args...))
	}
	r.note("no number for Lua", rdb.Eval(ctx, "assert(tonumber(redis.call('get', KEYS[1])), 'value is not a number')", []string{"k"}).Err())
	r.note("no number for a script", rdb.Eval(ctx, "return redis.error_reply('ERR the counter of fencing tokens is not a number')", nil).Err())
	tx := rdb.Conn()
	defer tx.Close()
	_ = tx.Do(ctx, "multi")
	_ = tx.Do(ctx, "nonsense")
	r.note("transaction with a mistake", tx.Do(ctx, "exec").Err())
}

// cluster is a node that does not have a slot, or not all of it.
func (r *recorder) cluster() {
	c := redistest.StartCluster(r.T, 0, "--cluster-require-full-coverage", "no")
	ctx := context.Background()
	at, slot := c.Owner(r.T, "{k}")
	from, to := c.Masters[at], c.Masters[(at+1)%3]
	here, there := from.Client(r.T, plain), to.Client(r.T, plain)
	r.note("slot elsewhere, command", there.Set(ctx, "{k}", "v", 0).Err())
	r.note("slot elsewhere, script", script(there, "set", "{k}", "v"))
	r.note("slot elsewhere, undeclared in a script", there.Eval(ctx, "return redis.call('get', '{k}')", nil).Err())
	r.note("two slots, command", here.Do(ctx, "mget", "{k}", "l").Err())
	r.note("two slots, script", here.Eval(ctx, "return 1", []string{"{k}", "l"}).Err())
	if c.Sharded {
		r.note("slot elsewhere, subscription", there.Do(ctx, "ssubscribe", "{k}").Err())
	}
	r.do(here, "set", "{k}", "v")
	c.OpenSlot(r.T, slot, from, to)
	r.note("key has moved, command", here.Get(ctx, "{k}2").Err())
	r.note("key has moved, script", script(here, "get", "{k}2"))
	r.note("some keys have moved, command", here.Do(ctx, "mget", "{k}", "{k}2").Err())
	r.note("some keys have moved, script", here.Eval(ctx, "return 1", []string{"{k}", "{k}2"}).Err())
	r.note("some keys have moved, undeclared in a script", here.Eval(ctx, "return redis.call('mget', '{k}', '{k}2')", []string{"{k}"}).Err())
	r.note("key has moved, undeclared in a script", here.Eval(ctx, "return redis.call('get', '{k}2')", []string{"{k}"}).Err())
	asking := there.Conn()
	defer asking.Close()
	for situation, args := range map[string][]any{
		"some keys have not come, command":                {"mget", "{k}", "{k}2"},
		"some keys have not come, script":                 {"eval", "return 1", 2, "{k}", "{k}2"},
		"some keys have not come, undeclared in a script": {"eval", "return redis.call('mget', '{k}', '{k}2')", 1, "{k}"},
	} {
		_ = asking.Do(ctx, "asking").Err()
		r.note(situation, asking.Do(ctx, args...).Err())
	}
	c.CloseSlot(r.T, slot, from, to)
	for _, n := range c.Masters {
		n.Do(r.T, "cluster", "delslots", slot)
	}
	r.note("slot nowhere, command", here.Get(ctx, "{k}").Err())
	r.note("slot nowhere, script", script(here, "get", "{k}"))
	at, _ = c.Owner(r.T, "l")
	here = c.Masters[at].Client(r.T, plain)
	r.each("cluster down", here, func() {
		for _, n := range c.Masters {
			n.Do(r.T, "config", "set", "cluster-require-full-coverage", "yes")
			n.Do(r.T, "cluster", "delslots", (slot+1)%100)
		}
		r.await("the cluster is down", func() bool { return here.Get(ctx, "l").Err() != redis.Nil })
	}, "get", "l")
}
