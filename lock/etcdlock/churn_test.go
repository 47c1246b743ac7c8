package etcdlock_test

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
)

// busyKV has somebody else take and keep one more permit before each transaction of the client.
type busyKV struct {
	clientv3.KV
	more func()
}

func (k busyKV) Txn(ctx context.Context) clientv3.Txn {
	k.more()
	return k.KV.Txn(ctx)
}

// A try does not lose its turn again and again to others who come between its look and its put.
func TestTryGetsAPermitHoweverManyCome(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	for limit, want := range map[int]bool{1000: true, 7: true, 6: false, 3: false} {
		others, r := locker(t, client), lock.Request{Key: fmt.Sprint("churn", limit), Kind: lock.Permit, Limit: limit}
		var taken []lock.Hold
		busy := dial(t, single(t).Endpoints()...)
		busy.KV = busyKV{busy.KV, func() {
			if h, err := others.Acquire(t.Context(), r); err == nil {
				taken = append(taken, h)
			}
		}}
		h, err := locker(t, busy).Acquire(t.Context(), r)
		if got := err == nil; got != want {
			t.Errorf("limit %d, %d others: Acquire() = %v", limit, len(taken), err)
		}
		if err == nil {
			release(t, h)
		}
		for _, h := range taken {
			release(t, h)
		}
		waiting(t, client, r.Key, 0)
	}
}
