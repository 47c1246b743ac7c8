package guard

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/lock"
)

// local is what the calls of one guard in this process know of each other. Calls of other processes are not in it.
type local struct {
	mu      sync.Mutex
	waiting map[string]int     // by key: how many wait, where Spec.Waiters bounds that
	turns   map[string][]*turn // by key: those that newer calls replace, the newest last
}

func newLocal() *local {
	return &local{waiting: make(map[string]int), turns: make(map[string][]*turn)}
}

// takeOne takes one lock, or refuses at once if as many as may wait for it are waiting already.
func (c *call) takeOne(r lock.Request) (lock.Hold, error) {
	ctx := c.latest()
	if c.spec.Waiters == 0 || r.Wait == 0 {
		return c.locker.Acquire(ctx, r)
	}
	// Only a call that has to wait is a waiter, and whether it has to is known when it has tried.
	start, once := now(), r
	once.Wait = 0
	hold, err := c.locker.Acquire(ctx, once)
	if !errors.Is(err, lock.ErrBusy) || !c.local.wait(r.Key, c.spec.Waiters) {
		return hold, err
	}
	defer c.local.waited(r.Key)
	if r.Wait > 0 {
		r.Wait = max(0, r.Wait-(now()-start))
	}
	return c.locker.Acquire(ctx, r)
}

// wait lets a call wait for key, if there are fewer than n who do.
func (l *local) wait(key string, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[key] >= n {
		return false
	}
	l.waiting[key]++
	return true
}

// waited undoes wait.
func (l *local) waited(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[key]--; l.waiting[key] == 0 {
		delete(l.waiting, key)
	}
}

// turn is a call that newer ones replace, from before it waits until it has given its locks back.
type turn struct {
	ctx    context.Context // ends when a newer call comes
	cancel context.CancelCauseFunc
	keys   []string
}

// replaced reports whether a newer call has come.
func (t *turn) replaced() bool { return t != nil && errors.Is(context.Cause(t.ctx), ErrReplaced) }

// takeTurn ends the calls of this guard that hold or wait for one of keys, and reports whether there were any. They keep
// their locks until their work returns.
func (c *call) takeTurn(keys []string) bool {
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.turn = &turn{ctx, cancel, keys}
	older := c.local.enter(c.turn, heldBy(c.ctx, ""))
	for _, t := range older {
		t.cancel(c.fail(ErrReplaced, nil))
	}
	return len(older) > 0
}

// enter notes t, and returns the calls that are in its way, but for those that t is itself part of.
func (l *local) enter(t *turn, above *heldContext) (older []*turn) {
	var own []*turn
	for ; above != nil; above, _ = above.Context.Value(heldKey{}).(*heldContext) {
		own = append(own, above.turn)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range t.keys {
		for _, other := range l.turns[key] {
			if !slices.Contains(own, other) && !slices.Contains(older, other) {
				older = append(older, other)
			}
		}
		l.turns[key] = append(l.turns[key], t)
	}
	return older
}

// leave forgets t.
func (l *local) leave(t *turn) {
	t.cancel(context.Canceled)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range t.keys {
		if l.turns[key] = slices.DeleteFunc(l.turns[key], func(o *turn) bool { return o == t }); len(l.turns[key]) == 0 {
			delete(l.turns, key)
		}
	}
}
