package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func TestRenewedUntilReleased(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	rdb := s.Client(t)
	const timeout = time.Second
	l := newClient(t, s, redisson.WatchdogTimeout(timeout)).Lock("k")
	acquire, cancel := context.WithCancel(t.Context())
	held, err := l.Lock(context.WithoutCancel(acquire))
	if err != nil {
		t.Fatal(err)
	}
	cancel() // the watchdog has a life of its own
	for deadline := time.Now().Add(3 * timeout); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if d := rdb.PTTL(t.Context(), "k").Val(); d <= 0 || d > timeout {
			t.Fatalf("PTTL = %v, want at most %v while the lock is held", d, timeout)
		}
	}
	if held.Err() != nil {
		t.Fatalf("hold ended: %v", context.Cause(held))
	}
	mustUnlock(t, l, held)
	<-time.After(timeout)
	if got := keys(t, rdb); len(got) != 0 {
		t.Errorf("keys = %q: a released lock was renewed", got)
	}
}

// The outer hold is renewed; an inner one with a lease of its own ends, and takes nothing with it.
func TestInnerLeaseEndsAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Any(t)
	l := newClient(t, s, redisson.WatchdogTimeout(600*time.Millisecond)).Lock("k")
	outer := mustLock(t, l)
	inner, ok, err := l.TryLock(outer, 0, 200*time.Millisecond)
	if !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	if cause := awaitEnd(t, inner, 10*time.Second); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("inner hold ended with %v, want ErrLost", cause)
	}
	<-time.After(time.Second) // more than the watchdog's timeout
	if outer.Err() != nil {
		t.Errorf("outer hold ended: %v", context.Cause(outer))
	}
	if err := l.Unlock(inner); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock of the inner hold = %v, want ErrLost", err)
	}
	mustUnlock(t, l, outer)
	if got := keys(t, s.Client(t)); len(got) != 0 {
		t.Errorf("keys = %q", got)
	}
}

// Whatever happens to Redis, the holder is notified before the lease that Redis was last given can be over.
func TestLossIsToldInTime(t *testing.T) {
	t.Parallel()
	const timeout = 3 * time.Second
	for _, tt := range []struct {
		name  string
		fault func(*testing.T, *redistest.Server, *redistest.Proxy)
	}{
		{"killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Kill(t) }},
		{"paused", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) { s.Pause(t) }},
		{"unreachable", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) { p.Freeze() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := redistest.Start(t)
			p := s.Front(t)
			rdb := s.Client(t, func(o *redis.Options) { o.Addr = p.Addr })
			l := onClient(t, rdb, redisson.WatchdogTimeout(timeout), redisson.Timeout(time.Second)).Lock("k")
			var held context.Context
			eventually(t, "a machine that stands still lets the lock be had", func() (had bool) {
				held, had, _ = l.TryLock(t.Context(), 0, 0)
				return had
			})
			<-time.After(timeout / 2) // a renewal has come in between
			fault := time.Now()
			tt.fault(t, s, p)
			cause := awaitEnd(t, held, 10*time.Second)
			// The last renewal was before the fault, so the lease in Redis ends within timeout of it.
			if d := time.Since(fault); d >= timeout {
				t.Errorf("notified %v after the fault, when the lease of %v may have been over", d, timeout)
			}
			if lost, ok := errors.AsType[*lock.LostError](cause); !ok || lost.Held < timeout/2 {
				t.Errorf("cause = %#v, want a LostError with the time held", cause)
			}
			start := time.Now()
			if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
				t.Errorf("Unlock = %v, want ErrLost", err)
			}
			if d := ran(start); d > 2*time.Second {
				t.Errorf("Unlock of a lost lock took %v", d)
			}
		})
	}
}

// Short outages are bridged: a renewal is tried again until the lease would end. An outage begins right after a renewal, and ends when
// the next one is overdue by Redis' own clock. Then the client has still over half of the lease, whatever else the machine does.
func TestShortOutagesAreBridged(t *testing.T) {
	t.Parallel()
	const watchdog = 9 * time.Second
	s := redistest.Start(t)
	rdb := s.Client(t)
	c, p := behind(t, s, redisson.WatchdogTimeout(watchdog))
	l := c.Lock("k")
	held := mustLock(t, l)
	for range 2 {
		p.Drop()
		p.Freeze()
		eventually(t, "a renewal is overdue", func() bool { return rdb.PTTL(t.Context(), "k").Val() < watchdog*6/10 })
		p.Drop() // with the renewal that has not arrived
		p.Thaw()
		eventually(t, "the client has heard of a renewal", func() bool {
			return redisson.Left(held, c, "k", lock.Exclusive) > watchdog*8/10 || held.Err() != nil
		})
	}
	if held.Err() != nil {
		t.Errorf("hold ended: %v", context.Cause(held))
	}
	mustUnlock(t, l, held)
}

