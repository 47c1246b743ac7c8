package leases_test

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/leases"
)

type extender interface {
	Extend(context.Context, time.Duration) error
}

type keeper interface {
	Keep(context.Context, time.Duration) error
}

// rest is how long the service has key for its holder.
func (m *memory) rest(key string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.sweep(key); len(all) > 0 {
		return time.Until(all[0].until)
	}
	return 0
}

// A Store may hear that an entry is gone which never became a hold, and may say so as often as it likes.
func TestLossOfAnEntryThatIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		var entry *leases.Entry
		s.take = func(_ context.Context, e *leases.Entry, _ time.Duration) (leases.Grant, error) {
			entry = e
			e.Lost(errNetwork)
			return leases.Grant{}, nil
		}
		if _, err := newLocker(t, s).Acquire(t.Context(), lock.Request{Key: "k"}); err == nil {
			t.Error("Acquire() gives a lock that was lost")
		}
		entry.Lost(errNetwork)
	})
}

// The context given to Release, Keep and Extend may be that of another lock, and have ended because that one was lost. It says nothing
// about this lock.
func TestLossOfAnotherLockIsNotTheLossOfThisOne(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&lock.LostError{})
	for range 20 { // select chooses by chance
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			l := newLocker(t, &script{memory: m, extend: func(context.Context, *leases.Entry, time.Duration) (time.Duration, error) {
				time.Sleep(time.Millisecond)
				return 0, nil
			}})
			h := acquire(t, l, lock.Request{Lease: time.Hour})
			if err := h.(extender).Extend(ctx, time.Millisecond); err == nil || errors.Is(err, lock.ErrLost) {
				t.Errorf("Extend() = %v, want an error that is no ErrLost: nothing is known", err)
			}
			if err := h.Release(ctx); errors.Is(err, lock.ErrLost) {
				t.Errorf("Release() = %v, want no ErrLost: it is not lost", err)
			}
			time.Sleep(time.Second)
			if n := m.left(); n != 0 {
				t.Errorf("%d entries are left after the release", n)
			}
		})
	}
}

// The caller's own cause comes back as it is, also if it reads like an answer.
func TestCauseOfTheCallerIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		s.take = slow(s.memory, time.Hour)
		cause := &lock.BusyError{Waited: time.Hour}
		for _, wait := range []time.Duration{0, time.Minute} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Millisecond, func() { cancel(cause) })
			if _, err := newLocker(t, s).Acquire(ctx, lock.Request{Key: "k", Wait: wait}); err != error(cause) {
				t.Errorf("Acquire() = %v, want the cause of the context", err)
			}
		}
		time.Sleep(time.Hour)
	})
}

// The end of a wait may come while a question is open. What the service said before is still the reason.
func TestOutageIsTheLastOneHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		s.take = func(context.Context, *leases.Entry, time.Duration) (leases.Grant, error) {
			time.Sleep(400 * time.Millisecond)
			return leases.Grant{}, errNetwork
		}
		if _, err := newLocker(t, s).Acquire(t.Context(), lock.Request{Key: "k", Wait: 200 * time.Millisecond}); !errors.Is(err, errNetwork) {
			t.Errorf("Acquire() = %v, want %v", err, errNetwork)
		}
		time.Sleep(time.Hour)
	})
}

// A renewed lock outlives a crash for the watchdog's lease, also if it has a MaxHold.
func TestMaxHoldIsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLocker(t, m)
		h := acquire(t, l, lock.Request{MaxHold: time.Hour})
		for range 100 {
			time.Sleep(time.Second)
			if rest := m.rest("k"); rest > leases.DefaultWatchdog || rest < leases.DefaultWatchdog/2 {
				t.Fatalf("the service has it for %v, want up to %v", rest, leases.DefaultWatchdog)
			}
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two holds of a stay that are kept are in the way of strangers until the later one ends.
func TestShorterKeepDoesNotCutALongerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		l := newLocker(t, m)
		outer := acquire(t, l, lock.Request{})
		inner, err := l.Acquire(context.WithoutCancel(outer.Context()), lock.Request{Key: "k"})
		if err != nil {
			t.Fatal(err)
		}
		if err := inner.(keeper).Keep(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if err := outer.(keeper).Keep(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
		if rest := m.rest("k"); rest != time.Minute {
			t.Errorf("the service keeps it for %v, want 1m", rest)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := m.left(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// Each attempt to keep a lock leaves it in the service until the Keep is over. So if a later attempt finds nothing before that, the lock
// was lost, and no earlier attempt has done it.
func TestKeepThatIsRepeatedTellsALoss(t *testing.T) {
	for _, tt := range []struct {
		keep time.Duration
		want error
	}{{time.Minute, lock.ErrLost}, {time.Millisecond, nil}} {
		synctest.Test(t, func(t *testing.T) {
			s := &deafKeep{memory: newMemory()}
			l := newLocker(t, s)
			h := acquire(t, l, lock.Request{})
			if err := h.(keeper).Keep(t.Context(), tt.keep); !errors.Is(err, tt.want) {
				t.Errorf("Keep(%v) = %v, want %v", tt.keep, err, tt.want)
			}
			_ = acquire(t, l, lock.Request{}).Release(t.Context()) // a loss leaves nothing in the way
		})
	}
}

// deafKeep is a service that gives no answer to the first Free, and has lost the entry by the second one.
type deafKeep struct {
	*memory
	asked bool
}

func (s *deafKeep) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	if s.asked {
		return s.memory.Free(ctx, e, keep)
	}
	s.asked = true
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, e.Key)
	return errNetwork
}

// An Extend whose answer comes after the end of the hold reports that end.
func TestExtendThatIsLateReportsTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{memory: newMemory()}
		s.extend = func(context.Context, *leases.Entry, time.Duration) (time.Duration, error) {
			time.Sleep(2 * time.Second)
			return 0, nil
		}
		h := acquire(t, newLocker(t, s), lock.Request{Lease: time.Second})
		if err := h.(extender).Extend(t.Context(), time.Minute); !errors.Is(err, lock.ErrLost) {
			t.Errorf("Extend() = %v, want ErrLost", err)
		}
	})
}

