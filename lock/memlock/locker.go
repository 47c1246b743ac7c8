// Package memlock locks within one process: every [lock.Kind], without a server. It is the Locker for a program
// that runs as a single process, for tests, and the reference that other Lockers are compared with.
//
//	locker := memlock.New()
//	hold, err := locker.Acquire(ctx, lock.Request{Key: "order:42", Wait: 2 * time.Second})
//	if err != nil {
//		return err // lock.ErrBusy, or the cause of ctx
//	}
//	defer hold.Release(context.WithoutCancel(ctx))
//
// A lock without a lease has nothing to renew and stays until it is released: there is no service to lose it to.
package memlock

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

var (
	errLease  = errors.New("memlock: the lease ended")
	errForced = errors.New("memlock: unlocked by force")
)

// Locker is a [lock.Locker] for all kinds of lock, each key served in the order of arrival. Exclusive, Fair, Fenced, Spin
// and Write are one lock to it. Create a Locker with New; it needs no closing, and memory goes only to keys that are held.
type Locker struct {
	mu    sync.Mutex
	keys  map[string]*entry // those with a hold
	spare *entry            // for the next key, as the last one is often gone by then
	token int64             // the last one given to a Fenced hold of any key
	turns map[string]*turn  // the newest of each key; nil until there is one
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker that holds nothing. Lockers know nothing of each other.
func New() *Locker { return &Locker{keys: make(map[string]*entry)} }

// Acquire takes the lock that r names, as [lock.Locker] says. Each hold has the methods Keep and Extend that [lock.Hold]
// describes, and the hold of a Fenced lock has Token, with a greater number than any that the Locker gave out before.
//
// With both Lease and MaxHold the lock ends with the shorter one.
func (l *Locker) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h := newHold(ctx, l, r)
	if err := l.take(ctx, h); err != nil {
		return nil, err
	}
	return h.public(), nil
}

// ForceUnlock ends all holds of key, whoever has them, with a cause that matches ErrLost, and reports whether there were
// any. Those who wait for the lock are served. It is meant for tests and for operators.
func (l *Locker) ForceUnlock(key string) bool {
	l.mu.Lock()
	e := l.keys[key]
	if e == nil {
		l.mu.Unlock()
		return false
	}
	holds := slices.Collect(e.holds.All())
	l.mu.Unlock()
	for _, h := range holds {
		h.lose(errForced)
		l.dropKept(h)
	}
	return true
}

// take makes h hold its lock, or returns why not and leaves nothing behind.
func (l *Locker) take(ctx context.Context, h *hold) error {
	above := l.above(h.ctx.link.Ancestors(), h.r.Key)
	granted, f, err := l.arrive(h, above)
	switch {
	case granted:
		return nil
	case err == nil && h.r.Wait == 0:
		err = f.busy(ctx, 0)
	case err == nil:
		return l.wait(ctx, h)
	}
	h.ctx.End(nil)
	return err
}

// above returns those of ancestors that are holds of key and l. It runs code of other Lockers, so the mutex must not be
// locked.
func (l *Locker) above(ancestors iter.Seq[lock.Hold], key string) []*hold {
	var holds []*hold
	for a := range ancestors {
		p, ok := a.(interface{ private() *hold })
		if !ok {
			continue
		}
		if h := p.private(); h.l == l && h.r.Key == key {
			holds = append(holds, h)
		}
	}
	return holds
}

// arrive grants h, or puts it in the queue if it may wait, or returns why it is refused: err, or else f.
func (l *Locker) arrive(h *hold, above []*hold) (granted bool, f refusal, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.keys[h.r.Key]
	if e == nil {
		if e = l.spare; e == nil {
			e = new(entry)
		}
		l.spare = nil
		l.keys[h.r.Key] = e
	}
	granted, err = e.admit(h, above)
	switch {
	case granted:
		l.grant(e, h)
	case err != nil:
	case h.r.Wait == 0:
		f = e.refusal()
	default:
		h.granted, h.entry = make(chan struct{}), e
		e.queue.Join(&h.place, h)
	}
	return granted, f, err
}

// wait returns nil once h, which is in the queue, has been granted.
func (l *Locker) wait(ctx context.Context, h *hold) error {
	start := time.Now()
	var timeout <-chan time.Time
	if h.r.Wait > 0 {
		timer := time.NewTimer(h.r.Wait)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-h.granted:
	case <-ctx.Done():
	case <-timeout:
		if f, left := l.leave(h); left {
			h.ctx.End(nil)
			return f.busy(ctx, time.Since(start))
		}
		// Granted at the last moment: a caller who was ready to wait for the lock has no reason to refuse it.
	}
	if ctx.Err() != nil {
		// Whether still in the queue or just granted, this passes the turn on to the next.
		h.end(givenBack, nil)
		return context.Cause(ctx)
	}
	return nil
}

// leave takes h out of the queue, or reports false if h is not there anymore because it has been granted.
func (l *Locker) leave(h *hold) (f refusal, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.stay != nil || !h.place.In() {
		return f, false
	}
	f = h.entry.refusal()
	l.remove(h)
	return f, true
}

// drop forgets h and serves those who waited for it to go. The context of h has ended by then.
func (l *Locker) drop(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(h)
}

// dropKept is drop for a hold that was released with Keep, and nothing for others, which drop themselves.
func (l *Locker) dropKept(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.kept {
		l.remove(h)
	}
}

// keep lets h, whose context has ended, stand in the way of strangers for another d.
func (l *Locker) keep(h *hold, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.kept = true
	h.endAt(later(clock.Now(), d), func() { l.drop(h) })
}

// until returns when h ends by itself, by the clock, and 0 if it does not.
func (l *Locker) until(h *hold) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return h.until
}

// extend lets h go on for d from now. If it is too late for that, it returns the reason for which h must end.
func (l *Locker) extend(h *hold, d time.Duration) (over error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := later(clock.Now(), d)
	if !h.Held() || h.until == 0 || end <= h.until {
		return nil
	}
	if !h.timer.Stop() { // it went off, but has not ended h yet
		return h.reason()
	}
	h.limit(end)
	return nil
}

// grant makes h a hold of e from now on. Its clock starts here, and not in the goroutine that waits for it, so that a
// holder who is slow to wake up does not get a longer lease.
func (l *Locker) grant(e *entry, h *hold) {
	e.add(h)
	if h.r.Kind == lock.Fenced {
		l.token++
		h.token = l.token
	}
	h.begin()
}

// remove takes h from wherever it is, at most once, and grants what has become possible.
func (l *Locker) remove(h *hold) {
	if h.timer != nil {
		h.timer.Stop()
	}
	e := h.entry
	if !e.remove(h) {
		return
	}
	for w := e.queue.First(); w != nil && e.admitStranger(w); w = e.queue.First() {
		w.place.Leave()
		l.grant(e, w)
		close(w.granted)
	}
	if e.stays == 0 { // then nobody waits either: a lock that is free admits everyone
		delete(l.keys, h.r.Key)
		l.spare = e
	}
}
