package held

import (
	"context"
	"errors"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// What is taken on one way only is not held on all.

func maybe(ctx context.Context, l, m *redisson.Lock, safe bool) error {
	if safe {
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock(held)
		ctx = held
	}
	return m.Do(ctx, work)
}

func eitherWay(ctx context.Context, l, m *redisson.Lock) error {
	under, err := l.Lock(ctx)
	if err != nil {
		under = ctx // without the lock, as it is only a cache
	} else {
		defer l.Unlock(under)
	}
	return m.Do(under, work)
}

func fallback(ctx context.Context, l, m *redisson.Lock) error {
	held, err := l.Lock(ctx)
	switch {
	case errors.Is(err, lock.ErrBusy):
		return m.Do(ctx, work)
	case err != nil:
		return err
	}
	defer l.Unlock(held)
	return m.Do(ctx, work) // want `the lock around it is held under held`
}

func tries(ctx context.Context, l, m *redisson.Lock) error {
	held, ok, err := l.TryLock(ctx, 0, 0)
	if err != nil {
		return err
	}
	if !ok {
		return m.Do(ctx, work)
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }() // want `Unlock under ctx, which was given to Lock: the lock is held under held`
	_ = held
	return m.Do(ctx, work) // want `the lock around it is held under held`
}

func named(ctx context.Context, l, m *redisson.Lock) (err error) {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(held)) }()
	return m.Do(ctx, work) // want `the lock around it is held under held`
}

func fatal(ctx context.Context, l, m *redisson.Lock) {
	held, err := l.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_ = m.Do(ctx, work) // not behind a deferred Unlock: not seen
	_ = l.Unlock(held)
	_ = m.Do(ctx, work)
}

func ignored(ctx context.Context, l, m *redisson.Lock) {
	held, _ := l.Lock(ctx)
	_ = m.Do(ctx, work) // not behind a deferred Unlock: not seen
	_ = l.Unlock(held)
}

func logged(ctx context.Context, l, m *redisson.Lock) {
	held, err := l.Lock(ctx)
	if err != nil {
		log.Print(err)
	}
	_ = m.Do(ctx, work) // which may be meant to run without
	_ = l.Unlock(held)
}

// What is in a loop comes after an Unlock, too.

func loop(ctx context.Context, l, m *redisson.Lock) error {
	for range 3 {
		if err := m.Do(ctx, work); err != nil {
			return err
		}
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		if err := m.Do(ctx, work); err != nil { // not behind a deferred Unlock: not seen
			return err
		}
		if err := l.Unlock(held); err != nil {
			return err
		}
		_ = m.Do(ctx, work)
	}
	return m.Do(ctx, work)
}

func handOver(ctx context.Context, l *redisson.Lock) error {
	for ctx.Err() == nil {
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		ctx = held
		_ = work(ctx)
		if err := l.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

func all(ctx context.Context, locks []*redisson.Lock) error {
	for _, l := range locks {
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock(held)
		ctx = held
	}
	return work(ctx)
}

// A context that was made of the held one is held.

func bounded(ctx context.Context, l, m *redisson.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock(context.WithoutCancel(held)) }()
	short, cancel := context.WithTimeoutCause(held, time.Second, errors.New("late"))
	defer cancel()
	value := context.WithValue(short, key{}, 1)
	_ = m.Do(value, work)
	before, cancel2 := context.WithCancel(ctx)
	defer cancel2()
	return m.Do(before, work) // want `the lock around it is held under held: under before`
}

type key struct{}

func shadowed(ctx context.Context, l, m *redisson.Lock) error {
	{
		ctx, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock(ctx)
		_ = m.Do(ctx, work)
	}
	return m.Do(ctx, work) // not behind a deferred Unlock: not seen
}

func deferredFirst(ctx context.Context, l *redisson.Lock) (err error) {
	var held context.Context
	defer func() { _ = l.Unlock(held) }()
	held, err = l.Lock(ctx)
	return err
}

// Who gets the lock or its hold may give it back.

func helped(ctx context.Context, l, m *redisson.Lock, s *store) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	_ = unlock(l, held)
	_ = m.Do(ctx, work)

	held, err = s.l.Lock(ctx)
	if err != nil {
		return err
	}
	s.finish(held)
	_ = m.Do(ctx, work)

	held, err = s.l.Lock(ctx)
	if err != nil {
		return err
	}
	undo := func() { _ = s.l.Unlock(held) }
	undo()
	_ = m.Do(ctx, work)

	held, err = s.l.Lock(ctx)
	if err != nil {
		return err
	}
	s.once.Do(func() { _ = s.l.Unlock(held) })
	return m.Do(ctx, work)
}

type store struct {
	l    *redisson.Lock
	held context.Context
	once sync.Once
}

func (s *store) finish(held context.Context) { _ = s.l.Unlock(held) }

func (s *store) begin(ctx context.Context) (err error) {
	s.held, err = s.l.Lock(ctx)
	return err
}

func (s *store) end() error { return s.l.Unlock(s.held) }

func (s *store) field(ctx context.Context) error {
	held, err := s.l.Lock(ctx)
	if err != nil {
		return err
	}
	defer s.l.Unlock(ctx) // want `Unlock under ctx, which was given to Lock: the lock is held under held`
	return work(held)
}

func take(ctx context.Context, l *redisson.Lock) (context.Context, error) { return l.Lock(ctx) }

func giver(ctx context.Context, l *redisson.Lock) (held context.Context, unlock func() error, err error) {
	held, err = l.Lock(ctx)
	return held, func() error { return l.Unlock(held) }, err
}

