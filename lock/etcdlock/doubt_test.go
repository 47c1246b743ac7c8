package etcdlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/etcdlock"
)

// lossyKV loses answers: of a transaction that was carried out, or of one that is carried out only later.
type lossyKV struct {
	clientv3.KV
	mu   sync.Mutex
	lose int // so many transactions
	late bool
	kept []clientv3.Txn
}

func (k *lossyKV) Txn(ctx context.Context) clientv3.Txn {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lose == 0 {
		return k.KV.Txn(ctx)
	}
	k.lose--
	return &lossyTxn{k, k.KV.Txn(context.WithoutCancel(ctx))}
}

// arrive carries out what is late.
func (k *lossyKV) arrive(tb testing.TB) {
	tb.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, t := range k.kept {
		_, _ = t.Commit() // it may well be refused
	}
	k.kept = nil
}

type lossyTxn struct {
	k *lossyKV
	clientv3.Txn
}

func (t *lossyTxn) If(cs ...clientv3.Cmp) clientv3.Txn { t.Txn = t.Txn.If(cs...); return t }

func (t *lossyTxn) Then(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Then(ops...); return t }

func (t *lossyTxn) Else(ops ...clientv3.Op) clientv3.Txn { t.Txn = t.Txn.Else(ops...); return t }

func (t *lossyTxn) Commit() (*clientv3.TxnResponse, error) {
	t.k.mu.Lock()
	defer t.k.mu.Unlock()
	if t.k.late {
		t.k.kept = append(t.k.kept, t.Txn)
	} else if _, err := t.Txn.Commit(); err != nil {
		return nil, err
	}
	return nil, status.Error(codes.Unavailable, "the answer is lost")
}

// Whatever becomes of a transaction without an answer, and whenever: the holder has the lock, and after its release nobody does.
func TestTransactionsWithoutAnAnswer(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	for _, late := range []bool{false, true} {
		for _, tt := range []struct {
			name string
			r    lock.Request
			do   func(h lock.Hold) error
		}{
			{"try", lock.Request{}, nil},
			{"enter", lock.Request{Wait: -1}, nil},
			{"extend", lock.Request{Lease: 5 * time.Second}, func(h lock.Hold) error {
				return h.(extender).Extend(context.Background(), time.Minute)
			}},
			{"keep", lock.Request{}, func(h lock.Hold) error { return h.(keeper).Keep(context.Background(), time.Second) }},
			{"release", lock.Request{}, func(h lock.Hold) error { return h.Release(context.Background()) }},
		} {
			mine := dial(t, single(t).Endpoints()...)
			lossy := &lossyKV{KV: mine.KV, late: late}
			mine.KV = lossy
			l := locker(t, mine, etcdlock.Prefix("lossy-"))
			tt.r.Key = tt.name
			release(t, acquire(t, l, lock.Request{Key: tt.name})) // leaves a spare lease
			lossy.set(tt.do == nil)
			h := acquire(t, l, tt.r)
			lossy.set(tt.do != nil)
			if tt.do != nil {
				if err := tt.do(h); err != nil {
					t.Errorf("%s, late %v: %v", tt.name, late, err)
				}
			}
			lossy.arrive(t)
			switch tt.name {
			case "try", "enter", "extend":
				fails(t, locker(t, client, etcdlock.Prefix("lossy-")), lock.Request{Key: tt.name}, lock.ErrBusy)
				release(t, h)
			}
			lossy.arrive(t)
			waiting(t, client, "lossy-"+tt.name, 0)
			release(t, acquire(t, l, lock.Request{Key: tt.name}))
		}
	}
}

// An Extend that has failed may have moved the key to another lease, or may still do so.
func TestExtendAfterAnExtendInDoubt(t *testing.T) {
	parallel(t)
	client := dial(t, single(t).Endpoints()...)
	for _, late := range []bool{false, true} {
		mine := dial(t, single(t).Endpoints()...)
		lossy := &lossyKV{KV: mine.KV, late: late}
		mine.KV = lossy
		l := locker(t, mine, etcdlock.Timeout(2*time.Second))
		const key = "extend-in-doubt"
		h := acquire(t, l, lock.Request{Key: key, Lease: 20 * time.Second})
		lossy.lose = 1000
		if err := h.(extender).Extend(t.Context(), time.Minute); outage(err) == nil {
			t.Errorf("late %v: Extend() = %v, want an outage", late, err)
		}
		lossy.set(false)
		if err := h.(extender).Extend(t.Context(), 2*time.Minute); err != nil {
			t.Errorf("late %v: Extend() = %v", late, err)
		}
		lossy.arrive(t)
		resp, err := client.Get(t.Context(), key+"/", clientv3.WithPrefix())
		if err != nil || len(resp.Kvs) != 1 {
			t.Fatalf("late %v: %v, %v, want one entry", late, resp, err)
		}
		if left, err := client.TimeToLive(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil || left.TTL < 110 {
			t.Errorf("late %v: %v, %v, want a lease of 2m", late, left, err)
		}
		release(t, h)
		lossy.arrive(t)
		waiting(t, client, key, 0)
	}
}

// set lets one transaction lose its answer, if on.
func (k *lossyKV) set(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose = 0
	if on {
		k.lose = 1
	}
}
