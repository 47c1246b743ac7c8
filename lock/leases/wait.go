package leases

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/internal/queue"
	"github.com/latchkey-go/latchkey/lock"
)

// place is the state of one key in this process. The Locker's mutex guards it.
type place struct {
	stays []*stay
	line  queue.Queue[*waiter]
	// The state of the service, which is the same for all who wait.
	known  time.Time // when it was last known that the lock was held: the service said so, or a stay of this process ended
	silent time.Time // since when questions have had no answer, if there is an outage or one is open
	outage error     // the last one since the service has answered
	asking bool      // whether a question is open
}

// waiter is a call that waits.
type waiter struct {
	wake chan struct{}        // has room for one
	at   queue.Place[*waiter] // in line
}

// extra is the time for a service that has never answered, beyond the time that a caller wants to wait.
const extra = 500 * time.Millisecond

func (l *Locker) placeLocked(key string) *place {
	p := l.places[key]
	if p == nil {
		p = new(place)
		l.places[key] = p
	}
	return p
}

// sweepLocked forgets a place where nobody is.
func (l *Locker) sweepLocked(key string) {
	if p := l.places[key]; p != nil && len(p.stays) == 0 && p.line.First() == nil {
		delete(l.places, key)
	}
}

// wakeLocked lets the first in line look again.
func (p *place) wakeLocked() {
	if w := p.line.First(); w != nil {
		w.signal()
	}
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// claim is one Acquire of a stranger.
type claim struct {
	l     *Locker
	r     lock.Request
	entry *Entry
	lease time.Duration
	start time.Time
	end   time.Time // of the wait; zero if it has none

	waiter
	unwatch context.CancelFunc // nil until it watches
}

// enter takes the lock for a stranger.
func (l *Locker) enter(ctx context.Context, r lock.Request) (*hold, error) {
	c := &claim{l: l, r: r, lease: l.leaseOf(r), start: time.Now()}
	c.entry = l.entry(r)
	c.wake = make(chan struct{}, 1)
	if r.Wait > 0 {
		c.end = c.start.Add(r.Wait)
	}
	q, queues := l.store.(Queue)
	var h *hold
	var err error
	switch {
	case r.Wait == 0:
		h, err = c.once(ctx)
	case queues:
		h, err = c.queue(ctx, q)
	default:
		h, err = c.line(ctx)
	}
	if err == nil {
		return h, nil
	}
	if e, ok := errors.AsType[leftEarly](err); ok {
		return nil, context.Cause(e.ctx)
	}
	return nil, l.busy(ctx, r.Key, time.Since(c.start), err)
}

// once tries, as soon as those of this process that leave have left.
func (c *claim) once(ctx context.Context) (*hold, error) {
	limited, cancel := context.WithDeadlineCause(ctx, c.start.Add(c.l.timeout+grace), errSilent)
	defer cancel()
	for {
		leaving, err := c.obstacle()
		switch {
		case err != nil:
			return nil, err
		case leaving == nil:
			return c.try(ctx, limited)
		}
		select {
		case <-leaving:
		case <-limited.Done():
			return nil, leftEarly{limited}
		}
	}
}

// obstacle returns why the claim need not ask the service: others in this process hold the lock. If all that is in the way is about to go,
// leaving is closed when the first of it has gone.
func (c *claim) obstacle() (leaving <-chan struct{}, err error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	p := c.l.places[c.r.Key]
	if p == nil {
		return nil, nil
	}
	now := time.Now()
	permits := 0
	for _, s := range p.stays {
		if len(s.holds) == 0 {
			if !c.beside(s.entry.Kind, len(p.stays)) { // if it is not in the way, others may always be leaving
				leaving = s.gone
			}
			continue
		}
		switch kind := s.holds[0].r.Kind; {
		case kind.Family() != c.r.Kind.Family():
			return nil, &lock.KindError{Held: kind, Wanted: c.r.Kind}
		case c.r.Kind == lock.Permit:
			if permits++; permits >= c.r.Limit {
				return nil, lock.ErrBusy
			}
		case c.r.Kind != lock.Read || s.writesLocked():
			return nil, &lock.BusyError{Remaining: s.remainingLocked(now)}
		}
	}
	return leaving, nil
}

// beside reports whether the claim has room beside all of the n stays that are here, if they are of kind k.
func (c *claim) beside(k lock.Kind, n int) bool {
	return k == c.r.Kind && (k == lock.Read || k == lock.Permit && n < c.r.Limit)
}

func (s *stay) writesLocked() bool {
	return slices.ContainsFunc(s.holds, func(h *hold) bool { return h.r.Kind == lock.Write })
}

// remainingLocked returns in how long all holds of s will have ended by themselves, or 0 if one of them never does.
func (s *stay) remainingLocked(now time.Time) (rest time.Duration) {
	for _, h := range s.holds {
		if h.end.IsZero() {
			return 0
		}
		rest = max(rest, h.end.Sub(now))
	}
	return rest
}

// try asks the service once, and waits for the answer as long as limited, which derives from ctx. If nobody knows then whether the
// entry was made, it is freed in the background, and the claim goes on with another one.
func (c *claim) try(ctx, limited context.Context) (*hold, error) {
	e, l := c.entry, c.l
	asked := time.Now()
	a := ask(limited, e, l.timeout, func(ctx context.Context) (Grant, error) {
		return l.store.Take(ctx, e, c.lease)
	}, func(err error) {
		if !certain(err) {
			l.remove(e, c.lease, err != nil)
		}
	})
	switch {
	case a.err == nil:
		return c.granted(ctx, a.value, asked)
	case !certain(a.err) && !a.open:
		l.remove(e, c.lease, true)
	}
	c.entry = l.entry(c.r)
	return nil, a.err
}

var errSlow = errors.New("leases: the lease was over before the lock service had answered")

// granted makes a hold of g, unless it has come too late.
func (c *claim) granted(ctx context.Context, g Grant, asked time.Time) (*hold, error) {
	err := errSlow
	if ctx.Err() != nil {
		err = leftEarly{ctx}
	} else if h := c.l.admit(ctx, c.entry, c.r, g, asked, c.lease); h != nil {
		return h, nil
	}
	c.l.remove(c.entry, c.lease, false)
	c.entry = c.l.entry(c.r)
	return nil, err
}
