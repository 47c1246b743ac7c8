package redisson_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/locktest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
	"github.com/redis/go-redis/v9"
)

func newClient(tb testing.TB, s *redistest.Server, opts ...redisson.Option) *redisson.Client {
	tb.Helper()
	return onClient(tb, s.Client(tb), opts...)
}

func onClient(tb testing.TB, rdb redis.UniversalClient, opts ...redisson.Option) *redisson.Client {
	tb.Helper()
	c, err := redisson.New(rdb, append([]redisson.Option{redisson.Patient}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits until ok, or fails the test after a while.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	within(tb, 10*time.Second, what, ok)
}

func within(tb testing.TB, limit time.Duration, what string, ok func() bool) {
	tb.Helper()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(limit); !ok(); <-ticker.C {
		if time.Now().After(deadline) {
			tb.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// awaitEnd waits until ctx ends and returns its cause.
func awaitEnd(tb testing.TB, ctx context.Context, limit time.Duration) error {
	tb.Helper()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(limit):
		tb.Fatalf("context did not end within %v", limit)
		return nil
	}
}

// behind returns a client that reaches the server through a proxy.
func behind(tb testing.TB, s *redistest.Server, opts ...redisson.Option) (*redisson.Client, *redistest.Proxy) {
	tb.Helper()
	p := s.Front(tb)
	return onClient(tb, s.Client(tb, func(o *redis.Options) { o.Addr = p.Addr }), opts...), p
}

// naming is what a request that names the key contains.
func naming(key string) string { return fmt.Sprintf("\r\n$%d\r\n%s\r\n", len(key), key) }

// answered asks again where a machine that stands still lets no answer through in time, or none of a replica's.
func answered(tb testing.TB, what any, ask func() error) {
	tb.Helper()
	for start := time.Now(); ; {
		err := ask()
		switch {
		case err == nil:
			return
		case !errors.Is(err, transport.ErrNoAnswer) && !errors.Is(err, redisson.ErrNotReplicated) || time.Since(start) > 10*time.Second:
			tb.Fatalf("%+v: %v", what, err)
		}
		tb.Logf("%+v: %v", what, err)
	}
}

// over waits for the end of something, whatever that is.
func over[T any](end <-chan T) { <-end }

// acquire takes a lock that is free, or soon will be.
func acquire(ctx context.Context, tb testing.TB, c *redisson.Client, r lock.Request) (h lock.Hold) {
	tb.Helper()
	r.Wait = cmp.Or(r.Wait, 10*time.Second)
	answered(tb, r, func() (err error) { h, err = c.Acquire(ctx, r); return err })
	return h
}

// expectHeldByOthers checks that others have what r asks for.
func expectHeldByOthers(ctx context.Context, tb testing.TB, what string, c *redisson.Client, r lock.Request) {
	tb.Helper()
	answered(tb, what, func() error {
		_, err := c.Acquire(ctx, r)
		if errors.Is(err, lock.ErrBusy) {
			return nil
		}
		return cmp.Or(err, errors.New("want ErrBusy"))
	})
}

// beneath is a context for calls that stay under h after its end.
func beneath(h lock.Hold) context.Context { return context.WithoutCancel(h.Context()) }

func release(tb testing.TB, h lock.Hold) {
	tb.Helper()
	if err := h.Release(context.Background()); err != nil {
		tb.Errorf("Release: %v", err)
	}
}

// locker is what all of Redisson's locks can do.
type locker interface {
	Lock(ctx context.Context) (context.Context, error)
	Unlock(held context.Context) error
}

func mustLock(tb testing.TB, l locker) context.Context {
	tb.Helper()
	return mustLockAgain(tb, l, context.Background())
}

// mustLockAgain locks l for the holder whose context ctx is.
func mustLockAgain(tb testing.TB, l locker, ctx context.Context) (held context.Context) {
	tb.Helper()
	answered(tb, "Lock", func() (err error) { held, err = l.Lock(ctx); return err })
	return held
}

func mustUnlock(tb testing.TB, l locker, held context.Context) {
	tb.Helper()
	if err := l.Unlock(held); err != nil {
		tb.Errorf("Unlock: %v", err)
	}
}

func keys(tb testing.TB, rdb *redis.Client) []string {
	tb.Helper()
	all, err := rdb.Keys(context.Background(), "*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(all, func(k string) bool { return strings.HasPrefix(k, "latchkey:redistest:") })
}

func subscriptions(tb testing.TB, rdb *redis.Client) []string {
	tb.Helper()
	all, err := rdb.PubSubChannels(context.Background(), "redisson*").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// steady is a client for tests of what locks are, and not of outages: what got no answer in time, as the machine was busy, is asked again.
type steady struct{ *redisson.Client }

func (s steady) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	for {
		if h, err := s.Client.Acquire(ctx, r); !errors.Is(err, transport.ErrNoAnswer) || ctx.Err() != nil {
			return h, err
		}
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, func(t *testing.T) lock.Locker {
		return steady{newClient(t, redistest.Any(t), redisson.WatchdogTimeout(2*time.Second))}
	}, locktest.Kinds(lock.Exclusive, lock.Fair, lock.Read, lock.Write, lock.Fenced, lock.Spin, lock.Permit))
}

// TestBusyNamesTheCallOfThisClient has one client that holds a lock, which it and another one are refused. Only the first knows which call
// that is, also after the lock has passed from one of its calls to the next.
func TestBusyNamesTheCallOfThisClient(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	here, elsewhere := newClient(t, s, redisson.MaxWaiters(1, 1)), newClient(t, s)
	for _, r := range allKinds() {
		r.Key, r.Holder, r.Wait = r.Kind.String(), "first", 0
		rival := r
		rival.Holder = "rival"
		if r.Kind == lock.Read {
			rival.Kind = lock.Write
		}
		expect := func(what string, err error, here bool, holder string) {
			t.Helper()
			if busy, ok := errors.AsType[*lock.BusyError](err); !ok || busy.Here != here || busy.Holder != holder {
				t.Errorf("%v, %s: %v, want busy with Here = %v and Holder = %q", r.Kind, what, err, here, holder)
			}
		}
		first := acquire(t.Context(), t, here, r)
		expect("the same client", second(here.Acquire(t.Context(), rival)), true, "first")
		expect("Peek of the same client", here.Peek(t.Context(), rival), true, "first")
		expect("another client", second(elsewhere.Acquire(t.Context(), rival)), false, "")
		expect("Peek of another client", elsewhere.Peek(t.Context(), rival), false, "")
		next := make(chan lock.Hold)
		go func() {
			r := rival
			r.Holder, r.Wait = "next", time.Minute
			h, _ := here.Acquire(t.Context(), r)
			next <- h
		}()
		within(t, 10*time.Second, "the next call waits", func() bool { n, _ := redisson.Waiting(here); return n == 1 })
		release(t, first)
		h := <-next
		expect("the next call's", second(here.Acquire(t.Context(), rival)), true, "next")
		release(t, h)
		h = acquire(t.Context(), t, elsewhere, r)
		expect("another client's", second(here.Acquire(t.Context(), rival)), false, "")
		release(t, h)
	}
}

func TestNewRefuses(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	for _, tt := range []struct {
		name string
		rdb  redis.UniversalClient
		opt  redisson.Option
		want string
	}{
		{"nil client", nil, redisson.Timeout(time.Second), "no Redis client"},
		{"ring", ring, redisson.Timeout(time.Second), "two holders could have one lock"},
		{"sharded", rdb, redisson.ShardedPubSub(redisson.ShardedOn), "in a Redis Cluster only"},
		{"replicas", rdb, redisson.SyncReplicas(0, time.Second), "SyncReplicas of 0 replicas"},
		{"sync timeout", rdb, redisson.SyncReplicas(1, redisson.DefaultTimeout), "less than the client's timeout"},
		{"watchdog", rdb, redisson.WatchdogTimeout(time.Millisecond), "watchdog timeout 1ms is under 30ms"},
		{"timeout", rdb, redisson.Timeout(0), "timeout 0s is under 1ms"},
		{"mapper", rdb, redisson.NameMapper(nil), "name mapper is nil"},
		{"negative waiters", rdb, redisson.MaxWaiters(-1, 0), "MaxWaiters(-1, 0): want positive numbers"},
		{"negative waiters in all", rdb, redisson.MaxWaiters(0, -1), "MaxWaiters(0, -1): want positive numbers"},
	} {
		if _, err := redisson.New(tt.rdb, tt.opt); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: New = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
}

// wrapper is a client that New can't know.
type wrapper struct{ redis.UniversalClient }

// What New does not know may send scripts to wherever it likes. It says so, and does not panic.
func TestNewRefusesUnknownClients(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer cluster.Close()
	unknown := map[string]redis.UniversalClient{"wrapped client": wrapper{rdb}, "wrapped cluster": wrapper{cluster}}
	for name, pipeline := range map[string]func() (*redis.AutoPipeliner, error){
		"AutoPipeline": rdb.AutoPipeline, "AsyncAutoPipeline": rdb.AsyncAutoPipeline,
		"AutoPipeline of a cluster": cluster.AutoPipeline, "AsyncAutoPipeline of a cluster": cluster.AsyncAutoPipeline,
	} {
		p, err := pipeline()
		check(t, err)
		unknown[name] = p
	}
	for name, rdb := range unknown {
		expectRefusal(t, name, rdb, fmt.Sprintf("%T", rdb), "*redis.ClusterClient") // what it is, or what it should be
	}
	expectRefusal(t, "nil client", (*redis.Client)(nil), "nil", "no Redis client")
	expectRefusal(t, "nil cluster", (*redis.ClusterClient)(nil), "nil", "no Redis client")
}

// expectRefusal checks that the error names one of the reasons.
func expectRefusal(t *testing.T, name string, rdb redis.UniversalClient, reasons ...string) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: New panics: %v", name, p)
		}
	}()
	c, err := redisson.New(rdb)
	if err == nil {
		_ = c.Close()
	}
	if err == nil || !slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(err.Error(), r) }) {
		t.Errorf("%s: New = %v, want a refusal with one of %q", name, err, reasons)
	}
}

func TestAcquireRefuses(t *testing.T) {
	s := redistest.Any(t)
	c := newClient(t, s)
	for _, tt := range []struct {
		name string
		r    lock.Request
		want string
	}{
		{"no key", lock.Request{}, "without a key"},
		{"short lease", lock.Request{Key: "k", Lease: time.Microsecond}, "under a millisecond"},
		{"negative lease", lock.Request{Key: "k", Lease: -time.Second}, "negative lease"},
		{"kind", lock.Request{Key: "k", Kind: 99}, "unknown kind"},
		{"permit without a limit", lock.Request{Key: "k", Kind: lock.Permit}, "limit of at least 1"},
	} {
		if _, err := c.Acquire(t.Context(), tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Acquire = %v, want an error with %q", tt.name, err, tt.want)
		}
	}
	if _, err := c.Lock("").Lock(t.Context()); err == nil {
		t.Error("Lock of an empty name succeeded")
	}
	if got := keys(t, s.Client(t)); len(got) != 0 {
		t.Errorf("keys after refusals: %q", got)
	}
}

func TestClientID(t *testing.T) {
	s := redistest.Any(t)
	v4 := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	a, b := newClient(t, s).ID(), newClient(t, s).ID()
	if !v4.MatchString(a) || a == b {
		t.Errorf("ids %q and %q, want two different version 4 UUIDs", a, b)
	}
}

func TestNameMapper(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	c := newClient(t, s, redisson.NameMapper(func(name string) string { return "app:" + name }))
	l := c.Lock("order")
	held := mustLock(t, l)
	if got := keys(t, rdb); !slices.Equal(got, []string{"app:order"}) {
		t.Errorf("keys = %q, want app:order", got)
	}
	if l.Name() != "order" {
		t.Errorf("Name = %q, want the name as given", l.Name())
	}
	mustUnlock(t, l, held)
}

func TestCloseEndsWaitersAndHolds(t *testing.T) {
	s := redistest.Start(t) // miniredis has goroutines in this process
	rdb := s.Client(t)
	before := runtime.NumGoroutine()
	c, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	held := mustLock(t, c.Lock("k"))
	waiting := make(chan error)
	go func() {
		_, err := c.Lock("k").Lock(context.Background())
		waiting <- err
	}()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("waiter: %v, want ErrClosed", err)
	}
	if cause := context.Cause(held); !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, redisson.ErrClosed) {
		t.Errorf("hold ended with %v, want ErrLost for the reason ErrClosed", cause)
	}
	if _, err := c.Lock("other").Lock(context.Background()); !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Lock after Close = %v, want ErrClosed", err)
	}
	if got := keys(t, rdb); !slices.Equal(got, []string{"k"}) {
		t.Errorf("keys after Close = %q, want the held lock to stay", got)
	}
	if err := c.Lock("k").Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock after Close = %v, want ErrLost", err)
	}
	eventually(t, "the released lock is gone", func() bool { return len(keys(t, rdb)) == 0 })
	if err := c.Close(); err != nil {
		t.Errorf("second Close = %v", err)
	}
	eventually(t, "no goroutine of the client is left", func() bool { return runtime.NumGoroutine() <= before+1 })
}
