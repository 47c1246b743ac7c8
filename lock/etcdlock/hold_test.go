package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

type extender interface {
	Extend(ctx context.Context, d time.Duration) error
}

type keeper interface {
	Keep(ctx context.Context, d time.Duration) error
}

// leasesOf returns how many leases the server has.
func leasesOf(tb testing.TB, client *clientv3.Client) int {
	tb.Helper()
	resp, err := client.Leases(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return len(resp.Leases)
}

// Leases that wait for another stay end by themselves.
func TestNothingIsLeftInEtcd(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{})
	client := dial(t, c.Endpoints()...)
	l, other := locker(t, client, etcdlock.Watchdog(2*time.Second)), locker(t, client, etcdlock.Watchdog(2*time.Second))
	for i := range 20 {
		key := fmt.Sprint("k", i)
		h := acquire(t, l, lock.Request{Key: key, Wait: -1})
		fails(t, other, lock.Request{Key: key}, lock.ErrBusy)
		fails(t, other, lock.Request{Key: key, Wait: 10 * time.Millisecond}, lock.ErrBusy)
		if err := h.(extender).Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend() = %v", err)
		}
		release(t, h)
		ctx, cancel := context.WithCancel(t.Context())
		h = acquire(t, l, lock.Request{Key: key, Lease: 3 * time.Second})
		waiter := background(ctx, l, lock.Request{Key: key, Wait: -1})
		waiting(t, client, key, 2)
		cancel()
		if o := <-waiter; !errors.Is(o.err, context.Canceled) {
			t.Errorf("Acquire() = %v, want Canceled", o.err)
		}
		release(t, h)
	}
	eventually(t, func() bool {
		resp, err := client.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && resp.Count == 0
	})
	eventually(t, func() bool { return leasesOf(t, client) == 0 })
}

// The page for users names these costs.
func TestCostOfAPair(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{})
	var mu sync.Mutex
	asked := map[string]int{}
	client := dialWith(t, c.Endpoints(), grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
		conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		mu.Lock()
		asked[path.Base(method)]++
		mu.Unlock()
		return invoke(ctx, method, req, reply, conn, opts...)
	}))
	l := locker(t, client)
	for range 25 {
		release(t, acquire(t, l, lock.Request{Key: "k"}))
		release(t, acquire(t, l, lock.Request{Key: "k", Wait: time.Second}))
	}
	mu.Lock()
	defer mu.Unlock()
	if want := map[string]int{"LeaseGrant": 1, "Txn": 100}; !maps.Equal(asked, want) {
		t.Errorf("50 pairs ask %v, want %v", asked, want)
	}
}

// Somebody removes the key with etcdctl: the next renewal says so.
func TestKeyThatIsRemovedByHandIsALostLock(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	l := locker(t, client, etcdlock.Watchdog(3*time.Second))
	extended, renewed := acquire(t, l, lock.Request{Key: "by-hand-1"}), acquire(t, l, lock.Request{Key: "by-hand-2"})
	for _, key := range []string{"by-hand-1/", "by-hand-2/"} {
		if _, err := client.Delete(t.Context(), key, clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
	}
	if err := extended.(extender).Extend(t.Context(), time.Millisecond); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Extend() = %v, want ErrLost", err)
	}
	select {
	case <-renewed.Context().Done():
	case <-time.After(patience):
		t.Error("nobody tells that the lock is gone")
	}
	for _, h := range []lock.Hold{extended, renewed} {
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Release() = %v, want ErrLost", err)
		}
	}
}

