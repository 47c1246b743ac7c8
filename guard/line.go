package guard

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

// local is the state that the calls of one guard share in this process. Calls of other processes are not in it.
type local struct {
	mu      sync.Mutex
	waiting map[string]int // by key: how many wait, where Spec.Waiters bounds that
}

func newLocal() *local { return &local{waiting: make(map[string]int)} }

// takeOne takes one lock, or refuses at once if as many as may wait for it are waiting already.
func (c *call) takeOne(ctx context.Context, r *lock.Request) (lock.Hold, error) {
	if c.spec.Waiters == 0 || r.Wait == 0 {
		return c.locker.Acquire(ctx, *r)
	}
	// Only a call that has to wait is a waiter, and whether it has to is known when it has tried.
	start, once := clock.Now(), *r
	once.Wait = 0
	hold, err := c.locker.Acquire(ctx, once)
	if !errors.Is(err, lock.ErrBusy) || !c.local.wait(r.Key, c.spec.Waiters) {
		return hold, err
	}
	defer c.local.waited(r.Key)
	if r.Wait > 0 {
		r.Wait = max(0, r.Wait-(clock.Now()-start))
	}
	return c.locker.Acquire(ctx, *r)
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

// replacer is a locker that can notify a call of a newer one.
type replacer interface {
	Replace(ctx context.Context, r lock.Request) (turn context.Context, leave func(), err error)
}

// serves refuses a locker that can't serve the declaration of g.
func (g *Guard) serves() {
	if s, ok := g.locker.(interface{ Serves(lock.Kind) error }); ok && !isNil(g.locker) {
		err := s.Serves(g.spec.Kind)
		g.faults.check(err != nil, "%w", err)
	}
	s, ok := g.locker.(interface{ ServesLevels(keys ...string) error })
	g.faults.check(!ok && g.spec.bounded() && !isNil(g.locker), "levels and a rate: a %T has none, as it has no method ServesLevels: see lock.Locker", g.locker)
	if ok && g.spec.bounded() && !isNil(g.locker) {
		err := s.ServesLevels(slices.DeleteFunc(g.spec.keys(), func(key string) bool { return key == "" || g.source != nil && key == g.spec.Key })...)
		g.faults.check(err != nil, "%w", err)
	}
	_, ok = g.locker.(replacer)
	g.faults.check(g.spec.Busy == Replace && !ok && !isNil(g.locker),
		"busy=replace: a %T can't tell a call of a newer one, as it has no method Replace: see lock.Locker", g.locker)
}

// turn belongs to a call that newer ones can replace, from before it waits until it has given its locks back.
type turn struct {
	ctx   context.Context // ends when a newer call comes for one of the keys
	leave []func()
}

// replaced reports whether a newer call has come.
func (t *turn) replaced() bool { return t != nil && errors.Is(context.Cause(t.ctx), ErrReplaced) }

// takeTurn replaces the calls that hold or wait for one of keys, also in other processes. They keep their locks until
// their work returns.
func (c *call) takeTurn(r lock.Request, keys []string) error {
	c.turn = &turn{ctx: c.ctx}
	for _, key := range keys {
		r.Key = key
		ctx, leave, err := c.locker.(replacer).Replace(c.turn.ctx, r)
		if err != nil {
			return err
		}
		c.turn.ctx, c.turn.leave = ctx, append(c.turn.leave, leave) //nolint:fatcontext // one a key
	}
	return nil
}

// leaveTurn ends the turn.
func (c *call) leaveTurn() {
	for _, leave := range c.turn.leave {
		leave()
	}
}
