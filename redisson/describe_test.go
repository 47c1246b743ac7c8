package redisson_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func describing(tb testing.TB, s *redistest.Server, opts ...redisson.Option) *redisson.Client {
	return newClient(tb, s, append(opts, redisson.Name("n"), redisson.Describe())...)
}

// Holds of all kinds say since when they are held, and what for.
func TestDescribeSaysWhatFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, looker := describing(t, s), newClient(t, s)
	id := trace.TraceID{1, 2, 3}
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{4}}))
	for kind := lock.Exclusive; kind <= lock.Permit; kind++ {
		for _, lease := range []time.Duration{0, time.Hour} {
			r := lock.Request{Key: fmt.Sprint(kind, lease), Kind: kind, Limit: 2, Lease: lease, Holder: fmt.Sprintf("guard %q", "pay")}
			h := acquire(ctx, t, c, r)
			var got redisson.Holder
			eventually(t, fmt.Sprintf("%v, %v is described", kind, lease), func() bool {
				o := inspect(t, looker, r.Key)
				if len(o.Holders) != 1 {
					return false
				}
				got = o.Holders[0]
				return got.About != nil
			})
			a := *got.About
			if age := time.Since(a.Since); got.Client != c.ID() || !isMe(got.Who, "n") || a.For != r.Holder || a.Trace != id.String() || a.Renews != (lease == 0) ||
				age < 0 || age > 20*time.Second || len(a.Waits) > 0 {
				t.Errorf("%v, %v: %+v of %+v", kind, lease, a, got)
			}
			renewed := time.Since(got.Renewed)
			if wants := lease == 0 && kind != lock.Permit || kind == lock.Permit && lease == 0; wants != !got.Renewed.IsZero() || wants && (renewed < -time.Second || renewed > 11*time.Second) {
				t.Errorf("%v, %v: renewed %v ago", kind, lease, renewed)
			}
			if heard := time.Since(got.Who.Heard); heard < -time.Second || heard > 11*time.Second {
				t.Errorf("%v: heard %v ago", kind, heard)
			}
			release(t, h)
		}
	}
}

// What others hold, and permits of theirs, are nobody's.
func TestPermitsOfOthersHaveNoClient(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	anonymous, looker, rdb := newClient(t, s), newClient(t, s), s.Client(t)
	acquire(t.Context(), t, anonymous, lock.Request{Key: "p", Kind: lock.Permit, Limit: 1})
	if h := inspect(t, looker, "p").Holders[0]; h.Client != "" || h.About != nil {
		t.Errorf("a permit of a client without a name is %+v", h)
	}
	c := describing(t, s)
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	key := "latchkey_client:" + c.ID()
	eventually(t, "the client is described", func() bool { return rdb.HLen(t.Context(), key).Val() == 2 })
	for _, wrong := range []string{"", "{", "null", `{"since":7}`, "\xff"} { // what a stranger wrote
		for field := range rdb.HGetAll(t.Context(), key).Val() {
			check(t, rdb.HSet(t.Context(), key, field, wrong).Err())
		}
		o, err := looker.Inspect(t.Context(), "k")
		if check(t, err); o.Holders[0].Who.Name != "" {
			t.Errorf("with %q, the holder is %+v", wrong, o.Holders[0])
		}
	}
}

// A call that waits under a hold is told of at the hold, as long as it waits.
func TestDescribeSaysWhatACallWaitsFor(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b, looker := describing(t, s), describing(t, s), newClient(t, s)
	x, y := acquire(t.Context(), t, a, lock.Request{Key: "x"}), acquire(t.Context(), t, b, lock.Request{Key: "y", Kind: lock.Fair})
	ctx, cancel := context.WithCancel(x.Context())
	ended := make(chan error)
	go func() { ended <- second(a.Acquire(ctx, lock.Request{Key: "y", Kind: lock.Fair, Wait: -1})) }()
	waits := func(key string) []string {
		if h := inspect(t, looker, key).Holders; len(h) == 1 && h[0].About != nil {
			return h[0].About.Waits
		}
		return nil
	}
	eventually(t, "the wait is told of", func() bool { return fmt.Sprint(waits("x")) == "[y]" })
	if got := waits("y"); got != nil {
		t.Errorf("nobody under y waits, and it says %v", got)
	}
	stranger := lock.Request{Key: "y", Kind: lock.Fair, Wait: 5 * time.Second} // under no hold
	go func() { _ = second(b.Acquire(t.Context(), stranger)) }()
	cancel()
	over(ended)
	eventually(t, "the wait is over", func() bool { return waits("x") == nil })
	release(t, x)
	release(t, y)
}

// Describing costs no command a lock, one a second at most, and none while nothing changes.
func TestDescribeCommands(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := describing(t, s, redisson.WatchdogTimeout(time.Minute)), s.Client(t)
	const locks = 1200
	for i := range locks {
		acquire(t.Context(), t, c, lock.Request{Key: fmt.Sprint("k", i)})
	}
	key := "latchkey_client:" + c.ID()
	eventually(t, "the newest are described", func() bool { return rdb.HLen(t.Context(), key).Val() == 1001 })
	shown := func() int { return commandCalls(t, rdb)["hset"] }
	before := shown()
	time.Sleep(3 * time.Second)
	if more := shown() - before; more > 0 {
		t.Errorf("nothing has changed, and %d fields were set", more)
	}
	few := describing(t, s)
	h := acquire(t.Context(), t, few, lock.Request{Key: "long"})
	key = "latchkey_client:" + few.ID()
	eventually(t, "the long one is described", func() bool { return rdb.HLen(t.Context(), key).Val() == 2 })
	for try := 1; ; try++ { // a busy machine has a question asked again now and then
		start, pairs := time.Now(), 0
		first, _ := commands(t, rdb)
		for ; time.Since(start) < 3*time.Second; pairs++ {
			release(t, acquire(t.Context(), t, few, lock.Request{Key: "short"}))
		}
		last, _ := commands(t, rdb)
		more := last - first - 2*pairs
		if float64(more) <= time.Since(start).Seconds()+2 { // and one of the test's own
			break
		} else if try == 3 {
			t.Errorf("%d locks that change took %d commands more in %v", pairs, more, time.Since(start))
			break
		}
	}
	release(t, h)
}

// What has gone from Redis is told again.
func TestDescribeComesBack(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, rdb := describing(t, s, redisson.WatchdogTimeout(3*time.Second), redisson.Timeout(time.Second)), s.Client(t)
	acquire(t.Context(), t, c, lock.Request{Key: "k"})
	key := "latchkey_client:" + c.ID()
	for range 2 {
		eventually(t, "the hold is described", func() bool { return rdb.HLen(t.Context(), key).Val() == 2 })
		check(t, rdb.Del(t.Context(), key).Err())
	}
	eventually(t, "the hold is described at the end", func() bool { return rdb.HLen(t.Context(), key).Val() == 2 })
}
