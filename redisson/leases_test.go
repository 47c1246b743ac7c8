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
)

// What a lease in Redis is worth to a holder, when holds are nested, end in any order, and scripts arrive late.

const (
	short = time.Second
	long  = 20 * time.Second
)

// nesting are the kinds that are re-entered by counting.
var nesting = []lock.Kind{lock.Exclusive, lock.Fair, lock.Fenced, lock.Spin, lock.Read, lock.Write}

// expectSafe checks that h is held, and that nobody can have what it excludes.
func expectSafe(t *testing.T, what string, h lock.Hold, rival *redisson.Client, r lock.Request) {
	t.Helper()
	if r.Kind == lock.Read {
		r.Kind = lock.Write
	}
	var other lock.Hold
	var err error
	eventually(t, "Redis answers", func() bool {
		other, err = rival.Acquire(t.Context(), lock.Request{Key: r.Key, Kind: r.Kind})
		return err == nil || errors.Is(err, lock.ErrBusy)
	})
	alive := h.Context().Err() == nil
	if err == nil && alive {
		t.Errorf("%s: two owners", what)
	} else if err == nil || !alive {
		t.Errorf("%s: the hold: %v, and a rival got %v; want the hold alive and ErrBusy", what, context.Cause(h.Context()), err)
	}
	if other != nil {
		_ = other.Release(t.Context())
	}
}

// lateScript is an order of events: a script for a lock is not answered and repeated, and its first copy is on its way
// when the innermost hold with a long lease comes. It reports whether that came in time.
type lateScript struct {
	name string
	run  func(take func(ctx context.Context, lease time.Duration) lock.Hold, keepBack func()) (innermost lock.Hold, inTime bool)
}

func lateScripts(ctx context.Context) []lateScript {
	type taker = func(ctx context.Context, lease time.Duration) lock.Hold
	return []lateScript{
		{"acquire", func(take taker, keepBack func()) (lock.Hold, bool) {
			keepBack()
			outer := take(ctx, short)
			inner := take(beneath(outer), long)
			return inner, outer.Context().Err() == nil
		}},
		{"re-entry", func(take taker, keepBack func()) (lock.Hold, bool) {
			outer := take(ctx, long)
			keepBack()
			first := take(outer.Context(), short)
			err := first.Release(ctx)
			return take(outer.Context(), long), err == nil
		}},
		{"partial release", func(take taker, keepBack func()) (lock.Hold, bool) {
			outer := take(ctx, short)
			first := take(beneath(outer), long)
			keepBack()
			err := first.Release(ctx)
			inner := take(beneath(outer), long)
			return inner, err == nil && outer.Context().Err() == nil
		}},
	}
}

// The first copy arrives while the holds that were there before are still alive, or later. After a cut, the client asks once a second whether its
// short lease is long again: on a busy machine it can be too late, and its hold hears of that. Such ones are played again.
func TestLateScriptShortensNoLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	rival := newClient(t, s)
	var todo []*lateCase
	for _, script := range lateScripts(t.Context()) {
		for _, kind := range nesting {
			todo = append(todo, &lateCase{script: script, kind: kind, when: "soon"}, &lateCase{script: script, kind: kind, when: "late"})
		}
	}
	for round := 1; len(todo) > 0; round++ {
		for _, one := range todo {
			one.schedule(t, c, p)
		}
		for _, when := range []string{"soon", "late"} {
			<-time.After(short/2 + 100*time.Millisecond)
			for _, one := range todo {
				if one.when == when {
					one.late.Deliver(t)
				}
			}
		}
		<-time.After(short + 200*time.Millisecond)
		todo = slices.DeleteFunc(todo, func(one *lateCase) bool {
			if one.innermost.Context().Err() != nil && round < 5 {
				return false
			}
			expectSafe(t, one.asked.Key, one.innermost, rival, one.asked)
			return true
		})
	}
}

type lateCase struct {
	script    lateScript
	kind      lock.Kind
	when      string // the first copy arrives
	tries     int
	asked     lock.Request
	late      *redistest.Late
	innermost lock.Hold
}

