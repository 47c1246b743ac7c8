package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// result says how an operation on one of the sides ended and when, by the clock that all processes here share.
type result struct {
	ok         bool // of a try: whether it has the lock
	err        error
	start, end time.Time
}

func (r result) took() time.Duration { return r.end.Sub(r.start) }

// forever is a wait without an end.
const forever time.Duration = -1

// mutex is a lock as one side sees it. Owners are threads, which have names; a thread does one thing at a time.
type mutex interface {
	fmt.Stringer // which side
	// take takes the lock. A wait of 0 tries once; a lease of 0 has it renewed.
	take(thread string, wait, lease time.Duration) result
	unlock(thread string) result
	// force frees the lock, whoever has it; ok says whether anybody had.
	force() result
	locked() bool
	count(thread string) int
	ttl() time.Duration
}

// goLock is what the locks of package redisson have in common.
type goLock interface {
	Lock(ctx context.Context) (context.Context, error)
	TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, bool, error)
	Unlock(held context.Context) error
}

// goQueries are what those that are one lock in Redis have besides.
type goQueries interface {
	ForceUnlock(ctx context.Context) (bool, error)
	IsLocked(ctx context.Context) (bool, error)
	HoldCount(ctx context.Context) int
	TTL(ctx context.Context) (time.Duration, error)
}

// goMutex is a lock of the Go side.
type goMutex struct {
	tb      testing.TB
	l       goLock
	threads *threads // shared by the two sides of a read/write lock
}

// threads are the threads of the Go side: names for chains of holds, the innermost last.
type threads struct {
	mu   sync.Mutex
	held map[string][]goHold
}

type goHold struct {
	of  goLock
	ctx context.Context
}

func newGo(tb testing.TB, l goLock) *goMutex {
	return &goMutex{tb: tb, l: l, threads: &threads{held: map[string][]goHold{}}}
}

func (*goMutex) String() string { return "Go" }

// current is the context of the innermost hold.
func (t *threads) current(thread string) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.held[thread]); n > 0 {
		return t.held[thread][n-1].ctx
	}
	return context.Background()
}

// context is what the thread works under. It does not end with a hold, which may end before those inside.
func (t *threads) context(thread string) context.Context {
	return context.WithoutCancel(t.current(thread))
}

func (t *threads) push(thread string, h goHold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[thread] = append(t.held[thread], h)
}

// pop takes the innermost hold of a lock from the thread. Without one it returns a context under no hold.
func (t *threads) pop(thread string, l goLock) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held[thread]
	for i, h := range slices.Backward(held) {
		if h.of == l {
			t.held[thread] = slices.Delete(held, i, i+1)
			return h.ctx
		}
	}
	return context.Background()
}

func (m *goMutex) take(thread string, wait, lease time.Duration) result {
	return m.takeUnder(m.threads.context(thread), thread, wait, lease)
}

// takeUnder takes the lock under a context of the thread's.
func (m *goMutex) takeUnder(ctx context.Context, thread string, wait, lease time.Duration) result {
	r := result{start: time.Now()}
	var held context.Context
	switch {
	case wait == forever && lease == 0:
		held, r.err = m.l.Lock(ctx)
		r.ok = r.err == nil
	case wait == forever:
		held, r.err = m.l.(interface {
			LockFor(ctx context.Context, lease time.Duration) (context.Context, error)
		}).LockFor(ctx, lease)
		r.ok = r.err == nil
	default:
		held, r.ok, r.err = m.l.TryLock(ctx, wait, lease)
		if wait == 0 && outage(r.err) { // Redis has half a second to answer such a try, which a busy machine may need
			held, r.ok, r.err = m.l.TryLock(ctx, 5*time.Second, lease)
		}
	}
	r.end = time.Now()
	if r.ok {
		m.threads.push(thread, goHold{m.l, held})
	}
	return r
}

// outage reports whether err says nothing of the lock.
func outage(err error) bool {
	return err != nil && !errors.Is(err, lock.ErrUnsupported) && !errors.Is(err, lock.ErrLost) && !errors.Is(err, context.Canceled)
}

// unlock gives back the innermost hold.
func (m *goMutex) unlock(thread string) result {
	return m.unlockUnder(m.threads.pop(thread, m.l))
}

// unlockUnder gives back the hold that returned this context.
func (m *goMutex) unlockUnder(held context.Context) result {
	r := result{start: time.Now()}
	r.err = m.l.Unlock(held)
	r.end = time.Now()
	return r
}

// keep gives back the innermost hold, but keeps the lock for d.
func (m *goMutex) keep(thread string, d time.Duration) result {
	held := m.threads.pop(thread, m.l)
	r := result{start: time.Now()}
	r.err = m.l.(interface {
		Keep(held context.Context, d time.Duration) error
	}).Keep(held, d)
	r.end = time.Now()
	return r
}

