package setnxlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// quick has waiters ask often, so that tests don't wait for pauses.
var quick = setnxlock.Poll(2*time.Millisecond, 3*time.Millisecond)

func newLocker(tb testing.TB, rdb redis.UniversalClient, opts ...setnxlock.Option) *setnxlock.Locker {
	tb.Helper()
	l, err := setnxlock.New(rdb, append([]setnxlock.Option{quick}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// behind returns a Locker that reaches the server through a proxy.
func behind(tb testing.TB, s *redistest.Server, opts ...setnxlock.Option) (*setnxlock.Locker, *redistest.Proxy) {
	tb.Helper()
	p := s.Front(tb)
	return newLocker(tb, s.Client(tb, func(o *redis.Options) { o.Addr, o.ContextTimeoutEnabled = p.Addr, true }), opts...), p
}

// namingK is what a request that names the key k contains.
const namingK = "\r\n$1\r\nk\r\n"

// acquire takes a lock that is free, or soon will be.
func acquire(tb testing.TB, l lock.Locker, r lock.Request) lock.Hold {
	tb.Helper()
	if r.Wait == 0 {
		r.Wait = 10 * time.Second
	}
	h, err := l.Acquire(context.Background(), r)
	if err != nil {
		tb.Fatalf("Acquire %+v: %v", r, err)
	}
	return h
}

// expectBusy tries the lock k, which others hold.
func expectBusy(tb testing.TB, l lock.Locker) {
	tb.Helper()
	_ = busyFor(tb, l)
}

// busyFor tries the lock k, which others hold, and returns the rest of their lease.
func busyFor(tb testing.TB, l lock.Locker) time.Duration {
	tb.Helper()
	_, err := l.Acquire(context.Background(), lock.Request{Key: "k"})
	busy, ok := errors.AsType[*lock.BusyError](err)
	if !ok {
		tb.Fatalf("Acquire of a lock that is held = %v, want a BusyError", err)
	}
	return busy.Remaining
}

func release(tb testing.TB, h lock.Hold) {
	tb.Helper()
	if err := h.Release(context.Background()); err != nil {
		tb.Errorf("Release: %v", err)
	}
}

// awaitEnd waits until the hold ends and returns the cause.
func awaitEnd(tb testing.TB, h lock.Hold, limit time.Duration) error {
	tb.Helper()
	select {
	case <-h.Context().Done():
		return context.Cause(h.Context())
	case <-time.After(limit):
		tb.Fatalf("the hold did not end within %v", limit)
		return nil
	}
}

func expectLost(tb testing.TB, h lock.Hold, limit time.Duration) {
	tb.Helper()
	if cause := awaitEnd(tb, h, limit); !errors.Is(cause, lock.ErrLost) {
		tb.Errorf("the hold ended with %v, want ErrLost", cause)
	}
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	const limit = 10 * time.Second
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// keys are those in Redis, without the mark of redistest.Any.
func keys(tb testing.TB, rdb *redis.Client) []string {
	tb.Helper()
	all, err := rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(all, func(k string) bool { return strings.HasPrefix(k, "latchkey:redistest:") })
}

// The Lockers share a server and a client, so that their leases, which are short, don't end while a server starts.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name string
		opt  setnxlock.Option
	}{
		{"no preset", nil},
		{"RedisLockRegistry", setnxlock.RedisLockRegistry("registry")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			conforms(t, redistest.Any(t).Client(t), tt.opt)
		})
	}
}

func TestConformanceInACluster(t *testing.T) {
	c := redistest.StartCluster(t, 0)
	conforms(t, c.Client(t), setnxlock.RedisLockRegistry("registry"))
	refused := 0
	for i := range 10 { // a client of one node is refused at once where another one has the key
		_, err := newLocker(t, c.Masters[0].Admin).Acquire(t.Context(), lock.Request{Key: fmt.Sprint("order:", i)})
		if errors.Is(err, lock.ErrRefused) && strings.Contains(err.Error(), "ClusterClient") {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused == 0 {
		t.Error("a node took all keys")
	}
}

func conforms(t *testing.T, rdb redis.UniversalClient, opt setnxlock.Option) {
	t.Helper()
	release(t, acquire(t, newLocker(t, rdb), lock.Request{Key: "first"})) // Redis knows the scripts now
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return newLocker(t, rdb, setnxlock.Watchdog(2*time.Second), opt)
	}, locktest.Kinds(lock.Exclusive, lock.Spin))
}

// wrapper is a client that New can't know.
type wrapper struct{ redis.UniversalClient }

func TestNewRefuses(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for _, tt := range []struct {
		name string
		rdb  redis.UniversalClient
		opts []setnxlock.Option
		want string
	}{
		{"no client", nil, nil, "no Redis client"},
		{"nil client", (*redis.Client)(nil), nil, "no Redis client"},
		{"nil cluster", (*redis.ClusterClient)(nil), nil, "no Redis client"},
		{"ring", ring, nil, "two holders could have one lock"},
		{"wrapped client", wrapper{rdb}, nil, "setnxlock_test.wrapper is not a client"},
		{"watchdog", rdb, []setnxlock.Option{setnxlock.Watchdog(time.Millisecond)}, "watchdog of 1ms"},
		{"timeout", rdb, []setnxlock.Option{setnxlock.Timeout(time.Hour)}, "timeout of 1h0m0s"},
		{"poll", rdb, []setnxlock.Option{setnxlock.Poll(0, 0)}, "pause of 0s"},
		{"two presets", rdb, []setnxlock.Option{setnxlock.Redsync(), setnxlock.Lock4j()}, "both Redsync and Lock4j"},
		{"environment", rdb, []setnxlock.Option{setnxlock.ShedLock("")}, `"default"`},
		{"key text", rdb, []setnxlock.Option{setnxlock.KeyText(nil)}, "KeyText of nil"},
		{"two faults", ring, []setnxlock.Option{setnxlock.KeyText(nil)}, "KeyText of nil"},
	} {
		if _, err := setnxlock.New(tt.rdb, tt.opts...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: New = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}
