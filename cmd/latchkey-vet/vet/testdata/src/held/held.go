// Package held locks under contexts, right and wrong.
package held

import (
	"context"
	"errors"
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
	_, _, _ = r.TryLock(ctx, 0, 0) // want `the lock around it is held under held`
	return nil
}

func derived(w http.ResponseWriter, q *http.Request, l, m *redisson.Lock) {
	ctx, cancel := context.WithTimeout(q.Context(), time.Second)
	defer cancel()
	held, ok, err := l.TryLock(ctx, 0, 0)
	if ok {
		_ = m.Do(ctx, work) // not behind a deferred Unlock: not seen
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
		_ = s.pay(ctx, id) // want `the lock around it is held under the context of the work: under ctx, what is locked here does not know that lock, and waits for it if it is the same`
		return id, s.pay(held, id)
	})
	if err != nil {
		return err
	}
	_, _ = settle(ctx, "7")
	_, _ = guard.Do(ctx, g, "7", func(context.Context) (int, error) {
		_, _ = settle(ctx, "8")                                             // want `held under the context of the work: under ctx`
		return guard.Do(ctx, h, 7, func(ctx context.Context) (int, error) { // want `held under the context of the work: under ctx`
			_, err := settle(ctx, "9")
			return 0, err
		})
	})
	_ = guard.Lead(ctx, h, func(held context.Context) error {
		_, _ = settle(held, "8")
		_, _ = settle(ctx, "8") // want `held under the context of the work: under ctx`
		return nil
	})
	return l.Do(ctx, func(held context.Context) error {
		_ = m.Do(ctx, work) // want `held under the context of the work: under ctx`
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = m.Do(bounded, work)              // want `held under the context of the work: under bounded`
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
	if err := m.Do(ctx, work); err != nil { // not behind a deferred Unlock: not seen
		return err
	}
	_ = m.Do(hold.Context(), work)
	_ = hold.Release(ctx)
	return m.Do(ctx, work)
}

func released(ctx context.Context, l lock.Locker, m *redisson.Lock) error {
	hold, err := l.Acquire(ctx, lock.Request{Key: "k"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Release(ctx)) }()
	_ = m.Do(hold.Context(), work)
	return m.Do(ctx, work) // want `the lock around it is held under hold.Context\(\): under ctx`
}

// A context that is set to what is made of it is still that of the caller, and one of something else is not.

func remade(ctx context.Context, l *redisson.Lock) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := l.Lock(ctx); err != nil {
		return err
	}
	return l.Unlock(ctx) // want `Unlock under ctx, which was given to Lock`
}

func replaced(q *http.Request, l, m *redisson.Lock) error {
	held, err := l.Lock(q.Context())
	if err != nil {
		return err
	}
	defer l.Unlock(held)
	q = q.WithContext(held)
	return m.Do(q.Context(), work)
}

// unnamed has locks that have no name to know them by.
func unnamed(ctx context.Context, k lock.Locker, locks []*redisson.Lock, m *redisson.Lock) error {
	if _, err := k.Acquire(ctx, lock.Request{Key: "k"}); err != nil {
		return err
	}
	hold, err := k.Acquire(ctx, lock.Request{Key: "k"})
	defer locks[0].Unlock(ctx)
	_ = m.Do(ctx, work)
	hold, err = k.Acquire(ctx, lock.Request{Key: "l"})
	_ = hold
	return err
}

func tokens(ctx context.Context) {
	_, _ = guard.Token(ctx)
	_, _ = guard.Token(context.Background()) // want `Token under a context that holds nothing`
}

func work(context.Context) error { return nil }
