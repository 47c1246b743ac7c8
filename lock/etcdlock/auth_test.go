package etcdlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

// A stream of watches has the token with which it began. When that has ended, etcd takes no more watches on it, and the next ones need
// another stream; what else the client asks gets a new token by itself.
func TestWaitersAreToldAlthoughTheTokenHasEnded(t *testing.T) {
	parallel(t)
	const ttl = time.Second
	c := start(t, etcdtest.Options{TokenTTL: ttl})
	root := dial(t, c.Endpoints()...)
	for _, do := range []func() error{
		func() error { _, err := root.UserAdd(t.Context(), "root", "secret"); return err },
		func() error { _, err := root.RoleAdd(t.Context(), "root"); return err },
		func() error { _, err := root.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error { _, err := root.AuthEnable(t.Context()); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	var asked atomic.Int64
	user := func() *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), Username: "root", Password: "secret", Logger: zap.NewNop(),
			DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
				do grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				if method == "/etcdserverpb.KV/Txn" {
					asked.Add(1)
				}
				return do(ctx, method, req, reply, cc, opts...)
			})}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	client, other := user(), user()
	holder, l := locker(t, user()), locker(t, client, etcdlock.Poll(time.Minute))
	first, second := acquire(t, holder, lock.Request{Key: "first"}), acquire(t, holder, lock.Request{Key: "second"})
	one := background(t.Context(), l, lock.Request{Key: "first", Wait: -1})
	waiting(t, other, "first", 2)
	<-time.After(4 * ttl) // nobody has used the token meanwhile
	two := background(t.Context(), l, lock.Request{Key: "second", Wait: -1})
	waiting(t, other, "second", 2)
	asked.Store(0)
	<-time.After(time.Second)
	if n := asked.Load(); n > 5 {
		t.Errorf("a waiter asks %d times a second", n)
	}
	release(t, second)
	release(t, held(t, two))
	release(t, first)
	release(t, held(t, one))
}
