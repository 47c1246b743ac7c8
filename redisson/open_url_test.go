package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestOpenTellsNothingOfAPassword(t *testing.T) {
	for _, url := range []string{"redis://user:s3cret/x@localhost:6379", "redis://:s3cret#x@localhost", "redis://u:s3cret%x@h:1?addr=h:2", "redis://u:42/s3cret@h",
		"redis://u:s3cret%x@h:1?master_name=main", "redis://h:1?master_name=main&db=x&password=s3cret"} {
		if _, err := redisson.Open(url); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%q): %v", url, err)
		}
	}
}

// A node that is named without its cluster says what to write, and at once.
func TestOpenOneNodeOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 0)
	c, err := redisson.Open("redis://" + cluster.Masters[0].Addr)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	refusals := 0
	for i := range 10 {
		for _, kind := range []lock.Kind{lock.Exclusive, lock.Fair, lock.Permit} {
			start := time.Now()
			h, err := c.Acquire(t.Context(), lock.Request{Key: fmt.Sprint("order:", i), Kind: kind, Limit: 1, Wait: time.Minute})
			if err == nil { // the node has its slot
				check(t, h.Release(t.Context()))
				continue
			}
			refusals++
			if !errors.Is(err, lock.ErrRefused) || !strings.Contains(err.Error(), "?addr=") || time.Since(start) > time.Second {
				t.Errorf("%v after %v, want at once what to write", err, time.Since(start))
			}
		}
	}
	if refusals == 0 {
		t.Error("no key was at another node")
	}
}

// A password that is rolled is asked for with the next connection, by those that listen as well.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--user", "worker", "on", ">first", "~*", "&*", "+@all")
	var password atomic.Value
	password.Store("first")
	var asked atomic.Int64
	c, err := redisson.Open("redis://nobody:wrong@"+s.Addr, redisson.Credentials(func(context.Context) (string, string, error) {
		asked.Add(1)
		return "worker", password.Load().(string), nil
	}))
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	l := c.Lock("rolled")
	mustUnlock(t, l, mustLock(t, l))
	admin := s.Client(t)
	check(t, admin.Do(t.Context(), "acl", "setuser", "worker", "resetpass", ">second").Err())
	password.Store("second")
	check(t, admin.Do(t.Context(), "client", "kill", "user", "worker").Err())
	before := asked.Load()
	mustUnlock(t, l, mustLock(t, l))
	if asked.Load() == before {
		t.Error("the new password was not asked for")
	}
}
