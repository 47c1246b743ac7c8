package etcdlock_test

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// durable starts a cluster that writes to the disk: LATCHKEY_ETCD_MEMBERS members, or one.
func durable(b *testing.B) *etcdtest.Cluster {
	b.Helper()
	members, err := strconv.Atoi(cmp.Or(os.Getenv("LATCHKEY_ETCD_MEMBERS"), "1"))
	if err != nil {
		b.Fatal(err)
	}
	return start(b, etcdtest.Options{Members: members, Durable: true, Election: time.Second})
}

// A pair is an Acquire of a free lock and its release.
func BenchmarkPair(b *testing.B) {
	l := locker(b, dial(b, durable(b).Endpoints()...))
	for b.Loop() {
		release(b, acquire(b, l, lock.Request{Key: "pair", Wait: time.Second}))
	}
}

// BenchmarkPairOfMutex is the same with etcd's own Mutex, which shares one lease.
func BenchmarkPairOfMutex(b *testing.B) {
	client := dial(b, durable(b).Endpoints()...)
	session, err := concurrency.NewSession(client)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	m := concurrency.NewMutex(session, "pair")
	for b.Loop() {
		if err := m.Lock(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := m.Unlock(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// A hand-over is a release while another client waits, until that has the lock.
func BenchmarkHandOver(b *testing.B) {
	c := durable(b)
	client := dial(b, c.Endpoints()...)
	l, next := locker(b, client), locker(b, dial(b, c.Endpoints()...), etcdlock.ID("next"))
	for b.Loop() {
		b.StopTimer()
		h := acquire(b, l, lock.Request{Key: "turn"})
		done := background(b.Context(), next, lock.Request{Key: "turn", Wait: -1})
		waiting(b, client, "turn", 2)
		b.StartTimer()
		release(b, h)
		h = held(b, done)
		b.StopTimer()
		release(b, h)
		b.StartTimer()
	}
}
