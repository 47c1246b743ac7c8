package redisson_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

func TestLatchLayout(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv, redisson.NameMapper(func(n string) string { return "app:" + n })).CountDownLatch("l")
	messages := listen(t, rdb, "redisson_countdownlatch__channel__{app:l}")
	must(t, int64(0))(l.Count(ctx))
	check(t, l.CountDown(ctx))
	must(t, false)(l.Delete(ctx))
	if got := redissonKeys(t, rdb); len(got) != 0 || l.Name() != "l" {
		t.Errorf("keys %q of the latch %q", got, l.Name())
	}
	must(t, true)(l.TrySetCount(ctx, 2))
	must(t, false)(l.TrySetCount(ctx, 9))
	must(t, "2")(rdb.Get(ctx, "app:l").Result())
	expectMessages(t, messages, "1")
	check(t, l.CountDown(ctx))
	must(t, int64(1))(l.Count(ctx))
	expectMessages(t, messages)
	check(t, l.CountDown(ctx))
	check(t, l.CountDown(ctx))
	expectMessages(t, messages, "0")
	if got := redissonKeys(t, rdb); len(got) != 0 {
		t.Errorf("keys %q after zero", got)
	}
	must(t, true)(l.TrySetCount(ctx, 1<<53))
	must(t, int64(1<<53))(l.Count(ctx))
	must(t, true)(l.Delete(ctx))
	expectMessages(t, messages, "1", "1")
}

func TestLatchRefuses(t *testing.T) {
	srv := redistest.Any(t)
	ctx, c := t.Context(), newClient(t, srv)
	set := func(n int64) error { _, err := c.CountDownLatch("l").TrySetCount(ctx, n); return err }
	for want, err := range map[string]error{
		"count 0 of":             set(0),
		"count -1 of":            set(-1),
		"and 9007199254740992":   set(1<<53 + 1),
		"without a key":          c.CountDownLatch("").CountDown(ctx),
		"key":                    c.CountDownLatch("").Await(ctx),
		context.Canceled.Error(): c.CountDownLatch("l").Await(canceled()),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if got := keys(t, srv.Client(t)); len(got) != 0 {
		t.Errorf("keys %q after refusals", got)
	}
}

func awaitAsync(l *redisson.CountDownLatch) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.Await(context.Background()) }()
	return got
}

// Java has a count up to 2^63-1, where Lua counts to 2^53. It is not zero, and nor is what counts nothing.
func TestCountsThatLuaDoesNotKnow(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv).CountDownLatch("l")
	for value, want := range map[string]int64{"9223372036854775807": 1 << 53, "inf": 1 << 53, "-9223372036854775808": 0} {
		rdb.Set(ctx, "l", value, 0)
		must(t, want)(l.Count(ctx))
	}
	rdb.Set(ctx, "l", "9223372036854775807", 0)
	waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := l.Await(waiting); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Await with a count of 2^63-1 = %v, want it to wait", err)
	}
	rdb.Set(ctx, "l", "nan", 0)
	if err := l.Await(ctx); !errors.Is(err, lock.ErrRefused) {
		t.Errorf("Await of what is not a number = %v, want ErrRefused", err)
	}
}