func (m *goMutex) force() result {
	r := result{start: time.Now()}
	r.ok, r.err = m.l.(goQueries).ForceUnlock(context.Background())
	r.end = time.Now()
	return r
}

func (m *goMutex) locked() bool {
	return must[bool](m.tb)(m.l.(goQueries).IsLocked(context.Background()))
}

func (m *goMutex) count(thread string) int {
	return m.l.(goQueries).HoldCount(m.threads.context(thread))
}

func (m *goMutex) ttl() time.Duration {
	return must[time.Duration](m.tb)(m.l.(goQueries).TTL(context.Background()))
}

// javaMutex is a lock of the Java side.
type javaMutex struct {
	tb   testing.TB
	c    *javaClient
	path []step // from the client to the lock
}

// newJavaMutex is the lock that a chain of calls leads to.
func newJavaMutex(tb testing.TB, c *javaClient, path ...step) *javaMutex {
	return &javaMutex{tb, c, path}
}

func (*javaMutex) String() string { return "Java" }

func (m *javaMutex) call(thread, method string, args ...any) answer {
	return m.c.call(thread, append(slices.Clip(m.path), append(step{method}, args...))...)
}

// get asks for a value in any thread.
func (m *javaMutex) get(thread, method string, args ...any) any {
	m.tb.Helper()
	a := m.call(thread, method, args...)
	if a.err() != nil {
		m.tb.Fatalf("%s %s: %v", method, args, a.err())
	}
	return a.Value
}

func (m *javaMutex) take(thread string, wait, lease time.Duration) result {
	var a answer
	switch leaseMillis := lease.Milliseconds(); {
	case wait == forever && lease == 0:
		a = m.call(thread, "lock")
	case wait == forever:
		a = m.call(thread, "lock", leaseMillis, "MILLISECONDS")
	case wait == 0 && lease == 0:
		a = m.call(thread, "tryLock")
	case lease == 0:
		a = m.call(thread, "tryLock", wait.Milliseconds(), "MILLISECONDS")
	default:
		a = m.call(thread, "tryLock", wait.Milliseconds(), leaseMillis, "MILLISECONDS")
	}
	r := a.result()
	r.ok = a.Class == "" && (wait == forever || a.Value == true)
	return r
}

func (m *javaMutex) unlock(thread string) result { return m.call(thread, "unlock").result() }

func (m *javaMutex) force() result {
	a := m.call("", "forceUnlock")
	r := a.result()
	r.ok = a.Value == true
	return r
}

func (m *javaMutex) locked() bool { return m.get("", "isLocked").(bool) }

func (m *javaMutex) count(thread string) int { return int(m.get(thread, "getHoldCount").(float64)) }

func (m *javaMutex) ttl() time.Duration {
	return time.Duration(m.get("", "remainTimeToLive").(float64)) * time.Millisecond
}

// notOwner reports whether err is how a side says that the lock is not the caller's, or no longer.
func notOwner(err error) bool {
	if thrown, ok := errors.AsType[*javaError](err); ok {
		return thrown.class == "java.lang.IllegalMonitorStateException"
	}
	return errors.Is(err, lock.ErrNotHeld) || errors.Is(err, lock.ErrLost)
}

// must ends the test if an operation that always works does not.
func must[T any](tb testing.TB) func(value T, err error) T {
	return func(value T, err error) T {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		return value
	}
}

// pending is an operation under way.
type pending struct {
	tb     testing.TB
	what   string
	result chan result
}

// begin starts an operation beside the test.
func begin(tb testing.TB, what string, op func() result) *pending {
	p := &pending{tb, what, make(chan result, 1)}
	go func() { p.result <- op() }()
	return p
}

// waits expects that the operation is still under way after d.
func (p *pending) waits(d time.Duration) {
	p.tb.Helper()
	select {
	case r := <-p.result:
		p.tb.Fatalf("%s: ended with %v, %v, want it to wait", p.what, r.ok, r.err)
	case <-time.After(d):
	}
}

// ends waits for the end of the operation, for so long that only a hang is in the way.
func (p *pending) ends() result {
	p.tb.Helper()
	select {
	case r := <-p.result:
		return r
	case <-time.After(time.Minute):
		p.tb.Fatalf("%s: hangs", p.what)
		return result{}
	}
}

// gets expects the operation to get the lock.
func (p *pending) gets() result {
	p.tb.Helper()
	r := p.ends()
	if !r.ok || r.err != nil {
		p.tb.Fatalf("%s: %v, %v, want the lock", p.what, r.ok, r.err)
	}
	return r
}
