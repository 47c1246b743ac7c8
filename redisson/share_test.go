package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Readers of a process that come within a moment share a holder in Redis.

// readTogether has n calls read for a while at the same time, and returns what their releases said.
func readTogether(t *testing.T, n int, take func(ctx context.Context) (lock.Hold, error), between func()) (said []error) {
	t.Helper()
	said = make([]error, n)
	holds := make([]lock.Hold, n)
	each := func(f func(i int)) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { f(i) })
		}
		all.Wait()
	}
	each(func(i int) {
		h, err := take(t.Context())
		if err != nil {
			t.Errorf("Acquire: %v", err)
			return
		}
		holds[i] = h
	})
	between()
	each(func(i int) {
		if holds[i] != nil {
			said[i] = holds[i].Release(context.Background())
		}
	})
	return said
}

func TestReadersShareAHolder(t *testing.T) {
	t.Parallel()
	const readers = 64
	s := redistest.Start(t)
	rdb, a := s.Client(t), new(questions)
	rdb.AddHook(a)
	c, admin := onClient(t, rdb), s.Client(t)
	reading := func(key string) func(context.Context) (lock.Hold, error) {
		return func(ctx context.Context) (lock.Hold, error) {
			return c.Acquire(ctx, lock.Request{Key: key, Kind: lock.Read, Wait: time.Second})
		}
	}
	writer, fewest := newClient(t, s), readers
	for i := range 5 {
		key := fmt.Sprint("k", i)
		scripts, _, _ := a.since(func() {
			for _, err := range readTogether(t, readers, reading(key), func() {
				if n := admin.HLen(t.Context(), key).Val(); n > readers/4 { // the mode and a reader, or some on a machine that stands still
					t.Errorf("%d fields while %d read", n, readers)
				}
				expectHeldByOthers(t.Context(), t, "a writer beside readers", writer, lock.Request{Key: key, Kind: lock.Write})
			}) {
				check(t, err)
			}
		})
		fewest = min(fewest, scripts)
		release(t, acquire(t.Context(), t, writer, lock.Request{Key: key, Kind: lock.Write}))
	}
	if fewest > readers/4 { // make counts has 3, and a busy machine more
		t.Errorf("%d scripts for %d readers", fewest, readers)
	}

	// As soon as one has left after a loss, the others are told.
	var holds []lock.Hold
	for range 3 {
		h, err := reading("lost")(t.Context())
		check(t, err)
		holds = append(holds, h)
	}
	check(t, admin.Del(t.Context(), "lost").Err())
	_ = holds[0].Release(t.Context())
	for _, h := range holds[1:] {
		if <-h.Context().Done(); !errors.Is(h.Release(t.Context()), lock.ErrLost) {
			t.Error("a reader was not told of a loss")
		}
	}
}

// Each reader has its own lease, counted from when it came. One with another lease has a holder of its own, so that a crash leaves nothing for longer
// than it has asked for.
func TestReadersHaveTheirOwnLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, writer, admin := newClient(t, s), newClient(t, s), s.Client(t)
	read := func(lease time.Duration) lock.Hold {
		return acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Read, Lease: lease})
	}
	fields := func(want int64, what string) {
		t.Helper()
		if n := admin.HLen(t.Context(), "k").Val(); n != want {
			t.Errorf("%d fields, want %d: %s", n, want, what)
		}
	}
	const lease = 800 * time.Millisecond
	start := time.Now()
	first := read(lease)
	time.Sleep(10 * time.Millisecond)
	asked := time.Now()
	second := read(lease)
	if sure := redisson.Left(second.Context(), c, "k", lock.Read) + time.Since(asked); sure < lease*19/20 { // the rest is the margin
		t.Errorf("a reader relies on %v of its lease of %v", sure, lease)
	}
	quick := time.Since(start) < 45*time.Millisecond
	if quick {
		fields(2, "the mode and one reader")
	}
	renewed := read(0)
	if quick {
		fields(3, "the mode and two readers")
	}
	<-first.Context().Done()
	if renewed.Context().Err() != nil || second.Context().Err() != nil && time.Since(start) < lease {
		t.Error("the end of one ended others")
	}
	if err := first.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Release after the lease = %v", err)
	}
	release(t, renewed)
	switch h, err := writer.Acquire(t.Context(), lock.Request{Key: "k", Kind: lock.Write}); {
	case err == nil && second.Context().Err() != nil: // the machine stood still meanwhile
		release(t, h)
	case !errors.Is(err, lock.ErrBusy):
		t.Errorf("a writer beside the second: %v", err)
	}
	<-second.Context().Done()
	if lasted := ran(start); lasted > lease+30*time.Millisecond+time.Second {
		t.Errorf("the second lasted until %v", lasted)
	}
	eventually(t, "the lock is free", func() bool { return admin.Exists(t.Context(), "k").Val() == 0 })
}

// A call that reads under its own write does not share, nor does anybody share with it; and a streak ends.
func TestReadersThatDoNotShare(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, admin := newClient(t, s), s.Client(t)
	read := lock.Request{Key: "k", Kind: lock.Read}
	w := acquire(t.Context(), t, c, lock.Request{Key: "k", Kind: lock.Write})
	nested := acquire(w.Context(), t, c, read)
	release(t, w) // and goes on reading
	first := acquire(t.Context(), t, c, read)
	if n := admin.HLen(t.Context(), "k").Val(); n != 3 {
		t.Errorf("%d fields, want the mode, who has written, and a reader", n)
	}
	release(t, nested)
	time.Sleep(60 * time.Millisecond)
	later := acquire(t.Context(), t, c, read)
	if n := admin.HLen(t.Context(), "k").Val(); n != 3 {
		t.Errorf("%d fields, want the mode and two readers", n)
	}
	release(t, first)
	release(t, later)
	if n := len(keys(t, admin)); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
