package redisson_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// hotPermit asks for a permit of "hot", however long it takes.
func hotPermit(limit int) lock.Request {
	return lock.Request{Key: "hot", Kind: lock.Permit, Limit: limit, Wait: -1}
}

// queueUp has clients wait for permits of "hot" that are taken, one behind the other, and returns where each tells that it was served.
func queueUp(t *testing.T, ctx context.Context, rdb redis.UniversalClient, limit int, clients ...*redisson.Client) <-chan int {
	t.Helper()
	served := make(chan int, len(clients))
	before := listed(t, rdb)
	for i, c := range clients {
		go func() {
			if _, err := c.Acquire(ctx, hotPermit(limit)); err == nil {
				served <- i
			}
		}()
		eventually(t, "it is in line", func() bool { return listed(t, rdb) == before+int64(i+1) })
	}
	return served
}

// expectServed fails t unless so many are served within a time, and no more than those.
func expectServed(t *testing.T, served <-chan int, n int, within time.Duration) {
	t.Helper()
	end := time.After(within)
	for i := range n {
		select {
		case <-served:
		case <-end:
			t.Fatalf("%d of %d are served within %v", i, n, within)
		}
	}
	select {
	case i := <-served:
		t.Fatalf("client %d is served, too", i)
	case <-time.After(50 * time.Millisecond):
	}
}

// Releases wake as many as they free, in whatever way they come: one after the other, all at once, or at the end of a lease.
func TestReleasesWakeAsManyAsTheyFree(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	holder := newClient(t, s)
	holds := make([]lock.Hold, 6)
	for i := range holds {
		holds[i] = acquire(t.Context(), t, holder, hotPermit(6))
	}
	clients := make([]*redisson.Client, 8)
	for i := range clients {
		clients[i] = newClient(t, s)
	}
	served := queueUp(t, t.Context(), rdb, 6, clients...)
	release(t, holds[0])
	expectServed(t, served, 1, time.Second)
	check(t, holder.ReleaseAll(t.Context(), holds[1:4]))
	expectServed(t, served, 3, time.Second)
	go func() { _ = holds[4].Release(context.Background()) }()
	expectServed(t, served, 1, time.Second)
	check(t, holds[5].(interface {
		Keep(context.Context, time.Duration) error
	}).Keep(t.Context(), 500*time.Millisecond))
	expectServed(t, served, 1, 2*time.Second)
}

// Who is told and does not come loses its turn to the next one, and so does who leaves.
func TestAPermitIsPassedOn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	holder := newClient(t, s)
	first, second := acquire(t.Context(), t, holder, hotPermit(2)), acquire(t.Context(), t, holder, hotPermit(2))
	p := s.Front(t)
	ctx, cancel := context.WithCancel(t.Context())
	queueUp(t, ctx, rdb, 2, onClient(t, redis.NewClient(&redis.Options{Addr: p.Addr})))
	served := queueUp(t, t.Context(), rdb, 2, newClient(t, s))
	p.Freeze()
	release(t, first)
	expectServed(t, served, 1, time.Second)
	cancel()
	p.Thaw()
	eventually(t, "nobody is in line", func() bool { return listed(t, rdb) == 0 })

	leaves, leave := context.WithCancel(t.Context())
	queueUp(t, leaves, rdb, 2, newClient(t, s))
	served = queueUp(t, t.Context(), rdb, 2, newClient(t, s))
	for _, id := range rdb.ZRange(t.Context(), "{hot}:timeout", 0, -1).Val() { // freed, and nobody is told
		rdb.ZRem(t.Context(), "{hot}:timeout", id)
		rdb.Incr(t.Context(), "hot")
	}
	leave()
	expectServed(t, served, 1, time.Second)
	_ = second.Release(t.Context())
}

// Permits that others have or give back, as Java does, wake those in the wake list, too.
func TestOthersWakeWaitersOfPermits(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rdb := s.Client(t)
	java := newClient(t, s).PermitExpirableSemaphore("hot")
	check(t, java.SetPermits(t.Context(), 2))
	own := acquire(t.Context(), t, newClient(t, s), hotPermit(9))
	id, err := java.Acquire(t.Context(), time.Minute)
	check(t, err)
	served := queueUp(t, t.Context(), rdb, 9, newClient(t, s), newClient(t, s), newClient(t, s))
	check(t, java.Release(t.Context(), id))
	expectServed(t, served, 1, time.Second)
	check(t, java.AddPermits(t.Context(), 1))
	expectServed(t, served, 1, time.Second)
	release(t, own)
	expectServed(t, served, 1, time.Second)
}

// Redisson's channel hears how many are free: with a zero before it if somebody of the list was told, and never a zero alone.
func TestRedissonHearsOfPermits(t *testing.T) {
	s := redistest.Start(t)
	java := s.Client(t).Subscribe(t.Context(), "redisson_sc:{hot}")
	defer java.Close()
	_, err := java.Receive(t.Context())
	check(t, err)
	messages := java.Channel(redis.WithChannelSize(10_000))
	clients := make([]*redisson.Client, 16)
	for i := range clients {
		clients[i] = newClient(t, s)
	}
	alone := acquire(t.Context(), t, clients[0], hotPermit(3))
	release(t, alone)
	if m := <-messages; m.Payload != "3" && m.Payload != "1" {
		t.Errorf("nobody waits, and the channel was told %q", m.Payload)
	}
	turns, _, _ := herd(t, clients, lock.Permit, time.Second, 2*time.Millisecond)
	n, told := sum(turns), len(messages)
	if told < n/17 {
		t.Errorf("%d of %d releases were heard", told, n)
	}
	zero := 0
	for range told {
		m := <-messages
		if strings.Trim(m.Payload, "0") == "" {
			t.Fatalf("the channel was told %q", m.Payload)
		}
		if m.Payload[0] == '0' {
			zero++
		}
	}
	if zero < told/2 {
		t.Errorf("%d of %d messages say that somebody was told", zero, told)
	}
}