// schedule plays until the first copy is on its way. A busy machine may need longer than a short lease, and tries again.
func (one *lateCase) schedule(t *testing.T, c *redisson.Client, p *redistest.Proxy) {
	t.Helper()
	for last := one.tries + 10; one.tries < last; {
		one.tries++
		one.asked = lock.Request{Key: fmt.Sprint(one.script.name, " of ", one.kind, " ", one.tries, ", ", one.when), Kind: one.kind}
		var ok bool
		one.innermost, ok = one.script.run(func(ctx context.Context, lease time.Duration) lock.Hold {
			h, err := c.Acquire(ctx, lock.Request{Key: one.asked.Key, Kind: one.kind, Wait: 10 * time.Second, Lease: lease})
			if (errors.Is(err, lock.ErrLost) || errors.Is(err, redisson.ErrTooLate)) && one.tries < last {
				// The short lease is over: another hold stands in, and the try counts as too slow.
				h, err = c.Acquire(t.Context(), lock.Request{Key: one.asked.Key + " instead", Kind: one.kind, Wait: 10 * time.Second, Lease: lease})
			}
			check(t, err)
			return h
		}, func() { one.late = p.KeepBack(naming(one.asked.Key), 0) })
		if ok {
			return
		}
	}
	t.Fatalf("%s of %v: too slow", one.script.name, one.kind)
}

// The first copy of the release of a read hold arrives when the writer, who goes on, reads again.
func TestLateReadReleaseUnderWriteLeavesLaterReads(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	read, write := lock.Request{Key: "k", Kind: lock.Read}, lock.Request{Key: "k", Kind: lock.Write}
	writing := acquire(t.Context(), t, c, write)
	first := acquire(beneath(writing), t, c, read)
	late := p.KeepBack(naming("k"), 0)
	release(t, first)
	second := acquire(beneath(writing), t, c, read)
	late.Deliver(t)
	release(t, writing)
	expectSafe(t, "read hold after a downgrade", second, newClient(t, s), read)
	release(t, second)
	expectKeys(t, s.Client(t))
}

// A late copy of a read's release under a write does not cut the lease of a write that came after it.
func TestLateReadReleaseUnderWriteCutsNoLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, p := behind(t, s)
	write := func(ctx context.Context, lease time.Duration) lock.Hold {
		return acquire(ctx, t, c, lock.Request{Key: "k", Kind: lock.Write, Lease: lease})
	}
	outer := write(t.Context(), 10*time.Second)
	read := acquire(beneath(outer), t, c, lock.Request{Key: "k", Kind: lock.Read, Lease: short})
	late := p.KeepBack(naming("k"), 0)
	release(t, read)
	inner := write(beneath(outer), 5*long)
	late.Deliver(t)
	if ttl := s.Client(t).PTTL(t.Context(), "k").Val(); ttl < 4*long {
		t.Errorf("the lock lasts %v, and the inner hold has a lease of %v", ttl, 5*long)
	}
	release(t, inner)
	release(t, outer)
}

// Each inner hold comes and goes before the next renewal is due. The outer one must be renewed all the same.
func TestNestedReadHoldsKeepWritersOut(t *testing.T) {
	t.Parallel()
	const watchdog = 2400 * time.Millisecond
	s := redistest.Start(t)
	c, rival := newClient(t, s, redisson.WatchdogTimeout(watchdog)), newClient(t, s)
	read := lock.Request{Key: "k", Kind: lock.Read}
	outer := acquire(t.Context(), t, c, read)
	for start := time.Now(); time.Since(start) < watchdog+700*time.Millisecond; <-time.After(100 * time.Millisecond) {
		inner, err := c.Acquire(outer.Context(), read)
		if err != nil {
			t.Fatalf("re-entry after %v: %v", time.Since(start), err)
		}
		release(t, inner)
		expectSafe(t, "outer read hold", outer, rival, read)
		if t.Failed() {
			t.Fatalf("after %v", time.Since(start))
		}
	}
	release(t, outer)
	expectKeys(t, s.Client(t))
}

// Read holds of one call or of siblings end in any order, and none takes the lease of another one with it.
func TestReadHoldsEndAlone(t *testing.T) {
	t.Parallel()
	const leased = 600 * time.Millisecond
	s := redistest.Start(t)
	c, rival := newClient(t, s), newClient(t, s)
	take := func(ctx context.Context, key string, lease time.Duration) lock.Hold {
		return acquire(ctx, t, c, lock.Request{Key: key, Kind: lock.Read, Lease: lease})
	}
	parent := acquire(t.Context(), t, c, lock.Request{Key: "parent"})
	brief, sibling := take(parent.Context(), "siblings", leased), take(parent.Context(), "siblings", long)
	release(t, brief)

	outer := take(t.Context(), "outer first", leased)
	inner := take(beneath(outer), "outer first", long)
	release(t, outer)

	ended := take(t.Context(), "outer ended", leased)
	middle := take(beneath(ended), "outer ended", long)
	<-ended.Context().Done()
	<-time.After(200 * time.Millisecond) // Redis counts without the margin
	release(t, take(beneath(middle), "outer ended", leased))

	for key, h := range map[string]lock.Hold{"siblings": sibling, "outer first": inner, "outer ended": middle} {
		expectSafe(t, key, h, rival, lock.Request{Key: key, Kind: lock.Read})
		release(t, h)
	}
	release(t, parent)
	expectKeys(t, s.Client(t))
}

