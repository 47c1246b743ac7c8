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
	"cmp"
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
// and Write are one lock to it. Create a Locker with New; it needs no closing, and memory goes only to keys that are held, and
// to those of which a permit was given within the interval of a Rate.
//
// Each key of a Permit with Levels is re-entered by itself: keys that an ancestor of the call holds, as its Key or as a
// level, are not taken again, and the others are. A call that waits stands in the line of one key that is full, by the
// time of arrival. When it is the first there and the key has room, but another one is full, it moves to the line of
// that one: behind those who arrived before it, and ahead of those who came later. A call that re-enters its Key takes
// nothing from the Rate.
type Locker struct {
	mu      sync.Mutex
	keys    map[string]*entry // those with a hold
	spare   *entry            // for the next key, as the last one is often gone by then
	rates   map[string]*rate  // of keys with permits given lately
	token   int64             // the last one given to a Fenced hold of any key
	arrived uint64            // the number of the last one that got in line
	turns   map[string]*turn  // the newest of each key
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker that holds nothing. Lockers know nothing of each other.
func New() *Locker {
	return &Locker{keys: make(map[string]*entry), rates: make(map[string]*rate), turns: make(map[string]*turn)}
}

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
	h := l.request(r)
	h.ctx.Begin(ctx)
	h.ctx.link.Join(ctx, h.public(), h)
	w, f, err := l.arrive(h, l.above(h.ctx.link.Ancestors(), h), true)
	switch {
	case w != nil:
		err = l.wait(ctx, w)
	case f != nil:
		err = f.busy(ctx, 0)
	}
	if err != nil {
		h.ctx.End(nil)
		return nil, err
	}
	return h.public(), nil
}

// Peek returns the result that an Acquire of r without waiting would have now, and nil if it would get the lock. It
// takes nothing, so the answer may be out of date when the caller reads it.
func (l *Locker) Peek(ctx context.Context, r lock.Request) error {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return err
	}
	h := l.request(r)
	_, f, err := l.arrive(h, l.above(lock.Ancestors(ctx), h), false)
	if f == nil {
		return err
	}
	return f.busy(ctx, 0)
}

// ServesLevels returns nil, as all keys can be taken together; see [lock.Locker].
func (l *Locker) ServesLevels(...string) error { return nil }

// ForceUnlock ends all holds of key, whoever has them, as their Key or as a level, with a cause that matches ErrLost, and reports
// whether there were any. Those who wait for the lock are served. It is meant for tests and for operators.
func (l *Locker) ForceUnlock(key string) bool {
	l.mu.Lock()
	e := l.keys[key]
	if e == nil {
		l.mu.Unlock()
		return false
	}
	claims := slices.Collect(e.holds.All())
	l.mu.Unlock()
	for _, c := range claims {
		c.of.lose(errForced)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		if c.of.kept { // the others are dropped by those who end them
			l.remove(c.of)
		}
	}
	return true
}

// above returns those of ancestors that are holds of l and have a key that h wants. It runs code of other Lockers, so the mutex must
// not be locked.
func (l *Locker) above(ancestors iter.Seq[lock.Hold], h *hold) []*hold {
	var holds []*hold
	for a := range ancestors {
		p, ok := a.(interface{ private() *hold })
		if !ok || p.private().l != l {
			continue
		}
		for c := range h.claims {
			if p.private().claim(c.Key) != nil {
				holds = append(holds, p.private())
				break
			}
		}
	}
	return holds
}

// arrive grants h, or puts it in line if it may wait, or returns why it is refused: err, or else f. It does none of that if it is only
// to look.
func (l *Locker) arrive(h *hold, above []*hold, take bool) (w *waiter, f *refusal, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, err := l.obstacle(h, above, nil)
	switch {
	case g == nil:
		if err == nil && take {
			l.grant(h)
		}
		return nil, nil, err
	case h.r.Wait == 0 || !take:
		return nil, g.refusal(h), nil
	}
	l.arrived++
	w = &waiter{hold: h, above: above, number: l.arrived, done: make(chan struct{})}
	l.queue(w, g)
	return w, nil, nil
}

// obstacle returns where h has to wait now, if it came by itself or is w, the first in a line. It returns nil if h can
// have all that it wants, and an error if it must not even wait. It notes the stays that h re-enters in h's claims.
func (l *Locker) obstacle(h *hold, above []*hold, w *waiter) (gate, error) {
	for c := range h.claims {
		if err := c.join(l.keys[c.Key], above); err != nil {
			return nil, err
		}
	}
	if w != nil && w.at.shut(h) {
		return w.at, nil
	}
	closed := func(g gate) bool {
		first := g.line().First()
		return first != nil && (w == nil || first.number < w.number) || g.shut(h)
	}
	for c := range h.claims {
		if e := l.keys[c.Key]; e != nil && c.stay == nil && closed(e) {
			return e, nil
		}
	}
	if r := l.rates[h.r.Key]; r != nil && h.counts() && closed(r) {
		return r, nil
	}
	return nil, nil
}

// drop forgets h and serves those who waited for it to go. The context of h has ended by then.
func (l *Locker) drop(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(h)
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
		return h.reason
	}
	h.limit(end)
	return nil
}

// grant gives h all that it wants from now on. Its clock starts here, and not in the goroutine that waits for it, so that a
// holder who is slow to wake up does not get a longer lease.
func (l *Locker) grant(h *hold) {
	counts := h.counts()
	for c := range h.claims {
		l.entry(c.Key).add(c)
	}
	if h.r.Kind == lock.Fenced {
		l.token++
		h.token = l.token
	}
	h.begin()
	if counts {
		l.give(h)
	}
}

// entry returns the entry of key, which is new if nobody has it.
func (l *Locker) entry(key string) *entry {
	e := l.keys[key]
	if e == nil {
		if e = l.spare; e == nil {
			e = new(entry)
		}
		l.spare = nil
		e.key = key
		l.keys[key] = e
	}
	return e
}

// remove takes its keys from h, at most once, and grants the requests that this makes possible.
func (l *Locker) remove(h *hold) {
	if h.timer != nil {
		h.timer.Stop()
	}
	if !h.first.place.In() {
		return
	}
	for c := range h.claims {
		c.remove()
	}
	for c := range h.claims {
		l.serve(c.entry)
	}
}

// turn is a call that newer ones replace.
type turn struct{ end context.CancelCauseFunc }

// Replace announces a call that is about to Acquire r with the context turn, and ends the turns of those before it at the
// key, as [lock.Locker] says.
func (l *Locker) Replace(ctx context.Context, r lock.Request) (newest context.Context, leave func(), err error) {
	if err := cmp.Or(r.Validate(), context.Cause(ctx)); err != nil {
		return nil, nil, err
	}
	if r.Levels = nil; len(l.above(lock.Ancestors(ctx), l.request(r))) > 0 { // what re-enters has its Key already
		return ctx, func() {}, nil
	}
	newest, end := context.WithCancelCause(ctx)
	t := &turn{end}
	if older := l.setTurn(r.Key, t); older != nil {
		older.end(lock.ErrReplaced)
	}
	return newest, func() { l.leaveTurn(r.Key, t) }, nil
}

// setTurn makes t the newest turn at key, and returns the one that was.
func (l *Locker) setTurn(key string, t *turn) (older *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	older = l.turns[key]
	l.turns[key] = t
	return older
}

// leaveTurn ends t, of which nothing is kept if it has been replaced before.
func (l *Locker) leaveTurn(key string, t *turn) {
	l.mu.Lock()
	if l.turns[key] == t {
		delete(l.turns, key)
	}
	l.mu.Unlock()
	t.end(context.Canceled)
}
