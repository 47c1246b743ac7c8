package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// red is five independent servers.
type red struct {
	tb      testing.TB
	servers []*redistest.Server
	rdbs    []*redis.Client
}

func newRed(tb testing.TB) *red {
	tb.Helper()
	r := &red{tb: tb}
	for range 5 {
		s := redistest.Start(tb)
		r.servers = append(r.servers, s)
		r.rdbs = append(r.rdbs, s.Client(tb))
	}
	return r
}

// clients returns the clients of one program.
func (r *red) clients(change func(*redis.Options), opts ...redisson.Option) []*redisson.Client {
	r.tb.Helper()
	var clients []*redisson.Client
	for _, s := range r.servers {
		clients = append(clients, onClient(r.tb, s.Client(r.tb, impatient, change), opts...))
	}
	return clients
}

// impatient keeps go-redis from trying for seconds to reach a server that is down.
func impatient(o *redis.Options) { o.DialerRetries, o.MaxRetries = 1, -1 }

// lock returns the lock k of one more program.
func (r *red) lock(opts ...redisson.Option) *redisson.RedLock {
	r.tb.Helper()
	return redLock(r.tb, r.clients(func(*redis.Options) {}, opts...)...)
}

func redLock(tb testing.TB, clients ...*redisson.Client) *redisson.RedLock {
	tb.Helper()
	var locks []redisson.Member
	for _, c := range clients {
		locks = append(locks, c.Lock("k"))
	}
	l, err := redisson.NewRedLock(locks...)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// each does the same to some of the servers.
func (r *red) each(f func(*redistest.Server, testing.TB), at ...int) {
	r.tb.Helper()
	for _, i := range at {
		f(r.servers[i], r.tb)
	}
}

// takeEverywhere takes l until all servers have it: one that answers after the client's timeout is left out of a hold.
func (r *red) takeEverywhere(l *redisson.RedLock) (held context.Context) {
	r.tb.Helper()
	for range 10 {
		held = mustTake(r.tb, l)
		for range 200 {
			if r.held(all()...) == len(r.servers) {
				return held
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := l.Unlock(held); err != nil {
			r.tb.Fatal(err)
		}
	}
	r.tb.Fatal("one of the servers never has the lock")
	return nil
}

// held counts the servers that have the lock.
func (r *red) held(at ...int) int {
	n := 0
	for _, i := range at {
		n += len(redissonKeys(r.tb, r.rdbs[i]))
	}
	return n
}

// expectFree waits until none of the servers has the lock.
func (r *red) expectFree(at ...int) {
	r.tb.Helper()
	eventually(r.tb, fmt.Sprintf("none of the servers %d has the lock", at), func() bool { return r.held(at...) == 0 })
}

func all() []int { return []int{0, 1, 2, 3, 4} }

// expectSoon runs f, which must not wait for servers that do not answer. The time in which this process stood still does not count.
func expectSoon(tb testing.TB, what string, limit time.Duration, f func()) {
	tb.Helper()
	start := time.Now()
	f()
	if d := ran(start); d > limit {
		tb.Errorf("%s took %v, want less than %v", what, d, limit)
	}
}

func TestRedLockExcludes(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	ours, theirs := r.lock(), r.lock()
	held := r.takeEverywhere(ours)
	expectBusy(t, theirs, 0)
	expectSoon(t, "TryLock", time.Second, func() { expectBusy(t, theirs, 100*time.Millisecond) })
	inner, ok, err := ours.TryLock(held, 0, 0)
	if !ok || err != nil {
		t.Fatalf("TryLock under a hold = %v, %v", ok, err)
	}
	mustGive(t, inner, ours)
	expectBusy(t, theirs, 0)
	got := make(chan context.Context)
	go func() { got <- mustTake(t, theirs) }()
	<-time.After(50 * time.Millisecond)
	mustGive(t, held, ours)
	mustGive(t, <-got, theirs)
	r.expectFree(all()...)
	if !errors.Is(context.Cause(held), context.Canceled) {
		t.Errorf("after Unlock the context ended with %v", context.Cause(held))
	}
	for _, ctx := range []context.Context{held, t.Context()} {
		if err := ours.Unlock(ctx); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("Unlock of what is not held = %v, want ErrNotHeld", err)
		}
	}
}

// Others have some of the servers, and so the outcome: with two of theirs the lock can be had, with three it can't.
func TestRedLockCountsTheMajority(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	ours, theirs := r.lock(), r.clients(func(*redis.Options) {})
	mustLock(t, theirs[0].Lock("k"))
	mustLock(t, theirs[1].Lock("k"))
	held := mustTake(t, ours)
	mustGive(t, held, ours)
	r.expectFree(2, 3, 4)
	if _, ok, err := theirs[2].Lock("k").TryLock(t.Context(), 0, 20*time.Second); !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	expectBusy(t, ours, 50*time.Millisecond)
	r.expectFree(3, 4)
	mustLock(t, theirs[3].Lock("k"))
	mustLock(t, theirs[4].Lock("k"))
	expectBusy(t, ours, 0)
}

// Two servers are held by others and one is down: whoever answers first, the lock is busy, because a majority is there
// to say so.
func TestRedLockBusyIsNoOutage(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	theirs := r.clients(func(*redis.Options) {})
	mustLock(t, theirs[0].Lock("k"))
	mustLock(t, theirs[1].Lock("k"))
	l := r.lock()
	mustGive(t, mustTake(t, l), l)
	r.each((*redistest.Server).Kill, 2)
	for range 50 {
		expectBusy(t, l, 0)
	}
}

func TestRedLockRefuses(t *testing.T) {
	s := redistest.Any(t)
	a, b, c := newClient(t, s), newClient(t, s), newClient(t, s)
	for _, tt := range []struct {
		locks []redisson.Member
		want  string
	}{
		{nil, "at least 3"},
		{[]redisson.Member{a.Lock("k"), b.Lock("k")}, "at least 3"},
		{[]redisson.Member{a.Lock("k"), b.Lock("k"), nil}, "is nil"},
		{[]redisson.Member{a.Lock("k"), b.Lock("k"), c.Lock("k"), a.Lock("l")}, "not independent"},
	} {
		if _, err := redisson.NewRedLock(tt.locks...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("NewRedLock(%v) = %v, want an error with %q", tt.locks, err, tt.want)
		}
	}
	if _, ok, err := redLock(t, a, b, c).TryLock(t.Context(), 0, 2*time.Millisecond); ok || err == nil || !strings.Contains(err.Error(), "drift") {
		t.Errorf("TryLock with a lease of 2ms = %v, %v, want it refused", ok, err)
	}
	expectKeys(t, s.Client(t))
}

// Two servers are down, or do not answer: the lock works as if they were not there, without waiting for them.
func TestRedLockWithAMinorityAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		away func(*redistest.Server, testing.TB)
	}{
		{"killed", (*redistest.Server).Kill},
		{"paused", (*redistest.Server).Pause},
	} {
		for _, change := range setups[1:3] {
			t.Run(tt.name+", "+change.name, func(t *testing.T) {
				t.Parallel()
				r := newRed(t)
				l := redLock(t, r.clients(change.change)...)
				mustGive(t, mustTake(t, l), l) // connects
				r.expectFree(all()...)
				during := mustTake(t, l)
				r.each(tt.away, 0, 3)
				expectSoon(t, "Unlock", time.Second, func() { mustGive(t, during, l) })
				for range 3 {
					expectSoon(t, "Lock and Unlock", time.Second, func() { mustGive(t, mustTake(t, l), l) })
				}
				r.expectFree(1, 2, 4)
				if tt.name == "paused" {
					r.each((*redistest.Server).Resume, 0, 3)
					r.expectFree(all()...)
				}
			})
		}
	}
}

