package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

const java = "6f0829ed-bfd3-4e6f-bba3-6f3d66cd1765:41"

// found is what Redisson, or somebody else, has left under the name k.
type found struct {
	name  string
	write func(ctx context.Context, p redis.Pipeliner, now time.Time)
}

var findings = []found{
	{"nothing", func(context.Context, redis.Pipeliner, time.Time) {}},
	{"a lock", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.HSet(ctx, "k", java, 2)
		p.PExpire(ctx, "k", 20*time.Second)
	}},
	{"a lock without an end", func(ctx context.Context, p redis.Pipeliner, _ time.Time) { p.HSet(ctx, "k", java, 1) }},
	{"a reader", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.HSet(ctx, "k", "mode", "read", java, 1)
		p.PExpire(ctx, "k", 20*time.Second)
		p.Set(ctx, "{k}:"+java+":rwlock_timeout:1", "1", 20*time.Second)
	}},
	{"a writer", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.HSet(ctx, "k", "mode", "write", java+":write", 1)
		p.PExpire(ctx, "k", 20*time.Second)
	}},
	{"a writer that reads", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.HSet(ctx, "k", "mode", "write", java+":write", 1, java, 1)
		p.PExpire(ctx, "k", 20*time.Second)
	}},
	{"a fair waiter", func(ctx context.Context, p redis.Pipeliner, now time.Time) { queue(ctx, p, now.Add(10*time.Second)) }},
	{"a dead fair waiter", func(ctx context.Context, p redis.Pipeliner, now time.Time) { queue(ctx, p, now.Add(-time.Second)) }},
	{"a dead fair waiter before a live one", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		queue(ctx, p, now.Add(-time.Second), now.Add(10*time.Second))
	}},
	{"a fair waiter without a deadline", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.RPush(ctx, "redisson_lock_queue:{k}", java)
	}},
	{"a fair waiter behind a holder", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		p.HSet(ctx, "k", java, 1)
		p.PExpire(ctx, "k", 20*time.Second)
		queue(ctx, p, now.Add(30*time.Second))
	}},
	{"permits", func(ctx context.Context, p redis.Pipeliner, _ time.Time) { p.Set(ctx, "k", 2, 0) }},
	{"no permits", func(ctx context.Context, p redis.Pipeliner, _ time.Time) { p.Set(ctx, "k", 0, 0) }},
	{"fewer permits than none", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		p.Set(ctx, "k", -1, 0)
		permits(ctx, p, now.Add(-time.Second))
	}},
	{"a permit that is over", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		p.Set(ctx, "k", 0, 0)
		permits(ctx, p, now.Add(-time.Second), now.Add(10*time.Second))
	}},
	{"permits that are taken", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		p.Set(ctx, "k", 0, 0)
		permits(ctx, p, now.Add(10*time.Second), now.Add(20*time.Second))
	}},
	{"a permit for ever", func(ctx context.Context, p redis.Pipeliner, _ time.Time) {
		p.Set(ctx, "k", 0, 0)
		p.ZAdd(ctx, "{k}:timeout", redis.Z{Score: 922337203685477, Member: "0123456789abcdef"})
	}},
	{"permits of a semaphore that is gone", func(ctx context.Context, p redis.Pipeliner, now time.Time) {
		permits(ctx, p, now.Add(-time.Second), now.Add(10*time.Second), now.Add(20*time.Second))
	}},
	{"a list", func(ctx context.Context, p redis.Pipeliner, _ time.Time) { p.RPush(ctx, "k", "mine") }},
	{"a text", func(ctx context.Context, p redis.Pipeliner, _ time.Time) { p.Set(ctx, "k", "mine", 0) }},
}

// queue has waiters for a fair lock with these deadlines.
func queue(ctx context.Context, p redis.Pipeliner, deadlines ...time.Time) {
	for i, at := range deadlines {
		waiter := fmt.Sprint(java, i)
		p.RPush(ctx, "redisson_lock_queue:{k}", waiter)
		p.ZAdd(ctx, "redisson_lock_timeout:{k}", redis.Z{Score: float64(at.UnixMilli()), Member: waiter})
	}
}

// permits has permits taken until these times.
func permits(ctx context.Context, p redis.Pipeliner, ends ...time.Time) {
	for i, at := range ends {
		p.ZAdd(ctx, "{k}:timeout", redis.Z{Score: float64(at.UnixMilli()), Member: fmt.Sprintf("0123456789abcde%d", i)})
	}
}

// contents is all that is in Redis, but for what is left of times to live.
func contents(tb testing.TB, rdb *redis.Client) map[string]string {
	tb.Helper()
	all := map[string]string{}
	for _, key := range keys(tb, rdb) {
		all[key] = fmt.Sprintf("%q, with an end: %v", rdb.Dump(tb.Context(), key).Val(), rdb.PTTL(tb.Context(), key).Val() > 0)
	}
	return all
}