// After an outage, everything works without a restart.
func TestServerComesBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, redisson.WatchdogTimeout(time.Second))
	l := c.Lock("k")
	held := mustLock(t, l)
	waiting, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error)
	go func() {
		_, err := l.Lock(waiting)
		failed <- err
	}()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, s.Client(t))) == 1 })
	s.Kill(t)
	if cause := awaitEnd(t, held, 10*time.Second); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("hold ended with %v, want ErrLost", cause)
	}
	if err := <-failed; err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("the waiter got %v, want an error of the connection", err)
	}
	if _, ok, err := l.TryLock(t.Context(), 0, 0); ok || err == nil {
		t.Errorf("TryLock without a server = %v, %v", ok, err)
	}
	s.Restart(t)
	// After many failures go-redis dials no more than once a second, and answers with the last error meanwhile.
	eventually(t, "the lock can be had again", func() bool {
		again, err := l.Lock(t.Context())
		held = again
		return err == nil
	})
	got := lockAsync(t, l)
	eventually(t, "waiter subscribes again", func() bool { return len(subscriptions(t, s.Client(t))) == 1 })
	mustUnlock(t, l, held)
	expectHeld(t, l, got)
}

// A holder that lost its lock must neither make it again nor prolong the next holder's.
func TestLostLockIsNotRenewed(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s, redisson.WatchdogTimeout(600*time.Millisecond)).Lock("k")
	held := mustLock(t, l)
	rdb.Del(t.Context(), "k")
	rdb.HSet(t.Context(), "k", "somebody else:1", 1)
	rdb.PExpire(t.Context(), "k", time.Minute)
	cause := awaitEnd(t, held, 10*time.Second)
	if lost, ok := errors.AsType[*lock.LostError](cause); !ok || lost.Held > 600*time.Millisecond {
		t.Errorf("cause = %v, want a LostError from the first renewal", cause)
	}
	if d := rdb.PTTL(t.Context(), "k").Val(); d < 50*time.Second {
		t.Errorf("the next holder's lease became %v", d)
	}
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
	if holder, _ := hash(t, rdb, "k"); holder != "somebody else:1" {
		t.Errorf("holder = %q, want the next one untouched", holder)
	}
}

// A lock that is found gone by a re-entry, before any renewal, is lost for its outer hold and not silently taken again.
func TestReentryNoticesLoss(t *testing.T) {
	s := redistest.Any(t)
	rdb := s.Client(t)
	l := newClient(t, s).Lock("k")
	outer := mustLock(t, l)
	rdb.Del(t.Context(), "k")
	if _, err := l.Lock(outer); !errors.Is(err, lock.ErrLost) {
		t.Errorf("re-entry = %v, want ErrLost", err)
	}
	if !errors.Is(context.Cause(outer), lock.ErrLost) {
		t.Errorf("outer context: %v, want ErrLost", context.Cause(outer))
	}
	if got := keys(t, rdb); len(got) != 0 {
		t.Errorf("keys = %q", got)
	}
}

// Unlock of a lock that was removed by hand says so.
func TestUnlockNoticesLoss(t *testing.T) {
	s := redistest.Any(t)
	l := newClient(t, s).Lock("k")
	held := mustLock(t, l)
	s.Client(t).Del(t.Context(), "k")
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
}

// Of many locks, those that are gone are reported lost, and only those; the others share pipelines and are renewed.
func TestManyLocks(t *testing.T) {
	t.Parallel()
	const all, gone, watchdog = 250, 10, 6 * time.Second
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s, redisson.WatchdogTimeout(watchdog))
	held := make([]context.Context, all)
	for i := range held {
		held[i] = mustLock(t, c.Lock(fmt.Sprint("k", i)))
	}
	for i := range gone {
		rdb.Del(t.Context(), fmt.Sprint("k", i))
	}
	for i := range gone {
		cause := awaitEnd(t, held[i], 2*watchdog)
		if !errors.Is(cause, lock.ErrLost) || !errors.Is(cause, redisson.ErrGone) {
			t.Errorf("lock %d: %v, want what its renewal has found", i, cause)
		}
	}
	awaitRenewals(t, rdb, 2, all-gone)
	for i, ctx := range held[gone:] {
		if ctx.Err() != nil {
			t.Errorf("lock %d ended: %v", i+gone, context.Cause(ctx))
		}
	}
	if got := len(keys(t, rdb)); got != all-gone {
		t.Errorf("%d keys, want %d", got, all-gone)
	}
	for i, ctx := range held[gone:] {
		mustUnlock(t, c.Lock(fmt.Sprint("k", i+gone)), ctx)
	}
}

// awaitRenewals waits until the lease of so many keys has grown again, each so often.
func awaitRenewals(t *testing.T, rdb *redis.Client, often, n int) {
	t.Helper()
	left, grown := map[string]time.Duration{}, map[string]int{}
	within(t, time.Minute, "all locks are renewed", func() bool {
		<-time.After(50 * time.Millisecond)
		all, renewed := keys(t, rdb), 0
		for _, k := range all {
			now := rdb.PTTL(t.Context(), k).Val()
			if now > left[k] && left[k] > 0 {
				grown[k]++
			}
			if left[k] = now; grown[k] >= often {
				renewed++
			}
		}
		return renewed >= n
	})
}

