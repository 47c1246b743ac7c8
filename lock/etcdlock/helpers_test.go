package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/latchkey-go/latchkey/lock"
)

// acquire returns a hold, or fails the test.
func acquire(tb testing.TB, l lock.Locker, r lock.Request) lock.Hold {
	tb.Helper()
	h, err := l.Acquire(tb.Context(), r)
	if err != nil {
		tb.Fatalf("Acquire(%v) = %v", r.Kind, err)
	}
	return h
}

func release(tb testing.TB, h lock.Hold) {
	tb.Helper()
	if err := h.Release(context.Background()); err != nil {
		tb.Errorf("Release() = %v", err)
	}
}

// fails checks the error of a try.
func fails(tb testing.TB, l lock.Locker, r lock.Request, want error) {
	tb.Helper()
	if _, err := l.Acquire(tb.Context(), r); !errors.Is(err, want) {
		tb.Errorf("Acquire(%v, %v) = %v, want %v", r.Kind, r.Wait, err, want)
	}
}

// outcome is what became of an Acquire in the background.
type outcome struct {
	hold lock.Hold
	err  error
}

// background starts an Acquire.
func background(ctx context.Context, l lock.Locker, r lock.Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		h, err := l.Acquire(ctx, r)
		done <- outcome{h, err}
	}()
	return done
}

// held returns the hold of an Acquire in the background.
func held(tb testing.TB, done <-chan outcome) lock.Hold {
	tb.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case o := <-done:
		if o.err != nil {
			tb.Fatalf("Acquire() = %v", o.err)
		}
		return o.hold
	case <-timer.C:
		tb.Fatal("nobody gets the lock")
	}
	return nil
}

// waiting returns when so many keys are below the lock's.
func waiting(tb testing.TB, client *clientv3.Client, key string, n int) {
	tb.Helper()
	eventually(tb, func() bool { return len(line(tb, client, key)) == n })
}

// line returns the keys below the lock's, oldest first.
func line(tb testing.TB, client *clientv3.Client, key string) (names []string) {
	tb.Helper()
	var resp *clientv3.GetResponse
	eventually(tb, func() (ok bool) { // a member may be silent
		ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(tb.Context()), time.Second)
		defer cancel()
		var err error
		resp, err = client.Get(ctx, key+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		return err == nil
	})
	for _, kv := range resp.Kvs {
		names = append(names, strings.TrimPrefix(string(kv.Key), key+"/"))
	}
	return names
}

// eventually waits until ok.
func eventually(tb testing.TB, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("it never comes true")
		}
	}
}