// Peek foretells the Acquire of each kind, whatever it finds, and changes nothing.
func TestPeek(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb, c := s.Client(t), newClient(t, s)
	for _, f := range findings {
		for _, r := range allKinds() {
			r.Wait, r.Limit = 0, 2
			check(t, rdb.FlushAll(t.Context()).Err())
			_, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				f.write(t.Context(), p, time.Now())
				return nil
			})
			check(t, err)
			before := contents(t, rdb)
			foretold := c.Peek(t.Context(), r)
			if after := contents(t, rdb); !maps.Equal(before, after) {
				t.Errorf("%s, %v: Peek has made of %q this: %q", f.name, r.Kind, before, after)
			}
			h, came := c.Acquire(t.Context(), r)
			if err := contradiction(foretold, came); err != nil {
				t.Errorf("%s, %v: %v", f.name, r.Kind, err)
			}
			if h != nil {
				release(t, h)
			}
		}
	}
}

// contradiction says how the answer of an Acquire differs from what Peek said.
func contradiction(foretold, came error) error {
	var kinds, held lock.KindError
	if e, ok := errors.AsType[*lock.KindError](foretold); ok {
		kinds = *e
	}
	if e, ok := errors.AsType[*lock.KindError](came); ok {
		held = *e
	}
	var said, is time.Duration
	if e, ok := errors.AsType[*lock.BusyError](foretold); ok {
		said = e.Remaining
	}
	if e, ok := errors.AsType[*lock.BusyError](came); ok {
		is = e.Remaining
	}
	same := (foretold == nil) == (came == nil) && kinds == held && (said-is).Abs() < time.Second
	for _, class := range []error{lock.ErrBusy, lock.ErrUnsupported, lock.ErrRefused} {
		same = same && errors.Is(foretold, class) == errors.Is(came, class)
	}
	if same {
		return nil
	}
	return fmt.Errorf("Peek says %w, and Acquire %w", foretold, came)
}

// What the client itself holds counts as it does for an Acquire.
func TestPeekUnderAHold(t *testing.T) {
	t.Parallel()
	c := newClient(t, redistest.Any(t))
	reading := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Read})
	outer := acquire(t.Context(), t, c, lock.Request{Key: "outer"})
	sibling := acquire(outer.Context(), t, c, lock.Request{Key: "sibling"})
	for _, tt := range []struct {
		name string
		ctx  context.Context
		r    lock.Request
		want error
	}{
		{"re-entry", reading.Context(), lock.Request{Key: "k", Kind: lock.Read}, nil},
		{"upgrade", reading.Context(), lock.Request{Key: "k", Kind: lock.Write}, lock.ErrUnsupported},
		{"another family", reading.Context(), lock.Request{Key: "k"}, lock.ErrUnsupported},
		{"a stranger", t.Context(), lock.Request{Key: "k", Kind: lock.Write}, lock.ErrBusy},
		{"another reader", t.Context(), lock.Request{Key: "k", Kind: lock.Read}, nil},
		{"a sibling", outer.Context(), lock.Request{Key: "sibling"}, lock.ErrBusy},
	} {
		err := c.Peek(tt.ctx, tt.r)
		if (err == nil) != (tt.want == nil) || !errors.Is(err, tt.want) {
			t.Errorf("%s: Peek = %v, want %v", tt.name, err, tt.want)
		}
		if busy, ok := errors.AsType[*lock.BusyError](err); ok && (busy.Related != (tt.name == "a sibling") || !busy.Here) {
			t.Errorf("%s: Related = %v, Here = %v", tt.name, busy.Related, busy.Here)
		}
	}
	for _, h := range []lock.Hold{sibling, outer, reading} {
		release(t, h)
	}
}

func TestPeekFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newClient(t, s, redisson.Timeout(200*time.Millisecond))
	if err := c.Peek(t.Context(), lock.Request{}); err == nil {
		t.Error("Peek without a key succeeded")
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if err := c.Peek(ended, lock.Request{Key: "k"}); err == nil || err.Error() != "gone" {
		t.Errorf("Peek = %v, want the cause of its context", err)
	}
	s.Pause(t)
	if err := c.Peek(t.Context(), lock.Request{Key: "k"}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Peek while Redis says nothing = %v, want the error of an outage", err)
	}
	s.Resume(t)
	check(t, c.Close())
	if err := c.Peek(t.Context(), lock.Request{Key: "k"}); !errors.Is(err, redisson.ErrClosed) {
		t.Errorf("Peek after Close = %v, want ErrClosed", err)
	}
}
