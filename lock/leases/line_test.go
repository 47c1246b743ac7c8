package leases_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

type takeFunc = func(context.Context, *leases.Entry, time.Duration) (leases.Grant, error)

// slow is a service that needs d for each Take.
func slow(m *memory, d time.Duration) takeFunc {
	return func(ctx context.Context, e *leases.Entry, lease time.Duration) (leases.Grant, error) {
		wait(ctx, d)
		if ctx.Err() != nil {
			return leases.Grant{}, ctx.Err()
		}
		return m.Take(ctx, e, lease)
	}
}

// Who waits behind a holder of the same process asks nothing meanwhile. That is no silence of the service.
func TestWaitBehindALocalHolderIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newMemory())
		h := acquire(t, l, lock.Request{})
		next := waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(10 * leases.DefaultTimeout)
		_ = h.Release(t.Context())
		if took := <-next; took != 10*leases.DefaultTimeout {
			t.Errorf("the waiter had it after %v, want as soon as it was released", took)
		}
	})
}

// An outage that is over is no reason to give up behind the one who has got the lock since.
func TestOutageIsForgottenWithTheNextGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		s.take = func(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
			if s.asked.Load() < 3 {
				return leases.Grant{}, errNetwork
			}
			return m.Take(ctx, e, d)
		}
		l := newLocker(t, s)
		h := acquire(t, l, lock.Request{Wait: -1})
		next := waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(time.Minute)
		_ = h.Release(t.Context())
		if took := <-next; took != time.Minute {
			t.Errorf("the waiter had it after %v, want 1m", took)
		}
	})
}

// One failure after a long time without any question is not a silence of all that time.
func TestOneFailureAfterALongHoldIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		other, l := newLocker(t, m), newLocker(t, s)
		h := acquire(t, other, lock.Request{Lease: 10 * time.Millisecond})
		first := waiting(t, l, lock.Request{Wait: -1}) // hears that it is busy
		<-h.Context().Done()
		<-first
		h = acquire(t, l, lock.Request{})
		next := waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(time.Minute)
		failed := false
		s.take = func(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
			if !failed {
				failed = true
				return leases.Grant{}, errNetwork
			}
			return m.Take(ctx, e, d)
		}
		_ = h.Release(t.Context())
		if took := <-next; took > time.Minute+leases.DefaultPause*2 {
			t.Errorf("the waiter had it after %v, want after a pause", took)
		}
	})
}

// A caller that leaves before the service has answered knows nothing that the others should hear.
func TestImpatienceOfTheFirstIsNoOutageForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		s.take = slow(m, 200*time.Millisecond)
		l := newLocker(t, s)
		h := acquire(t, l, lock.Request{})
		taken := time.Now()
		impatient := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: 10*time.Second + 50*time.Millisecond})
			impatient <- err
		}()
		synctest.Wait()
		next := waiting(t, l, lock.Request{Wait: -1})
		time.Sleep(10*time.Second - time.Since(taken))
		_ = h.Release(t.Context())
		if err := <-impatient; !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire() = %v, want ErrBusy", err)
		}
		if took := <-next; took > 11*time.Second {
			t.Errorf("the next had it after %v", took)
		}
	})
}

// Those behind the first in line may have come while its question was open.
func TestBusyComesInTimeToThoseBehindTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		s.take = slow(m, 40*time.Millisecond)
		other, l := newLocker(t, m), newLocker(t, s, rarely)
		h := acquire(t, other, lock.Request{Lease: 2 * time.Hour})
		first := waiting(t, l, lock.Request{Wait: -1})
		start := time.Now()
		_, err := l.Acquire(t.Context(), lock.Request{Key: "k", Wait: time.Second})
		if over := time.Since(start) - time.Second; !errors.Is(err, lock.ErrBusy) || over > 100*time.Millisecond {
			t.Errorf("Acquire() = %v, %v after the end of its wait, want ErrBusy within 100ms", err, over)
		}
		_ = h.Release(t.Context())
		<-first
	})
}

// A service of which one replica answers and another fails is asked once a pause.
func TestFirstInLinePausesWhateverItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		s.take = func(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
			if s.asked.Load()%2 == 0 {
				return leases.Grant{}, errNetwork
			}
			return m.Take(ctx, e, d)
		}
		h := acquire(t, newLocker(t, m), lock.Request{})
		_, err := newLocker(t, s, leases.Poll(time.Second, 0)).Acquire(t.Context(), lock.Request{Key: "k", Wait: 10500 * time.Millisecond})
		if !errors.Is(err, lock.ErrBusy) || s.asked.Load() > 12 { // one a second, and one more when it listens
			t.Errorf("Acquire() = %v after %d questions, want ErrBusy after 12", err, s.asked.Load())
		}
		_ = h.Release(t.Context())
	})
}