// What panics in the Store is an outage of that call.
func TestPanicsOfEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &panics{memory: m}
		l := newLocker(t, s, leases.Kinds("", allKinds...), leases.Watchdog(time.Second))
		write := acquire(t, l, lock.Request{Kind: lock.Write})
		read, err := l.Acquire(context.WithoutCancel(write.Context()), lock.Request{Key: "k", Kind: lock.Read})
		if err != nil {
			t.Fatal(err)
		}
		s.on.Store(true)
		if err := l.Peek(t.Context(), lock.Request{Key: "k"}); err == nil {
			t.Error("Peek() = nil")
		}
		if err := read.(extender).Extend(t.Context(), time.Second); err == nil {
			t.Error("Extend() = nil")
		}
		if err := write.Release(t.Context()); err != nil {
			t.Errorf("Release() = %v, want nil: the stay goes on", err)
		}
		if err := read.Release(t.Context()); err == nil {
			t.Error("Release() = nil, though the service did not hear of it")
		}
		s.on.Store(false)
		time.Sleep(time.Minute)
		if n := m.left(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

type panics struct {
	*memory
	on atomic.Bool
}

func (p *panics) check() {
	if p.on.Load() {
		panic("index out of range")
	}
}

func (p *panics) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	p.check()
	return p.memory.Extend(ctx, e, d)
}

func (p *panics) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	p.check()
	return p.memory.Free(ctx, e, keep)
}

func (p *panics) Downgrade(ctx context.Context, e *leases.Entry) error {
	p.check()
	return p.memory.Downgrade(ctx, e)
}

func (p *panics) Peek(ctx context.Context, e *leases.Entry) error {
	p.check()
	return p.memory.Peek(ctx, e)
}

// No duration is too long to count with.
func TestLongestDurations(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, newMemory(), leases.Watchdog(most), leases.Timeout(most), leases.Poll(most, most))
		for _, r := range []lock.Request{{}, {Lease: most}, {MaxHold: most}, {Lease: most, MaxHold: most, Wait: most}, {Lease: time.Millisecond}} {
			h := acquire(t, l, r)
			if err := h.(extender).Extend(t.Context(), most); err != nil {
				t.Errorf("%+v: Extend() = %v", r, err)
			}
			waits := waiting(t, l, lock.Request{Wait: most})
			time.Sleep(time.Hour)
			if err := h.Context().Err(); err != nil {
				t.Errorf("%+v: the context has ended: %v", r, err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Errorf("%+v: Release() = %v", r, err)
			}
			<-waits
		}
		h := acquire(t, l, lock.Request{})
		if err := h.(keeper).Keep(t.Context(), most); err != nil {
			t.Errorf("Keep() = %v", err)
		}
	})
}

// What a cancelled request has done is anybody's guess, so a call of the Store goes on when its caller has left, and its entry is freed.
func TestCallGoesOnWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := &script{memory: m}
		s.take = slow(m, time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := newLocker(t, s).Acquire(ctx, lock.Request{Key: "k"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire() = %v, want the end of the context", err)
		}
		time.Sleep(time.Minute)
		m.mu.Lock()
		grants := m.token
		m.mu.Unlock()
		if grants != 1 || m.left() != 0 {
			t.Errorf("%d grants and %d entries, want 1 that was freed again", grants, m.left())
		}
	})
}

// The work is told before anybody else can have the lock.
func TestContextEndsBeforeTheEntryIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuckFree{memory: newMemory(), stuck: make(chan struct{})}
		h := acquire(t, newLocker(t, s), lock.Request{})
		released := make(chan error)
		go func() { released <- h.Release(t.Context()) }()
		synctest.Wait()
		if h.Context().Err() == nil {
			t.Error("the context is alive while the entry is freed")
		}
		close(s.stuck)
		if err := <-released; err != nil {
			t.Errorf("Release() = %v", err)
		}
	})
}