func taken(ctx context.Context, l, m *redisson.Lock) error {
	held, unlock, err := giver(ctx, l)
	if err != nil {
		return err
	}
	defer unlock()
	again, err := take(held, l)
	if err != nil {
		return err
	}
	defer l.Unlock(again)
	return m.Do(ctx, work) // across functions: not seen
}

// Other goroutines are other callers, and so are the literals that nobody is known to call.

func goroutines(ctx context.Context, l, m *redisson.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock(held)
	var g sync.WaitGroup
	g.Go(func() { _ = m.Do(ctx, work) })
	go m.Do(ctx, work)
	go func() {
		inner, err := m.Lock(ctx)
		if err == nil {
			_ = m.Unlock(inner)
		}
	}()
	g.Wait()
	return nil
}

func inLiteral(ctx context.Context, l, m *redisson.Lock) func() error {
	return func() error {
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock(held)
		return m.Do(ctx, work) // want `the lock around it is held under held`
	}
}

var atTop = func(ctx context.Context, l *redisson.Lock) {
	_, _ = l.Lock(ctx)
	_ = l.Unlock(ctx) // want `Unlock under ctx, which was given to Lock: the lock is held under the context that it returned`
}

// Two locks of a function are not one.

func others(ctx context.Context, held context.Context, l, m *redisson.Lock) error {
	inner, err := m.Lock(held)
	if err != nil {
		return err
	}
	defer m.Unlock(inner)
	return l.Unlock(held)
}

func twoClients(ctx context.Context, c *redisson.Client) error {
	held, err := c.Lock("a").Lock(ctx)
	if err != nil {
		return err
	}
	return c.Lock("a").Unlock(held)
}

func read(ctx context.Context, rw *redisson.ReadWriteLock) error {
	r, w := rw.ReadLock(), rw.WriteLock()
	held, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	_ = r.Unlock(held)
	held, err = w.Lock(ctx)
	if err != nil {
		return err
	}
	return w.Unlock(ctx) // want `Unlock under ctx, which was given to Lock: the lock is held under held`
}

func multi(ctx context.Context, m *redisson.MultiLock, l redisson.Lock) error {
	held, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer m.Unlock(held)
	inner, ok, err := l.TryLock(ctx, 0, 0) // want `the lock around it is held under held`
	if err != nil || !ok {
		return err
	}
	return l.Unlock(inner)
}

func holds(ctx context.Context, l lock.Locker, m *redisson.Lock, keep bool) error {
	hold, err := l.Acquire(ctx, lock.Request{Key: "k"})
	if hold == nil {
		return err
	}
	if keep {
		_ = m.Do(ctx, work) // not behind a deferred Unlock: not seen
		return hold.Release(ctx)
	}
	release(hold)
	return m.Do(ctx, work)
}

func release(h lock.Hold) { _ = h.Release(context.Background()) }

func generic[L interface {
	Lock(context.Context) (context.Context, error)
	Unlock(context.Context) error
}](ctx context.Context, l L) error {
	if _, err := l.Lock(ctx); err != nil {
		return err
	}
	return l.Unlock(ctx) // of whom is not known
}

// A test that means it says so, or does it under a context of its own.

func TestUnlock(t *testing.T, l, m *redisson.Lock) {
	held, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(t.Context()); err == nil {
		t.Error("unlocked by a stranger")
	}
	_ = m.Do(t.Context(), work)
	_ = l.Unlock(held)
	if err := l.Unlock(context.Background()); err == nil { //latchkey:ok a stranger may not
		t.Error("unlocked by a stranger")
	}
}

func redo(ctx context.Context, g *guard.Guard, l *redisson.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return l.Do(ctx, func(ctx context.Context) error {
		ctx = context.WithValue(ctx, key{}, 1)
		_, err := guard.Do(ctx, g, 1, func(ctx context.Context) (int, error) { return 1, l.Do(ctx, work) })
		return err
	})
}

func panics(ctx context.Context, l, m *redisson.Lock) {
	held, err := l.Lock(ctx)
	if err != nil {
		panic(err)
	}
	defer func() {
		if v := recover(); v != nil {
			_ = l.Unlock(context.WithoutCancel(held))
		}
	}()
	select {
	case <-held.Done():
		_ = l.Unlock(held)
	case <-ctx.Done():
		_ = m.Do(ctx, work) // not behind a deferred Unlock: not seen
	}
	_ = m.Do(ctx, work)
}

func correlated(ctx context.Context, l, m *redisson.Lock, safe bool) error {
	if safe {
		held, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock(held)
	}
	if !safe {
		return m.Do(ctx, work)
	}
	return nil
}

func chosen(ctx context.Context, l, m *redisson.Lock, stranger bool) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	under, undo := held, func() {}
	if stranger {
		under, undo = ctx, func() { _ = l.Unlock(held) }
	}
	_ = m.Do(under, work)
	undo()
	return m.Do(ctx, work)
}

type link struct {
	lock *redisson.Lock
	next *link
}

func chain(ctx context.Context) {
	var l *link
	defer func() { l.next = nil }()
	for range 3 {
		l = l.next
		held, err := l.lock.Lock(ctx)
		if err != nil {
			return
		}
		_ = l.lock.Unlock(held)
	}
}

func circle(ctx context.Context, l *redisson.Lock) {
	var under context.Context
	defer func() { under = context.WithoutCancel(under) }()
	_, _ = l.Lock(under)
	_ = l.Unlock(ctx)
}

// typeSwitch declares a context that is set to what is made of itself.
func typeSwitch(l *redisson.Lock, x any) {
	switch c := x.(type) {
	case context.Context:
		c = context.WithValue(c, key{}, 2)
		_ = l.Unlock(c)
	}
}