// The lease is the only thing of a stay that somebody else can end without the key's name.
func TestRevokedLeaseIsALostLock(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	h := acquire(t, locker(t, client), lock.Request{Key: "revoked-lease"})
	resp, err := client.Get(t.Context(), "revoked-lease/", clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != 1 {
		t.Fatal(resp, err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release() = %v, want ErrLost", err)
	}
}

// Another length of the lease is another lease, and the place in line is the same.
func TestExtendedAndKeptLocksHaveTheirPlaceAndTheirLease(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	l := locker(t, client)
	const key = "extended"
	h := acquire(t, l, lock.Request{Key: key, Lease: 5 * time.Second})
	next := background(t.Context(), l, lock.Request{Key: key, Wait: -1})
	waiting(t, client, key, 2)
	before := line(t, client, key)
	ttl := func() int64 {
		resp, err := client.Get(t.Context(), key+"/"+before[0])
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
		left, err := client.TimeToLive(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease))
		if err != nil {
			t.Fatal(err)
		}
		return left.TTL
	}
	if err := h.(extender).Extend(t.Context(), 5*time.Minute); err != nil {
		t.Fatal(err)
	}
	if left := ttl(); left < 290 || left > 300 {
		t.Errorf("%ds are left of an extension of 5m", left)
	}
	if err := h.(keeper).Keep(t.Context(), 3*time.Second); err != nil {
		t.Fatal(err)
	}
	if left := ttl(); left > 4 {
		t.Errorf("%ds are left of a lock that is kept for 3s", left)
	}
	if after := line(t, client, key); !slices.Equal(before, after) {
		t.Errorf("line %q has become %q", before, after)
	}
	begun := time.Now()
	release(t, held(t, next))
	if took := time.Since(begun); took < 2*time.Second {
		t.Errorf("a lock that was kept for 3s came free after %v", took)
	}
}

// A watch that begins after its revision was compacted ends at once.
func TestWaiterSurvivesCompaction(t *testing.T) {
	parallel(t)
	c := start(t, etcdtest.Options{})
	client, compacting := dial(t, c.Endpoints()...), dial(t, c.Endpoints()...)
	var watches atomic.Int64
	compacting.Watcher = compactingWatcher{compacting.Watcher, client, &watches}
	for _, r := range []lock.Request{{Key: "c1"}, {Key: "c2", Kind: lock.Permit, Limit: 1}} {
		watches.Store(0)
		h := acquire(t, locker(t, client), r)
		r.Wait = -1
		next := background(t.Context(), locker(t, compacting, etcdlock.Poll(time.Minute)), r)
		waiting(t, client, r.Key, 2)
		eventually(t, func() bool { return watches.Load() > 1 })
		release(t, h)
		release(t, held(t, next))
	}
}

// compactingWatcher has etcd forget the revision of the first watch before it begins.
type compactingWatcher struct {
	clientv3.Watcher
	client  *clientv3.Client
	watches *atomic.Int64
}

func (w compactingWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if w.watches.Add(1) == 1 {
		for range 2 {
			_, _ = w.client.Put(ctx, "compact", "")
		}
		resp, _ := w.client.Put(ctx, "compact", "")
		_, _ = w.client.Compact(ctx, resp.Header.Revision)
	}
	return w.Watcher.Watch(ctx, key, opts...)
}

// The keys of the lock "a/b" are below those of "a".
func TestLocksBelowEachOtherAreStrangers(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	l := locker(t, client, etcdlock.Prefix("nested/"))
	var below []lock.Hold
	for i := range 40 {
		below = append(below, acquire(t, l, lock.Request{Key: fmt.Sprint("a/", i), Wait: time.Second}))
	}
	for _, kind := range []lock.Kind{lock.Exclusive, lock.Read, lock.Write, lock.Permit} {
		r := lock.Request{Key: "a", Kind: kind, Limit: 1}
		h := acquire(t, l, r)
		other := r
		if kind == lock.Read {
			other.Kind = lock.Write
		}
		fails(t, locker(t, client, etcdlock.Prefix("nested/")), other, lock.ErrBusy)
		other.Wait = -1
		next := background(t.Context(), l, other)
		waiting(t, client, "nested/a", len(below)+2)
		release(t, h)
		release(t, held(t, next))
	}
	for _, h := range below {
		release(t, h)
	}
}

// A release wakes the next one and nobody else. Each release is at most a few questions, however long the line.
func TestReleaseWakesOneWaiter(t *testing.T) {
	parallel(t)
	const waiters = 50
	client := dial(t, single(t).Endpoints()...)
	var asked atomic.Int64
	counting := dial(t, single(t).Endpoints()...)
	counting.KV = countingKV{counting.KV, &asked}
	const key = "herd"
	h := acquire(t, locker(t, client), lock.Request{Key: key})
	var line []<-chan outcome
	for i := range waiters {
		line = append(line, background(t.Context(), locker(t, counting, etcdlock.Poll(time.Minute)), lock.Request{Key: key, Wait: -1}))
		waiting(t, client, key, 2+i)
	}
	asked.Store(0)
	for i, next := range line {
		release(t, h)
		h = held(t, next)
		if n := asked.Load(); n > int64(3*(i+1)+waiters) { // a renewal of each may fall in between
			t.Fatalf("%d questions for %d releases", n, i+1)
		}
	}
	release(t, h)
}

// A reader reads the names of those who are no readers, and not of all readers.
func TestReaderAmongReadersAsksOnce(t *testing.T) {
	parallel(t)
	client, counting := dial(t, single(t).Endpoints()...), dial(t, single(t).Endpoints()...)
	var asked atomic.Int64
	counting.KV = countingKV{counting.KV, &asked}
	r := lock.Request{Key: "readers", Kind: lock.Read}
	for range 30 {
		defer release(t, acquire(t, locker(t, client), r))
	}
	for _, wait := range []time.Duration{0, -1} {
		r.Wait = wait
		asked.Store(0)
		h := acquire(t, locker(t, counting), r)
		if n := asked.Load(); n != 1 {
			t.Errorf("wait %v: %d questions, want 1", wait, n)
		}
		release(t, h)
	}
}

type countingKV struct {
	clientv3.KV
	asked *atomic.Int64
}

func (c countingKV) Txn(ctx context.Context) clientv3.Txn {
	c.asked.Add(1)
	return c.KV.Txn(ctx)
}

// What the Locker writes says what it is, for those who look with etcdctl.
func TestEntriesAreLegible(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	l := locker(t, client, etcdlock.Prefix("legible/"), etcdlock.ID("host7-"))
	for kind, want := range map[lock.Kind]string{lock.Exclusive: "latchkey exclusive", lock.Read: "latchkey read", lock.Permit: "latchkey permit 3"} {
		h := acquire(t, l, lock.Request{Key: kind.String(), Kind: kind, Limit: 3})
		resp, err := client.Get(t.Context(), "legible/"+kind.String()+"/", clientv3.WithPrefix())
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatal(resp, err)
		}
		if kv := resp.Kvs[0]; string(kv.Value) != want || !strings.Contains(string(kv.Key), "host7-") {
			t.Errorf("%s = %s, want %s", kv.Key, kv.Value, want)
		}
		release(t, h)
	}
}
