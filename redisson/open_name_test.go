package redisson_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// CLIENT LIST says whose each connection is, those that listen as well.
func TestOpenNamesItsConnections(t *testing.T) {
	t.Parallel()
	program := filepath.Base(os.Args[0])
	for _, tt := range []struct {
		query, want string
		opts        []redisson.Option
	}{
		{"", program, nil},
		{"", "orders-7d4f", []redisson.Option{redisson.Name("orders-7d4f")}},
		{"?client_name=shop", "shop", []redisson.Option{redisson.Name("orders")}},
		{"?client_name=the+shop&protocol=2", "the-shop", nil},
		{"", "K-se-ab-Bl-tter--", []redisson.Option{redisson.Name("Käse ab\nBlätter \u2028")}},
		{"", strings.Repeat("-", 170) + "x", []redisson.Option{redisson.Name(strings.Repeat("語", 170) + "x")}},
	} {
		s := redistest.Start(t)
		c, err := redisson.Open("redis://"+s.Addr+tt.query, tt.opts...)
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		useNamed(t, c, "order:42")
		wantNames(t, s.Client(t), tt.want)
	}
}

// The names are those of all masters' connections, and of the sentinels'.
func TestOpenNamesItsConnectionsEverywhere(t *testing.T) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.StartCluster(t, 0)
		c, err := redisson.Open("redis://"+cluster.Masters[0].Addr+"?addr="+cluster.Masters[1].Addr, redisson.Name("orders"))
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		for at, m := range cluster.Masters {
			n := 0
			for i, _ := cluster.Owner(t, fmt.Sprint("order:", n)); i != at; i, _ = cluster.Owner(t, fmt.Sprint("order:", n)) {
				n++
			}
			useNamed(t, c, fmt.Sprint("order:", n))
			wantNames(t, m.Admin, "orders")
		}
	})
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		sentinels := redistest.StartSentinels(t)
		c, err := redisson.Open("redis://"+sentinels.Addrs[0]+"?master_name="+sentinels.Name, redisson.Name("orders"))
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		useNamed(t, c, "order:42")
		wantNames(t, sentinels.Master.Client(t), "orders")
		admin := redis.NewClient(&redis.Options{Addr: sentinels.Addrs[0]})
		t.Cleanup(func() { _ = admin.Close() })
		wantNames(t, admin, "orders")
	})
}

// A user without the right to CLIENT SETNAME has a name all the same, and nothing in the log of what was denied.
func TestOpenNamesConnectionsOfAnyUser(t *testing.T) {
	t.Parallel()
	for _, l := range aclLines(t) {
		if l.user != "lock" || l.more {
			continue
		}
		s := redistest.Start(t)
		admin := s.Client(t)
		args := []any{"acl", "setuser", "lock", "on", ">secret", "~latchkey_client:*"} // the last is for Name
		for _, word := range l.words {
			args = append(args, word)
		}
		check(t, admin.Do(t.Context(), args...).Err())
		if err := s.Client(t, func(o *redis.Options) { o.Username, o.Password, o.ClientName = "lock", "secret", "go-redis" }).Ping(t.Context()).Err(); err == nil {
			t.Error("go-redis' ClientName needs no right any more: Open may use that")
		}
		check(t, admin.ACLLogReset(t.Context()).Err())
		c, err := redisson.Open("redis://lock:secret@"+s.Addr, redisson.Name("orders"))
		check(t, err)
		t.Cleanup(func() { _ = c.Close() })
		useNamed(t, c, "order:42")
		wantNames(t, admin, "orders")
		log, err := admin.ACLLog(t.Context(), 100).Result()
		check(t, err)
		for _, denied := range log {
			if denied.Object != "client|setinfo" && denied.Object != "client" {
				t.Errorf("the log says %s %s", denied.Reason, denied.Object)
			}
		}
	}
}

// A server that knows no HELLO has connections without names.
func TestOpenWithoutHello(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--rename-command", "HELLO", "")
	c, err := redisson.Open("redis://" + s.Addr)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	useNamed(t, c, "order:42")
	wantNames(t, s.Client(t), "")
}

// useNamed has the client ask, wait and listen.
func useNamed(t *testing.T, c *redisson.Client, key string) {
	t.Helper()
	l := c.Lock(key)
	held := mustLock(t, l)
	waited := make(chan error)
	go func() {
		_, err := c.Acquire(lock.NewOwner(t.Context()), lock.Request{Key: key, Wait: 200 * time.Millisecond})
		waited <- err
	}()
	if err := <-waited; err == nil {
		t.Error("two hold the lock")
	}
	mustUnlock(t, l, held)
}

// wantNames waits until all connections of a server have that name, but for those of the test, of replicas and of sentinels.
func wantNames(t *testing.T, admin *redis.Client, want string) {
	t.Helper()
	conn := admin.Conn()
	defer conn.Close()
	own, err := conn.ClientID(t.Context()).Result()
	check(t, err)
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list, err := conn.ClientList(t.Context()).Result()
		check(t, err)
		asking, listening, others := 0, 0, 0
		for line := range strings.Lines(list) {
			fields := map[string]string{}
			for f := range strings.FieldsSeq(line) {
				name, value, _ := strings.Cut(f, "=")
				fields[name] = value
			}
			if fields["id"] == fmt.Sprint(own) || strings.ContainsAny(fields["flags"], "MS") || fields["cmd"] == "command|info" || strings.HasPrefix(fields["name"], "sentinel-") {
				continue
			}
			if fields["name"] != want {
				others++
			}
			asking++
			if fields["sub"] != "0" || fields["ssub"] != "0" && fields["ssub"] != "" {
				listening++
			}
		}
		if asking > 0 && others == 0 {
			t.Logf("%d connections, %d of which listen", asking, listening)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("want the name %q:\n%s", want, list)
		}
	}
}