// All waiters of all clients are notified of zero.
func TestLatchWakesAll(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv).CountDownLatch("l")
	check(t, l.Await(ctx)) // nothing to wait for
	must(t, true)(l.TrySetCount(ctx, 2))
	var waiters []<-chan error
	for range 2 {
		c := newClient(t, srv)
		for range 10 {
			waiters = append(waiters, awaitAsync(c.CountDownLatch("l")))
		}
	}
	channel := "redisson_countdownlatch__channel__{l}"
	eventually(t, "both subscribe", func() bool { return rdb.PubSubNumSub(ctx, channel).Val()[channel] == 2 })
	check(t, l.CountDown(ctx))
	select {
	case err := <-waiters[0]:
		t.Fatalf("Await ended at one: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	check(t, l.CountDown(ctx))
	for _, w := range waiters {
		expectDone(t, w)
	}
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
}

// All who waited when a latch was opened go on, also if it was set again by the time that they look. Those who came later wait.
func TestLatchSetAgainAtOnce(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv).CountDownLatch("l")
	channel := "redisson_countdownlatch__channel__{l}"
	clients := []*redisson.Client{newClient(t, srv), newClient(t, srv)}
	must(t, true)(l.TrySetCount(ctx, 1))
	for range 5 {
		var waiters []<-chan error
		for i := range 40 {
			waiters = append(waiters, awaitAsync(clients[i%2].CountDownLatch("l")))
		}
		eventually(t, "both subscribe", func() bool { return rdb.PubSubNumSub(ctx, channel).Val()[channel] == 2 })
		time.Sleep(300 * time.Millisecond) // all listen
		check(t, l.CountDown(ctx))
		must(t, true)(l.TrySetCount(ctx, 1))
		for _, w := range waiters {
			expectDone(t, w)
		}
	}
	late := awaitAsync(clients[0].CountDownLatch("l"))
	select {
	case err := <-late:
		t.Fatalf("Await ended at one: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	check(t, l.CountDown(ctx))
	expectDone(t, late)
}

// Nothing announces a latch that was removed by hand.
func TestLatchLostMessage(t *testing.T) {
	srv := redistest.Any(t)
	rdb, ctx := srv.Client(t), t.Context()
	l := newClient(t, srv, redisson.WatchdogTimeout(900*time.Millisecond)).CountDownLatch("l")
	must(t, true)(l.TrySetCount(ctx, 1))
	got := awaitAsync(l)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, rdb.Del(ctx, "l").Err())
	expectDone(t, got)
}

func TestLatchWaitEnds(t *testing.T) {
	srv := redistest.Any(t)
	rdb := srv.Client(t)
	c := newClient(t, srv)
	l := c.CountDownLatch("l")
	must(t, true)(l.TrySetCount(t.Context(), 1))
	gone := errors.New("client hung up")
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error)
	go func() { got <- l.Await(ctx) }()
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	cancel(gone)
	if err := <-got; !errors.Is(err, gone) {
		t.Errorf("Await = %v, want the cause of the context", err)
	}
	eventually(t, "nothing is subscribed", func() bool { return len(subscriptions(t, rdb)) == 0 })
	closed := awaitAsync(l)
	eventually(t, "waiter subscribes", func() bool { return len(subscriptions(t, rdb)) == 1 })
	check(t, c.Close())
	if err := <-closed; !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Await = %v, want ErrClosed", err)
	}
}

func TestLatchAnswerLost(t *testing.T) {
	t.Parallel()
	eachSetup(t, func(t *testing.T, change func(*redis.Options)) {
		srv := redistest.Any(t)
		ctx, p := t.Context(), srv.Front(t)
		c := onClient(t, srv.Client(t, change, func(o *redis.Options) { o.Addr = p.Addr }), redisson.Timeout(3*time.Second))
		l := c.CountDownLatch("l")
		for range 2 { // the first time loads the scripts
			p.CutReply("evalsha", 2)
			must(t, true)(l.TrySetCount(ctx, 3))
			p.CutReply("evalsha", 2)
			check(t, l.CountDown(ctx))
			must(t, int64(2))(l.Count(ctx))
			p.CutReply("evalsha", 2)
			must(t, true)(l.Delete(ctx))
		}
		must(t, true)(l.TrySetCount(ctx, 3))
		p.CutReply("evalsha", 1000)
		if err := l.CountDown(ctx); !errors.Is(err, redisson.ErrPending) {
			t.Errorf("CountDown = %v, want ErrPending", err)
		}
		p.CutReply("", 0)
		within(t, 5*time.Second, "it is counted down", func() bool { n, err := l.Count(ctx); return n == 2 && err == nil })
		check(t, c.Close()) // waits for what goes on
		must(t, "2")(srv.Client(t).Get(context.Background(), "l").Result())
	})
}

// Waiters leave a server that does not answer with their contexts.
func TestLatchServerSilent(t *testing.T) {
	srv := redistest.Any(t)
	p := srv.Front(t)
	l := onClient(t, srv.Client(t, func(o *redis.Options) { o.Addr = p.Addr })).CountDownLatch("l")
	must(t, true)(l.TrySetCount(t.Context(), 1))
	p.Freeze()
	defer p.Thaw()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := l.Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Await = %v, want the end of its context", err)
	}
	if d := ran(start); d > time.Second {
		t.Errorf("Await stayed for %v", d)
	}
}

// Counting down from many goroutines ends at zero exactly.
func TestLatchConcurrentCountDown(t *testing.T) {
	srv := redistest.Any(t)
	c := newClient(t, srv)
	l := c.CountDownLatch("l")
	must(t, true)(l.TrySetCount(t.Context(), 201))
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if err := l.CountDown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	must(t, int64(1))(l.Count(t.Context()))
}