// A stranger writes a value of another type over what a hold has in Redis. No later answer can make that good.
func TestOverwrittenLockIsLost(t *testing.T) {
	t.Parallel()
	const watchdog = 6 * time.Second
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s, redisson.WatchdogTimeout(watchdog))
	renewed, released := map[lock.Kind]lock.Hold{}, map[lock.Kind]lock.Hold{}
	var overwritten []string
	overwrite := func(h map[lock.Kind]lock.Hold, kind lock.Kind, name string) {
		r := lock.Request{Key: name + kind.String(), Kind: kind, Limit: 1}
		h[kind] = acquire(t.Context(), t, c, r)
		if kind == lock.Permit {
			r.Key = "{" + r.Key + "}:timeout"
		}
		check(t, rdb.Set(t.Context(), r.Key, "mine", 0).Err())
		overwritten = append(overwritten, r.Key)
	}
	kinds := append(slices.Clone(nesting), lock.Permit)
	start := time.Now()
	for _, kind := range kinds {
		overwrite(renewed, kind, "renewed ")
		overwrite(released, kind, "released ")
		if err := released[kind].Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%v: Release = %v, want ErrLost", kind, err)
		}
	}
	for _, kind := range kinds {
		cause := awaitEnd(t, renewed[kind].Context(), watchdog)
		if d := time.Since(start); !errors.Is(cause, lock.ErrLost) || d > 2*watchdog/3 {
			t.Errorf("%v: ended after %v with %v, want ErrLost before the second renewal", kind, d, cause)
		}
	}
	for _, key := range overwritten {
		if got, err := rdb.Get(t.Context(), key).Result(); got != "mine" {
			t.Errorf("%s = %q, %v; want the stranger's value", key, got, err)
		}
	}
}

// The lock is taken after the script of ForceUnlock has run, and before its answer has come.
func TestForceUnlockLeavesTheNextHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	other := newClient(t, s)
	rw, otherRW := c.ReadWriteLock("rw"), other.ReadWriteLock("rw")
	for _, tt := range []struct {
		name        string
		mine, first *redisson.Lock
	}{
		{"lock", c.Lock("plain"), other.Lock("plain")},
		{"fair lock", c.FairLock("fair"), other.FairLock("fair")},
		{"spin lock", c.SpinLock("spin"), other.SpinLock("spin")},
		{"read lock", rw.ReadLock(), otherRW.ReadLock()},
		{"write lock", rw.WriteLock(), otherRW.WriteLock()},
	} {
		mustUnlock(t, tt.mine, mustLock(t, tt.mine))
		if _, err := tt.mine.ForceUnlock(t.Context()); err != nil { // loads the scripts
			t.Fatal(err)
		}
		mustLock(t, tt.first)
		answer := p.KeepBackReply(naming(tt.mine.Name()), 0)
		done := make(chan error, 1)
		go func() { done <- second(tt.mine.ForceUnlock(t.Context())) }()
		answer.Await(t)
		held := mustLock(t, tt.mine)
		answer.Deliver(t)
		if err := <-done; err != nil {
			t.Errorf("%s: ForceUnlock = %v", tt.name, err)
		}
		if held.Err() != nil {
			t.Errorf("%s: the hold that was taken after it: %v", tt.name, context.Cause(held))
		}
		if err := tt.mine.Unlock(held); err != nil {
			t.Errorf("%s: Unlock = %v", tt.name, err)
		}
	}
}

// The shortest Extend asks Redis whether the lock is still held, also for a hold that is renewed, and changes nothing else.
func TestShortExtendIsACheck(t *testing.T) {
	s := redistest.Any(t)
	rdb, c := s.Client(t), newClient(t, s)
	for _, r := range []lock.Request{
		{Key: "renewed"}, {Key: "leased", Lease: time.Minute}, {Key: "fair", Kind: lock.Fair}, {Key: "read", Kind: lock.Read},
		{Key: "write", Kind: lock.Write}, {Key: "fenced", Kind: lock.Fenced}, {Key: "permit", Kind: lock.Permit, Limit: 1},
	} {
		h := acquire(t.Context(), t, c, r)
		check := func() error {
			return h.(interface {
				Extend(context.Context, time.Duration) error
			}).Extend(t.Context(), time.Millisecond)
		}
		if err := check(); err != nil || h.Context().Err() != nil {
			t.Errorf("%s: Extend of a held lock = %v, context %v", r.Key, err, h.Context().Err())
		}
		rdb.FlushAll(t.Context())
		if err := check(); !errors.Is(err, lock.ErrLost) || !errors.Is(context.Cause(h.Context()), lock.ErrLost) {
			t.Errorf("%s: Extend of a lost lock = %v, context %v; want ErrLost", r.Key, err, context.Cause(h.Context()))
		}
		if err := h.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s: Release = %v, want ErrLost", r.Key, err)
		}
	}
}
