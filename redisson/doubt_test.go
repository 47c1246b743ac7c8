package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// setups are the ways in which a go-redis client may be set up; the lock must not depend on them.
var setups = []struct {
	name   string
	change func(*redis.Options)
}{
	{"default", func(*redis.Options) {}},
	{"no retries", func(o *redis.Options) { o.MaxRetries = -1 }},
	{"context timeouts", func(o *redis.Options) { o.ContextTimeoutEnabled = true }},
	{"RESP2", func(o *redis.Options) { o.Protocol = 2 }},
}

// fragile returns a client that reaches the server through the proxy, with its scripts loaded.
func fragile(t *testing.T, change func(*redis.Options)) (*redisson.Client, *redistest.Proxy, *redis.Client) {
	t.Helper()
	s := redistest.Any(t)
	p := s.Front(t)
	c := onClient(t, s.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }))
	l := c.Lock("k")
	outer := mustLock(t, l)
	inner, err := l.Lock(outer)
	if err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, l, inner)
	mustUnlock(t, l, outer)
	return c, p, s.Client(t)
}

// eachSetup runs a test with each of them.
func eachSetup(t *testing.T, test func(t *testing.T, change func(*redis.Options))) {
	for _, tt := range setups {
		t.Run(tt.name, func(t *testing.T) { test(t, tt.change) })
	}
}

// Each script loses its answer after the server ran it, and is repeated: nothing is counted twice.
func TestAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		l := c.Lock("k")
		cut := func() { p.CutReply("evalsha", 1) }
		used := func(what string) {
			t.Helper()
			if p.Cuts() != 0 {
				t.Errorf("%s: no answer was cut", what)
			}
		}
		count := func(want string) {
			t.Helper()
			if _, got := hash(t, rdb, "k"); got != want {
				t.Errorf("count = %q, want %q", got, want)
			}
		}
		cut()
		outer := mustLock(t, l)
		used("acquire")
		count("1")
		cut()
		inner, err := l.Lock(outer)
		if err != nil {
			t.Fatal(err)
		}
		used("re-entry")
		count("2")
		mustUnlock(t, l, inner) // does not ask Redis
		cut()
		mustUnlock(t, l, outer)
		used("release")
		if got := keys(t, rdb); len(got) != 0 {
			t.Errorf("keys = %q", got)
		}
	})
}

// No repetition gets an answer either. The Acquire fails, and what it took is given back.
func TestAcquireInDoubtLeavesNothing(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		l := c.Lock("k")
		p.CutReply("evalsha", 1000)
		_, err := l.Lock(t.Context())
		if err == nil || errors.Is(err, lock.ErrBusy) {
			t.Fatalf("Lock = %v, want an error of the connection", err)
		}
		p.CutReply("evalsha", 0)
		within(t, 5*time.Second, "the lock is free again", func() bool { return len(keys(t, rdb)) == 0 })
		mustUnlock(t, l, mustLock(t, l))
	})
}

// The caller leaves while its question is under way, which then takes the lock.
func TestCallerGoneBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		l := c.Lock("k")
		p.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v, want the cause of the context", err)
		}
		if d := ran(start); d > time.Second {
			t.Errorf("Lock stayed for %v after its context", d)
		}
		p.Thaw()
		within(t, 5*time.Second, "the lock is free", func() bool { return len(keys(t, rdb)) == 0 })
		held, ok, err := l.TryLock(t.Context(), 5*time.Second, 0)
		if !ok || err != nil {
			t.Fatalf("TryLock = %v, %v", ok, err)
		}
		mustUnlock(t, l, held)
	})
}

// The server stands still, longer than anybody is ready to wait, and then runs what it was sent.
func TestServerPausedDuringAcquire(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		s := redistest.Start(t)
		rdb := s.Client(t)
		l := onClient(t, s.Client(t, change, func(o *redis.Options) { o.ReadTimeout = 300 * time.Millisecond }), redisson.Timeout(time.Second)).Lock("k")
		mustUnlock(t, l, mustLock(t, l))
		s.Pause(t)
		start := time.Now()
		_, err := l.Lock(t.Context())
		if err == nil || errors.Is(err, lock.ErrBusy) {
			t.Errorf("Lock = %v, want an error of the server", err)
		}
		if d := ran(start); d > 3*time.Second {
			t.Errorf("Lock took %v with a timeout of 1s", d)
		}
		s.Resume(t)
		within(t, 5*time.Second, "the lock is free", func() bool { return len(keys(t, rdb)) == 0 })
	})
}

// A release that its caller can't wait for goes on in the background.
func TestReleaseInDoubt(t *testing.T) {
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, p, rdb := fragile(t, change)
		hold, err := c.Acquire(t.Context(), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		p.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := hold.Release(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release = %v, want the end of its context", err)
		}
		if hold.Context().Err() == nil {
			t.Error("the context of a released hold is alive")
		}
		p.Thaw()
		within(t, 10*time.Second, "the lock is free", func() bool { return len(keys(t, rdb)) == 0 })
	})
}

// A caller who has gone long ago still gets the lock released.
func TestReleaseWithEndedContext(t *testing.T) {
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		c, _, rdb := fragile(t, change)
		hold, err := c.Acquire(t.Context(), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if err := hold.Release(canceled()); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Release = %v", err)
		}
		within(t, 5*time.Second, "the lock is free", func() bool { return len(keys(t, rdb)) == 0 })
		if err := hold.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("second Release = %v, want ErrNotHeld", err)
		}
	})
}

// Two holds of one lock are released at once. The release of a part reaches Redis behind the last one, which has removed the lock:
// nothing was lost. A plain lock does not ask for the release of a part, so that there only a renewal could come, or none in time.
func TestPartialReleaseIsOvertakenByTheLast(t *testing.T) {
	t.Parallel()
	for _, kind := range []lock.Kind{lock.Fair, lock.Read, lock.Write} {
		t.Run(kind.String(), func(t *testing.T) {
			srv := redistest.Start(t)
			p := srv.Front(t)
			c := onClient(t, srv.Client(t, func(o *redis.Options) { o.Addr, o.ReadTimeout = p.Addr, 500*time.Millisecond }))
			outer := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: kind})
			inner := acquire(beneath(outer), t, c, lock.Request{Key: "k", Kind: kind})
			late := p.KeepBackSilently(naming("k"), 0) // repeated when it is not answered
			part := make(chan error, 1)
			go func() { part <- inner.Release(context.Background()) }()
			late.Await(t)
			release(t, outer)
			if err := <-part; err != nil {
				t.Errorf("Release of the inner hold: %v", err)
			}
			expectKeys(t, srv.Client(t))
		})
	}
}