// When the write lock of a stay is gone and a read lock is left, readers of the same process need not wait for the rest.
func TestDowngradeWakesTheReadersOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newMemory(), leases.Kinds("", allKinds...), rarely)
		write := acquire(t, l, lock.Request{Kind: lock.Write})
		read, err := l.Acquire(context.WithoutCancel(write.Context()), lock.Request{Key: "k", Kind: lock.Read})
		if err != nil {
			t.Fatal(err)
		}
		next := waiting(t, l, lock.Request{Kind: lock.Read, Wait: -1})
		time.Sleep(time.Second)
		_ = write.Release(t.Context())
		synctest.Wait()
		time.Sleep(time.Second)
		_ = read.Release(t.Context())
		if took := <-next; took != time.Second {
			t.Errorf("the reader had it after %v, want 1s", took)
		}
	})
}

// Readers that come and go don't keep another one out who tries once.
func TestLeavingReadersAreInNobodysWay(t *testing.T) {
	for _, r := range []lock.Request{{Kind: lock.Read}, {Kind: lock.Permit, Limit: 2}} {
		synctest.Test(t, func(t *testing.T) {
			s := &stuckFree{memory: newMemory(), stuck: make(chan struct{})}
			l := newLocker(t, s, leases.Kinds("", allKinds...))
			h := acquire(t, l, r)
			go func() { _ = h.Release(t.Context()) }()
			synctest.Wait()
			start := time.Now()
			_ = acquire(t, l, r)
			if took := time.Since(start); took != 0 {
				t.Errorf("%v took %v beside one that leaves", r.Kind, took)
			}
			close(s.stuck)
			time.Sleep(time.Minute)
		})
	}
}

// stuckFree does not free anything until it is closed.
type stuckFree struct {
	*memory
	stuck chan struct{}
}

func (s *stuckFree) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	select {
	case <-s.stuck:
		return s.memory.Free(ctx, e, keep)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watches is a Watcher whose faults are scripted.
type watches struct {
	*script
	watch func(ctx context.Context) (<-chan struct{}, func(), error)
}

func (w watches) Watch(ctx context.Context, _ string) (<-chan struct{}, func(), error) {
	return w.watch(ctx)
}

// A Watcher is a help. Whatever it does, those that wait ask after each pause, and leave when they want.
func TestFaultsOfAWatcherCostOnlyItsMessages(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	for _, tt := range []struct {
		name  string
		watch func(context.Context) (<-chan struct{}, func(), error)
	}{
		{"hangs", func(context.Context) (<-chan struct{}, func(), error) {
			time.Sleep(time.Hour)
			return nil, nil, errNetwork
		}},
		{"panics", func(context.Context) (<-chan struct{}, func(), error) { panic("index out of range") }},
		{"closes its channel", func(context.Context) (<-chan struct{}, func(), error) { return closed, func() {}, nil }},
		{"has nothing to stop", func(context.Context) (<-chan struct{}, func(), error) { return nil, nil, nil }},
		{"panics when it is stopped", func(context.Context) (<-chan struct{}, func(), error) {
			return nil, func() { panic("close of nil channel") }, nil
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			s := watches{&script{memory: m}, tt.watch}
			h := acquire(t, newLocker(t, m), lock.Request{})
			l := newLocker(t, s, leases.Poll(time.Second, 0))
			ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
			defer cancel()
			start := time.Now()
			_, err := l.Acquire(ctx, lock.Request{Key: "k", Wait: -1})
			asked := s.asked.Load()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 5500*time.Millisecond || asked < 6 || asked > 8 {
				t.Errorf("a Watch that %s: Acquire() = %v after %v and %d questions", tt.name, err, took, asked)
			}
			_ = h.Release(t.Context())
			time.Sleep(2 * time.Hour)
		})
	}
}

// nosy is a context that asks a Locker whenever it is asked itself, as one that traces or counts may.
type nosy struct {
	context.Context
	ask func()
}

func (n nosy) Value(key any) any {
	n.ask()
	return n.Context.Value(key)
}

func TestContextsMayUseTheLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newMemory())
		other := acquire(t, l, lock.Request{})
		ctx := nosy{t.Context(), func() { other.(interface{ Remaining() time.Duration }).Remaining() }}
		h, err := l.Acquire(ctx, lock.Request{Key: "k2"})
		if err != nil {
			t.Fatal(err)
		}
		nested, err := l.Acquire(nosy{h.Context(), ctx.ask}, lock.Request{Key: "k2"})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range []lock.Hold{nested, h, other} {
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
