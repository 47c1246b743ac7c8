// Package held locks under contexts, right and wrong.
package held

import (
	"context"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func right(ctx context.Context, l, m *redisson.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock(held)
	inner, err := m.Lock(held)
	if err != nil {
		return err
	}
	defer m.Unlock(inner)
	return work(inner)
}

func wrongUnlock(ctx context.Context, l *redisson.Lock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Unlock(ctx) // want `Unlock under ctx, which was given to Lock: the lock is held under held`
	return work(held)
}

func dropped(ctx context.Context, l *redisson.Lock) error {
	if _, ok, err := l.TryLock(ctx, time.Second, 0); !ok || err != nil {
		return err
	}
	defer func() { _ = l.Unlock(ctx) }() // want `the lock is held under the context that it returned`
	return nil
}

func ofNobody(ctx context.Context, l *redisson.Lock, m *redisson.FencedLock) {
	held, _ := l.Lock(ctx)
	_ = work(held)
	_ = l.Unlock(context.Background()) // want `Unlock under a context that holds nothing`
	short, cancel := context.WithTimeout(context.TODO(), time.Second)
	defer cancel()
	_ = m.Unlock(short)                       // want `Unlock under a context that holds nothing`
	_, _ = m.Token(context.Background())      // want `Token under a context that holds nothing`
	_ = l.Unlock(context.WithoutCancel(held)) // all right
}

func unlock(l *redisson.Lock, held context.Context) error { return l.Unlock(held) }

func nested(ctx context.Context, l, m *redisson.Lock, r *redisson.RedLock) error {
	held, err := l.Lock(ctx)
	if err != nil {
		_, _ = m.Lock(ctx) // not held
		return err
	}
	defer l.Unlock(held)
	inner, err := m.Lock(ctx) // want `the lock around it is held under held: under ctx, what is locked here does not know that lock, and waits for it if it is the same`
	if err != nil {
		return err
	}
	_ = m.Unlock(inner)
	_, _, _ = r.TryLock(ctx, 0, 0) // behind an Unlock, which could be that of l for all that is known
	return nil
}

func derived(w http.ResponseWriter, q *http.Request, l, m *redisson.Lock) {
	ctx, cancel := context.WithTimeout(q.Context(), time.Second)
	defer cancel()
	held, ok, err := l.TryLock(ctx, 0, 0)
	if ok {
		_ = m.Do(ctx, work) // want `held under held`
		_ = m.Do(held, work)
		_ = l.Unlock(held)
	}
	if err == nil {
		_ = m.Do(ctx, work)
	}
}

func again(ctx context.Context, l, m *redisson.Lock) {
	held, err := l.Lock(ctx)
	if err != nil {
		return
	}
	ctx = held
	_ = m.Do(ctx, work)
	defer unlock(l, held)
	go func() { _ = m.Do(ctx, work) }() // another call
}

func same(ctx context.Context, l, m *redisson.Lock) (err error) {
	if ctx, err = l.Lock(ctx); err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return m.Do(ctx, work)
}

type service struct {
	pay func(context.Context, string) error
}

func inWork(ctx context.Context, l, m *redisson.Lock, g, h *guard.Guard, s *service) error {
	s.pay = guard.Must(guard.Action(g, func(context.Context, string) error { return nil }))
	settle, err := guard.Func(g, func(held context.Context, id string) (string, error) {
		_ = s.pay(ctx, id) // want `ctx does not come from the context of the work: what is locked here does not know the lock around it, and waits for it if it is the same`
		return id, s.pay(held, id)
	})
	if err != nil {
		return err
	}
	_, _ = settle(ctx, "7")
	_, _ = guard.Do(ctx, g, "7", func(context.Context) (int, error) {
		_, _ = settle(ctx, "8")                                             // want `ctx does not come from the context of the work`
		return guard.Do(ctx, h, 7, func(ctx context.Context) (int, error) { // want `ctx does not come from the context of the work`
			_, err := settle(ctx, "9")
			return 0, err
		})
	})
	return l.Do(ctx, func(held context.Context) error {
		_ = m.Do(ctx, work) // want `ctx does not come from the context of the work`
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = m.Do(bounded, work)              // want `bounded does not come from the context of the work`
		_ = m.Do(context.Background(), work) // nobody's, as somebody has written out
		go func() { _ = m.Do(ctx, work) }()
		return m.Do(held, work)
	})
}

func acquired(ctx context.Context, l lock.Locker, m *redisson.Lock) error {
	hold, err := l.Acquire(ctx, lock.Request{Key: "k"})
	if err != nil {
		return err
	}
	defer hold.Release(ctx)
	if err := m.Do(ctx, work); err != nil { // want `the lock around it is held under hold.Context\(\): under ctx`
		return err
	}
	_ = m.Do(hold.Context(), work)
	_ = hold.Release(ctx)
	return m.Do(ctx, work)
}

func tokens(ctx context.Context) {
	_, _ = guard.Token(ctx)
	_, _ = guard.Token(context.Background()) // want `Token of a context that holds nothing`
}

func work(context.Context) error { return nil }