// A script that leaves some of the holds does not renew the lease of a read/write lock. When Redis is silent from then on,
// the rest must end before the lease that Redis has.
func TestRestOfAHoldIsNotOverestimated(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c, p := behind(t, s, redisson.WatchdogTimeout(2*time.Second), redisson.Timeout(2*time.Second))
	take := func(ctx context.Context, key string, kind lock.Kind) lock.Hold {
		return acquire(ctx, t, c, lock.Request{Key: key, Kind: kind})
	}
	reading := take(t.Context(), "partial release", lock.Read)
	downgraded := take(t.Context(), "downgrade", lock.Write)
	kept := take(beneath(downgraded), "downgrade", lock.Read)
	writing := take(t.Context(), "read inside a write", lock.Write)
	inside := take(writing.Context(), "read inside a write", lock.Read)
	<-time.After(500 * time.Millisecond) // a renewal is not due yet
	release(t, take(reading.Context(), "partial release", lock.Read))
	release(t, downgraded)
	release(t, inside)
	p.Freeze()
	defer p.Thaw()
	for key, h := range map[string]lock.Hold{"partial release": reading, "downgrade": kept, "read inside a write": writing} {
		eventually(t, "the lease in Redis ends", func() bool { return rdb.Exists(t.Context(), key).Val() == 0 })
		<-time.After(100 * time.Millisecond) // for a slow machine; the margin is as long
		if h.Context().Err() == nil {
			t.Errorf("%s: the hold is alive, and Redis has no lock any more", key)
		}
	}
}

// Nested holds with a shorter lease, or with a renewal that gives a shorter one, leave the outer hold what it was given.
func TestNestedHoldShortensNoLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	c := newClient(t, s, redisson.WatchdogTimeout(900*time.Millisecond))
	take := func(ctx context.Context, r lock.Request, lease time.Duration) lock.Hold {
		r.Lease = lease
		return acquire(ctx, t, c, r)
	}
	expectLease := func(outer lock.Hold, key, after string) {
		t.Helper()
		if d := rdb.PTTL(t.Context(), key).Val(); d < long-5*time.Second || outer.Context().Err() != nil {
			t.Errorf("%s, after %s: %v left of %v, the hold: %v", key, after, d, long, context.Cause(outer.Context()))
		}
	}
	outer, brief := map[string]lock.Hold{}, map[string]lock.Hold{}
	for _, kind := range nesting {
		for _, key := range []string{kind.String(), kind.String() + " with renewals"} {
			r := lock.Request{Key: key, Kind: kind}
			h := take(t.Context(), r, long)
			inner := take(h.Context(), r, short)
			expectLease(h, key, "a re-entry")
			release(t, inner)
			expectLease(h, key, "a partial release")
			if key != kind.String() {
				_ = take(h.Context(), r, 0)
				expectLease(h, key, "a re-entry that is renewed")
			}
			outer[key], brief[key] = h, take(h.Context(), r, short)
		}
	}
	<-time.After(short + 200*time.Millisecond)
	for key, h := range outer {
		if err := brief[key].Release(t.Context()); !errors.Is(err, lock.ErrLost) {
			t.Errorf("%s: Release of the hold whose lease is over = %v, want ErrLost", key, err)
		}
		expectLease(h, key, "the end of an inner lease")
	}
}

// The writer's lease ends while it still reads: that is a downgrade, which lets other readers in, and no writer. They come in when
// the whole lease is over: its margin belongs to the work that has to take notice.
func TestLeasedWriteEndsBesideItsRead(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	s := redistest.Start(t)
	c, rival := newClient(t, s), newClient(t, s)
	asked := time.Now()
	writing := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Write, Lease: lease})
	reading := acquire(beneath(writing), t, c, lock.Request{Key: "k", Kind: lock.Read, Lease: long})
	eventually(t, "another one reads", func() bool {
		other, err := rival.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Read})
		if err == nil {
			release(t, other)
		}
		return err == nil
	})
	if d := time.Since(asked); d < lease {
		t.Errorf("another one read %v after the writer asked for %v", d, lease)
	}
	if writing.Context().Err() == nil {
		t.Error("the writer does not know of the end of its lease")
	}
	expectSafe(t, "the read hold", reading, rival, lock.Request{Key: "k", Kind: lock.Read})
	release(t, reading)
}
