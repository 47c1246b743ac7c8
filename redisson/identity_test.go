package redisson_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// isMe checks what a client of this process says.
func isMe(who redisson.Identity, name string) bool {
	host, _ := os.Hostname()
	return who.Name == name && who.Host == host && who.PID == os.Getpid() && time.Since(who.Since) < time.Minute
}

func TestNameSaysWhoHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b, looker := newClient(t, s, redisson.Name("orders-7f9c")), newClient(t, s, redisson.Name("заказы")), newClient(t, s)
	r := lock.Request{Key: "fair", Kind: lock.Fair, Wait: -1}
	h := acquire(t.Context(), t, a, r)
	go func() { _ = second(b.Acquire(t.Context(), r)) }()
	anonymous := newClient(t, s)
	go func() { _ = second(anonymous.Acquire(t.Context(), r)) }()
	eventually(t, "who holds and who waits is known", func() bool {
		o := inspect(t, looker, "fair")
		if len(o.Holders) != 1 || len(o.Queue) != 2 || !isMe(o.Holders[0].Who, "orders-7f9c") {
			return false
		}
		named := map[string]redisson.Identity{o.Queue[0].Client: o.Queue[0].Who, o.Queue[1].Client: o.Queue[1].Who}
		return isMe(named[b.ID()], "заказы") && named[anonymous.ID()] == redisson.Identity{}
	})
	for o, err := range looker.Objects(t.Context(), "") {
		if check(t, err); !isMe(o.Holders[0].Who, "orders-7f9c") {
			t.Errorf("the search knows %+v", o.Holders)
		}
	}
	release(t, h)
}

func TestNameInACluster(t *testing.T) {
	t.Parallel()
	cl := redistest.StartCluster(t, 0)
	looker := onClient(t, cl.Client(t))
	for i := range 5 { // whose keys are on any master
		c := onClient(t, cl.Client(t), redisson.Name(fmt.Sprint("n", i)))
		acquire(t.Context(), t, c, lock.Request{Key: "rw", Kind: lock.Read})
	}
	eventually(t, "all readers are known", func() bool {
		o := inspect(t, looker, "rw")
		for _, h := range o.Holders {
			if !strings.HasPrefix(h.Who.Name, "n") {
				return false
			}
		}
		return len(o.Holders) == 5
	})
}

// The key lives as long as there is something to say, and is renewed with the locks.
func TestNameIsKeptWhileNeeded(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second // a busy machine may be late by most of it
	s := redistest.Start(t)
	rdb, c := s.Client(t), newClient(t, s, redisson.Name("n"), redisson.WatchdogTimeout(timeout))
	key := "latchkey_client:" + c.ID()
	there := func() bool { return rdb.PTTL(t.Context(), key).Val() > 0 }
	if there() {
		t.Error("the name is shown before anything is held")
	}
	h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
	eventually(t, "the name is shown", there)
	for end := time.Now().Add(5 * timeout / 2); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > timeout {
			t.Fatalf("the name lasts %v while a lock is held", ttl)
		}
	}
	release(t, h)
	eventually(t, "the name is gone", func() bool { return !there() })

	other := newClient(t, s)
	h = acquire(t.Context(), t, other, lock.Request{Key: "k"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = second(c.Acquire(ctx, lock.Request{Key: "k", Wait: -1})) }()
	eventually(t, "the name of one who waits is shown", there)
	for end := time.Now().Add(5 * timeout / 2); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		if !there() {
			t.Fatal("the name is gone while a call waits")
		}
	}
	cancel()
	eventually(t, "the name is gone again", func() bool { return !there() })
	release(t, h)

	h = acquire(t.Context(), t, c, lock.Request{Key: "k"})
	eventually(t, "the name is shown once more", there)
	check(t, c.Close())
	if there() {
		t.Error("the name is still there after Close")
	}
	_ = h.Release(t.Context())
}

// Somebody has removed the key, or Redis did not answer: it comes back.
func TestNameComesBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, admin := s.Client(t), s.Client(t)
	c, p := behind(t, s, redisson.Name("n"), redisson.WatchdogTimeout(3*time.Second), redisson.Timeout(time.Second))
	key := "latchkey_client:" + c.ID()
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	there := func() bool { return rdb.Exists(t.Context(), key).Val() == 1 }
	eventually(t, "the name is shown", there)
	check(t, admin.Del(t.Context(), key).Err())
	eventually(t, "the name is shown again", there)
	p.CutReply("evalsha", 3)
	check(t, admin.Del(t.Context(), key).Err())
	eventually(t, "the name is shown after faults", there)
}

// A client that takes a lock again and again does not show its name as often, and one without a name asks nothing for it.
func TestNameCommands(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		s := redistest.Start(t)
		var opts []redisson.Option
		if named {
			opts = append(opts, redisson.Name("n"))
		}
		c, rdb := newClient(t, s, opts...), s.Client(t)
		h := acquire(t.Context(), t, c, lock.Request{Key: "k"})
		eventually(t, "the name is shown", func() bool { return !named || rdb.Exists(t.Context(), "latchkey_client:"+c.ID()).Val() == 1 })
		release(t, h)
		// A machine that is busy has a question asked again now and then, and not five times in a row.
		for try := 1; ; try++ {
			before, _ := commands(t, rdb)
			start, pairs := time.Now(), 0
			for ; time.Since(start) < 300*time.Millisecond; pairs++ {
				release(t, acquire(t.Context(), t, c, lock.Request{Key: "k"}))
			}
			after, _ := commands(t, rdb)
			more := after - before - 2*pairs
			if more >= 0 && more <= 3 && (more == 0 || named) {
				break
			}
			if try == 5 {
				t.Errorf("named %v: %d commands beside those for %d locks", named, more, pairs)
				break
			}
		}
	}
}

func TestNameRefuses(t *testing.T) {
	s := redistest.Any(t)
	for _, name := range []string{"", "\xff", strings.Repeat("x", 513)} {
		if _, err := redisson.New(s.Client(t), redisson.Name(name)); err == nil {
			t.Errorf("the name %.9q is taken", name)
		}
	}
}

// What a stranger has written for a client is no identity, and hurts nobody.
func TestForgedNames(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := newClient(t, s), s.Client(t)
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	key := "latchkey_client:" + c.ID()
	for _, text := range []string{"x", "[]", `{"name":1}`, `{"pid":"x"}`, strings.Repeat("[", 8000), strings.Repeat("x", 1<<20)} {
		check(t, rdb.Set(t.Context(), key, text, 0).Err())
		if o := inspect(t, c, "k"); o.Holders[0].Who != (redisson.Identity{}) {
			t.Errorf("%.20q makes %+v", text, o.Holders[0].Who)
		}
	}
	check(t, rdb.Del(t.Context(), key).Err())
	check(t, rdb.RPush(t.Context(), key, 1).Err())
	if o := inspect(t, c, "k"); len(o.Holders) != 1 {
		t.Errorf("of a lock there is %+v", o)
	}
}