// Three servers are away: that is an outage and not a busy lock, and what it left is given back, also on those that did
// not answer.
func TestRedLockWithAMajorityAway(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	l := r.lock(redisson.Timeout(400 * time.Millisecond))
	mustGive(t, mustTake(t, l), l)
	r.each((*redistest.Server).Pause, 0, 1, 2)
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		expectSoon(t, "TryLock", 4*time.Second, func() {
			if _, ok, err := l.TryLock(t.Context(), wait, 0); ok || err == nil {
				t.Errorf("TryLock = %v, %v, want an error", ok, err)
			}
		})
		r.expectFree(3, 4)
	}
	r.each((*redistest.Server).Resume, 0, 1, 2)
	r.expectFree(all()...)
	r.each((*redistest.Server).Kill, 0, 1, 2)
	_, err := l.Lock(t.Context())
	if err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Lock = %v, want an error of the connections", err)
	}
	errGone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(100*time.Millisecond, func() { cancel(errGone) })
	expectSoon(t, "cancelled Lock", 300*time.Millisecond, func() {
		if _, err := l.Lock(ctx); !errors.Is(err, errGone) {
			t.Errorf("Lock = %v, want the cause of its context", err)
		}
	})
	r.expectFree(3, 4)
}

// A short outage of the majority is waited out.
func TestRedLockOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	l := r.lock()
	mustGive(t, mustTake(t, l), l)
	r.each((*redistest.Server).Pause, 0, 1, 2)
	time.AfterFunc(700*time.Millisecond, func() { r.each((*redistest.Server).Resume, 0, 1, 2) })
	mustGive(t, mustTake(t, l), l)
	r.expectFree(all()...)
}

