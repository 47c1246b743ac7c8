package redisson_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// redTrio is three servers with a client each, the last of them behind a proxy.
type redTrio struct {
	servers []*redistest.Server
	clients []*redisson.Client
	last    *redistest.Proxy
}

func newRedTrio(tb testing.TB, opts ...redisson.Option) redTrio {
	tb.Helper()
	var r redTrio
	for i := range 3 {
		s := redistest.Start(tb)
		change := func(*redis.Options) {}
		if i == 2 {
			r.last = s.Front(tb)
			change = func(o *redis.Options) { o.Addr = r.last.Addr }
		}
		r.servers, r.clients = append(r.servers, s), append(r.clients, onClient(tb, s.Client(tb, impatient, change), opts...))
	}
	return r
}

// takeWithALateMember takes the lock while the answer of the last server is kept back until the test says otherwise. That is so if the
// first round of questions was enough, which the others may be too slow for on a busy machine.
func (r redTrio) takeWithALateMember(t *testing.T, l *redisson.RedLock) (held context.Context, answer *redistest.Late) {
	t.Helper()
	for {
		warm := mustTake(t, l)
		known := r.joins(warm) // or its answer might be the one that is kept back
		mustGive(t, warm, l)
		if !known {
			continue
		}
		eventually(t, "nothing is left", func() bool { return len(redissonKeys(t, r.servers[2].Client(t))) == 0 })
		answer = r.last.KeepBackReply("evalsha", 0)
		start := time.Now()
		held = mustTake(t, l)
		if answer.Await(t); time.Since(start) < 200*time.Millisecond {
			return held, answer
		}
		answer.Deliver(t)
		mustGive(t, held, l)
	}
}

// joins reports whether the last member becomes a part of a hold, now that its answer is there. It does not where the machine is so busy that its
// client has given up on the answer.
func (r redTrio) joins(held context.Context) bool {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if r.clients[2].Lock("k").HoldCount(held) == 1 {
			return true
		}
	}
	return false
}

// The member whose answer came after those of the majority is as much a part of the hold as the others: with one of these gone, the
// call itself kept it from itself.
func TestLateMembersOfARedLockAreReentered(t *testing.T) {
	t.Parallel()
	r := newRedTrio(t)
	l := redLock(t, r.clients...)
	held, answer := r.takeWithALateMember(t, l)
	for answer.Deliver(t); !r.joins(held); answer.Deliver(t) {
		mustGive(t, held, l)
		held, answer = r.takeWithALateMember(t, l)
	}
	r.servers[0].Kill(t)
	inner, ok, err := l.TryLock(held, 5*time.Second, 0)
	if !ok || err != nil {
		t.Fatalf("TryLock under the hold, with two servers = %v, %v", ok, err)
	}
	mustGive(t, inner, l)
	mustGive(t, held, l)
}
