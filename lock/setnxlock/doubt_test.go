package setnxlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
)

// What Redis did and could not say is found out.
func TestLostAnswers(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, l *setnxlock.Locker, cut func())
	}{
		{"of a take", func(t *testing.T, l *setnxlock.Locker, cut func()) {
			cut()
			release(t, acquire(t, l, lock.Request{Key: "k"}))
		}},
		{"of a release", func(t *testing.T, l *setnxlock.Locker, cut func()) {
			h := acquire(t, l, lock.Request{Key: "k"})
			cut()
			release(t, h)
		}},
		{"of renewals", func(t *testing.T, l *setnxlock.Locker, cut func()) {
			h := acquire(t, l, lock.Request{Key: "k"})
			cut()
			<-time.After(1500 * time.Millisecond)
			if err := context.Cause(h.Context()); err != nil {
				t.Errorf("the hold has ended: %v", err)
			}
			release(t, h)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			l, p := behind(t, s, setnxlock.Watchdog(time.Second))
			release(t, acquire(t, l, lock.Request{Key: "first"}))
			tt.do(t, l, func() { p.CutReply(namingK, 2) })
			if n := p.Cuts(); n > 0 {
				t.Errorf("%d answers were not lost: the test shows nothing", n)
			}
			rdb := s.Client(t)
			eventually(t, "nothing is left", func() bool { return len(keys(t, rdb)) == 0 })
		})
	}
}

// A request that is late, because its connection broke on the way, must not take what was released, shorten a lease, or take away
// somebody else's lock.
func TestLateRequests(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l, p := behind(t, s)
	release(t, acquire(t, l, lock.Request{Key: "first"}))

	take := p.KeepBack(namingK, 0)
	h := acquire(t, l, lock.Request{Key: "k"})
	take.Await(t)
	release(t, h)
	take.Deliver(t) // is freed again soon, without anybody's help
	h = acquire(t, newLocker(t, rdb), lock.Request{Key: "k", Wait: 5 * time.Second})
	release(t, h)

	extend := p.KeepBack(namingK, 1)
	h = acquire(t, l, lock.Request{Key: "k", Lease: 3 * time.Second})
	extendTo(t, h, 20*time.Second)
	extend.Await(t)
	extendTo(t, h, time.Minute)
	extend.Deliver(t)
	if left := rdb.PTTL(t.Context(), "k").Val(); left < 50*time.Second {
		t.Errorf("a late copy has left a lease of %v", left)
	}

	free := p.KeepBack(namingK, 0)
	release(t, h)
	free.Await(t)
	other := acquire(t, newLocker(t, rdb), lock.Request{Key: "k"})
	free.Deliver(t)
	expectBusy(t, l)
	release(t, other)
}

// The first attempt to keep a lock has no answer, and the second one finds that the lock has gone. The first one can't have done that.
func TestKeepInDoubtTellsALoss(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l, p := behind(t, s)
	release(t, acquire(t, l, lock.Request{Key: "first"}))
	h := acquire(t, l, lock.Request{Key: "k"})
	late := p.KeepBack(namingK, 0)
	rdb.Del(t.Context(), "k")
	if err := h.(interface {
		Keep(context.Context, time.Duration) error
	}).Keep(t.Context(), time.Minute); !errors.Is(err, lock.ErrLost) {
		t.Errorf("Keep() = %v, want ErrLost", err)
	}
	late.Await(t)
	late.Deliver(t)
	release(t, acquire(t, l, lock.Request{Key: "k"}))
}

func extendTo(tb testing.TB, h lock.Hold, d time.Duration) {
	tb.Helper()
	if err := h.(interface {
		Extend(context.Context, time.Duration) error
	}).Extend(context.Background(), d); err != nil {
		tb.Fatal(err)
	}
}

// An Acquire without an answer gives back what it has taken, also if its request arrives later.
func TestFailedAcquireLeavesNothing(t *testing.T) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	l, p := behind(t, s, setnxlock.Timeout(200*time.Millisecond), setnxlock.Watchdog(2*time.Second))
	release(t, acquire(t, l, lock.Request{Key: "first"}))
	late := p.KeepBackSilently(namingK, 0)
	start := time.Now()
	if _, err := l.Acquire(t.Context(), lock.Request{Key: "k", Lease: time.Hour}); err == nil || errors.Is(err, lock.ErrBusy) {
		t.Errorf("Acquire without an answer = %v, want an outage", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	<-time.After(300 * time.Millisecond) // the first attempts to free it have found nothing
	late.Deliver(t)
	if n := rdb.Exists(t.Context(), "k").Val(); n != 1 {
		t.Log("it is freed already") // it was delivered and then freed at once, or the test shows nothing
	}
	eventually(t, "the lock is freed", func() bool { return rdb.Exists(t.Context(), "k").Val() == 0 })
}

// A caller who leaves while Redis is silent leaves soon, and nothing behind.
func TestCancelDuringSilence(t *testing.T) {
	s := redistest.Start(t)
	l, p := behind(t, s)
	release(t, acquire(t, l, lock.Request{Key: "first"}))
	p.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := l.Acquire(ctx, lock.Request{Key: "k", Wait: time.Minute}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire = %v, want the caller's deadline", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("the caller left after %v", took)
	}
	p.Thaw()
	rdb := s.Client(t)
	eventually(t, "what it had asked for is freed", func() bool { return len(keys(t, rdb)) == 0 })
}