func TestRedLockCanceledWhileBusy(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	held := r.takeEverywhere(r.lock())
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	ours := r.lock()
	expectSoon(t, "cancelled Lock", time.Second, func() {
		if _, err := ours.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v, want DeadlineExceeded", err)
		}
	})
	if held.Err() != nil {
		t.Errorf("the holder was disturbed: %v", context.Cause(held))
	}
}

// The hold outlives the loss of two servers and is renewed on the others; with the third it ends, in time.
func TestRedLockIsLostWithItsMajority(t *testing.T) {
	t.Parallel()
	const timeout = 1200 * time.Millisecond
	r := newRed(t)
	l := r.lock(redisson.WatchdogTimeout(timeout), redisson.Timeout(600*time.Millisecond))
	held := r.takeEverywhere(l)
	r.each((*redistest.Server).Kill, 1, 4)
	<-time.After(2 * timeout)
	if held.Err() != nil {
		t.Fatalf("lost with two servers of five: %v", context.Cause(held))
	}
	if r.held(0, 2, 3) != 3 {
		t.Error("not renewed on the others")
	}
	fault := time.Now()
	r.each((*redistest.Server).Pause, 0)
	cause := awaitEnd(t, held, 10*time.Second)
	if d := time.Since(fault); d >= timeout {
		t.Errorf("notified %v after the fault, when the lease of %v may have been over", d, timeout)
	}
	if lost, ok := errors.AsType[*lock.LostError](cause); !ok || lost.Held < 2*timeout {
		t.Errorf("cause = %v, want a LostError with the time held", cause)
	}
	expectSoon(t, "Unlock", time.Second, func() {
		if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Unlock = %v, want ErrLost", err)
		}
	})
	r.expectFree(2, 3)
	r.each((*redistest.Server).Resume, 0)
	r.expectFree(0, 2, 3)
}

func TestRedLockForceUnlocked(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	clients := r.clients(func(*redis.Options) {})
	l := redLock(t, clients...)
	force := func(at ...int) {
		for _, i := range at {
			if ok, err := clients[i].Lock("k").ForceUnlock(t.Context()); !ok || err != nil {
				t.Errorf("ForceUnlock = %v, %v", ok, err)
			}
		}
	}
	held := r.takeEverywhere(l)
	force(0, 1)
	<-time.After(20 * time.Millisecond)
	mustGive(t, held, l) // with three of five
	r.expectFree(all()...)

	held = r.takeEverywhere(l)
	force(0, 1, 2)
	if cause := awaitEnd(t, held, time.Second); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("context ended with %v, want ErrLost", cause)
	}
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
	r.expectFree(all()...)

	held = r.takeEverywhere(l)
	for _, rdb := range r.rdbs[:3] { // unseen by the clients
		rdb.Del(t.Context(), "k")
	}
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock of what had been removed = %v, want ErrLost", err)
	}
	r.expectFree(all()...)
}

// A lease that is not renewed ends before it is over on any of the servers, drift and margin included.
func TestRedLockLease(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	l := r.lock()
	mustGive(t, mustTake(t, l), l)
	const lease = time.Second
	start := time.Now()
	held, ok, err := l.TryLock(t.Context(), 0, lease)
	if !ok || err != nil {
		t.Fatalf("TryLock = %v, %v", ok, err)
	}
	cause := awaitEnd(t, held, 10*time.Second)
	if d := ran(start); d >= lease || time.Since(start) < lease*8/10 || !errors.Is(cause, lock.ErrLost) {
		t.Errorf("ended with %v after %v, want ErrLost before %v", cause, d, lease)
	}
	other := r.lock()
	var got context.Context
	eventually(t, "the servers answer", func() bool { got, ok, err = other.TryLock(t.Context(), 0, 0); return err == nil })
	if ok && time.Since(start) < lease {
		t.Error("TryLock = true, want false as long as the servers have the lock")
	} else if ok { // on a machine that stood still meanwhile
		mustGive(t, got, other)
	}
	r.expectFree(all()...)
	if err := l.Unlock(held); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Unlock = %v, want ErrLost", err)
	}
}

// The answers of one server are cut: once, which a repetition makes up for, and for good.
func TestRedLockAnswerLost(t *testing.T) {
	t.Parallel()
	r := newRed(t)
	p := r.servers[2].Front(t)
	clients := r.clients(func(*redis.Options) {})
	clients[2] = onClient(t, r.servers[2].Client(t, func(o *redis.Options) { o.Addr = p.Addr }))
	l := redLock(t, clients...)
	mustGive(t, mustTake(t, l), l)
	r.expectFree(all()...)
	for _, cuts := range []int{1, 1, 100} {
		p.CutReply("evalsha", cuts)
		held := mustTake(t, l)
		p.CutReply("evalsha", cuts)
		mustGive(t, held, l)
	}
	r.expectFree(0, 1, 3, 4)
	p.CutReply("", 0)
	r.expectFree(all()...)
}
