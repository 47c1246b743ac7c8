package etcdlock_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
	"github.com/latchkey-go/latchkey/lock/etcdlock/etcdtest"
)

func Example() {
	cluster, err := etcdtest.Start(etcdtest.Options{}) // or any other etcd
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	locker, err := etcdlock.New(client, etcdlock.Prefix("locks/"))
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Kind: lock.Fenced, Wait: 2 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a fencing token:", hold.(interface{ Token() int64 }).Token() > 0)

	// Etcd's own Mutex stands in the same line.
	session, err := concurrency.NewSession(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	mutex := concurrency.NewMutex(session, "locks/order:42")
	fmt.Println("a Mutex:", mutex.TryLock(ctx))
	fmt.Println("released:", hold.Release(ctx))
	fmt.Println("a Mutex:", mutex.TryLock(ctx))
	fmt.Println("unlocked:", mutex.Unlock(ctx))
	// Output:
	// a fencing token: true
	// a Mutex: mutex: Locked by another session
	// released: <nil>
	// a Mutex: <nil>
	// unlocked: <nil>
}

// Check at the start of a program tells a wrong address, a missing permission or a server that is too old from a busy lock.
func ExampleLocker_Check() {
	cluster, err := etcdtest.Start(etcdtest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	locker, err := etcdlock.New(client, etcdlock.Prefix("locks/"), etcdlock.Watchdog(10*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(locker.Check(context.Background()))
	// Output: <nil>
}
