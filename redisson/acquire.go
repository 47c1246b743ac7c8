package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// undoPatience is how long a failed Acquire stays to see its traces removed, if that can be had so soon.
const undoPatience = 250 * time.Millisecond

// Acquire is lock.Locker's, and serves all kinds. The holds of a Fenced lock have a method Token() int64. Permits are those
// of Redisson's expirable semaphore; where there is none of that name, it is made for as long as somebody holds a permit,
// with Limit permits, and where there is one it has its own number. A reader that wants to write is refused with
// lock.ErrBusy at once, whatever its wait: it would wait for itself.
//
// An error that is neither lock.ErrBusy nor the cause of ctx means that Redis could not be asked, did not answer within
// the client's timeout, or refused. The lock is then not held; what the question may have left behind is removed in the
// background as soon as Redis answers, and ends by itself with its lease otherwise.
func (c *Client) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	h, err := c.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.Kind == lock.Fenced {
		return fencedHold{h}, nil
	}
	return h, nil
}

func (c *Client) acquire(ctx context.Context, r lock.Request) (*hold, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	f := c.familyOf(r.Kind)
	if f == nil {
		return nil, fmt.Errorf("redisson: %w: %v", lock.ErrUnsupported, r.Kind)
	}
	if err := c.topology.check(c.mapName(r.Key)); err != nil {
		return nil, err
	}
	if err := firstCause(ctx, c.ctx); err != nil {
		return nil, err
	}
	owner, ok := lock.OwnerFrom(ctx)
	if !ok {
		ctx = lock.NewOwner(ctx)
		owner, _ = lock.OwnerFrom(ctx)
	}
	s := c.sit(seatKey{c.mapName(r.Key), f, owner})
	defer c.rise(s)
	w := &wait{c: c, ctx: ctx, request: r, start: time.Now()}
	defer w.stop()
	if err := w.turn(s); err != nil {
		return nil, err
	}
	defer s.pass()
	if h, err := w.reenter(s); h != nil || err != nil {
		return h, err
	}
	return w.contend(s)
}

// wait is one Acquire on its way.
type wait struct {
	c       *Client
	ctx     context.Context
	request lock.Request
	start   time.Time
	timer   *time.Timer // runs out with request.Wait; made when there is something to wait for
}

func (w *wait) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// over returns what is received from when the wait is used up; nil waits for ever.
func (w *wait) over() <-chan time.Time {
	if w.request.Wait < 0 {
		return nil
	}
	if w.timer == nil {
		w.timer = time.NewTimer(w.request.Wait - time.Since(w.start))
	}
	return w.timer.C
}

func (w *wait) busy(remaining time.Duration) error {
	return &lock.BusyError{Remaining: max(remaining, 0), Waited: time.Since(w.start)}
}

// turn takes the owner's turn at the seat. Another call of the same owner may have it for as long as it waits for the
// lock.
func (w *wait) turn(s *seat) error {
	select {
	case <-s.turn:
		return nil
	default:
	}
	over := w.over()
	if w.c.holding(s) { // then the turn is only taken while a script is under way
		over = time.After(w.c.timeout)
	}
	select {
	case <-s.turn:
		return nil
	case <-over:
		return w.busy(0)
	case <-w.ctx.Done():
	case <-w.c.ctx.Done():
	}
	return firstCause(w.ctx, w.c.ctx)
}

func (c *Client) holding(s *seat) bool {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	return s.held()
}

// reenter adds a hold to the claim that the owner has, and returns nil, nil if there is none (any more), so that the lock
// has to be taken anew. The seat's turn is taken.
func (w *wait) reenter(s *seat) (*hold, error) {
	dog := w.c.watchdog
	dog.mu.Lock()
	if !s.held() {
		dog.mu.Unlock()
		return nil, nil
	}
	cl := s.claim
	if cl.upgrades(w.request.Kind) {
		dog.mu.Unlock()
		return nil, w.busy(0)
	}
	h := w.newHold(cl)
	lease := leaseFor(append(slices.Clip(cl.holds), h), dog.timeout)
	setting, enter := cl.set(lease), cl.family.enter(cl, h, lease)
	dog.watch(cl)
	dog.mu.Unlock()

	a := w.c.ask(w.ctx, enter, func(answer) {})
	dog.mu.Lock()
	losses, err := setting.answered(dog, a), a.err
	switch {
	case err == nil && len(cl.holds) > 0:
		err = w.admit(h, a)
	case len(cl.holds) == 0: // lost meanwhile, while the script may have run: whoever held must not come back to life
		w.c.undo(cl)
		h = nil
	}
	dog.watch(cl)
	dog.mu.Unlock()
	tell(losses)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, context.Cause(w.ctx)
	}
	return h, nil
}

// contend takes the lock for an owner who does not hold it. The seat's turn is taken.
func (w *wait) contend(s *seat) (*hold, error) {
	cl := w.newClaim(s)
	h, err := w.line(&cl)
	if err != nil {
		w.clear(cl, err)
	}
	return h, err
}

func (w *wait) newClaim(s *seat) *claim {
	patience := w.c.fairWait
	if w.request.Wait > 0 {
		patience = w.request.Wait
	}
	return &claim{name: s.key.name, family: s.key.family, kind: w.request.Kind, holder: w.c.nextHolder(s.key.family), seat: s,
		patience: patience, index: -1}
}

// line waits for the lock in the way of its family. It may replace the claim.
func (w *wait) line(cl **claim) (*hold, error) {
	switch {
	case w.request.Wait == 0:
		h, ttl, err := w.try(*cl)
		if h == nil && err == nil {
			err = w.busy(ttl)
		}
		return h, err
	case w.request.Kind == lock.Fair:
		return w.queueInRedis(*cl)
	default:
		return w.queue(cl)
	}
}

// try asks Redis once. It returns a hold with the lease that it has in Redis, or how long the lock is held by somebody else
// at least, or an error.
func (w *wait) try(cl *claim) (*hold, time.Duration, error) {
	h, dog := w.newHold(cl), w.c.watchdog
	lease := leaseFor([]*hold{h}, dog.timeout)
	cl.longest = max(cl.longest, lease)
	a := w.c.ask(w.ctx, cl.family.enter(cl, h, lease), func(a answer) {
		if a.inDoubt || cl.queued || a.err == nil && a.values[0] == 1 {
			dog.mu.Lock()
			defer dog.mu.Unlock()
			cl.doubt = cl.doubt || a.inDoubt
			w.c.undo(cl)
		}
	})
	dog.mu.Lock()
	defer dog.mu.Unlock()
	cl.doubt = cl.doubt || a.inDoubt
	switch {
	case a.err != nil:
		return nil, 0, a.err
	case a.values[0] == 0:
		return nil, time.Duration(a.values[1]) * time.Millisecond, nil
	}
	cl.until = a.sent.Add(goodFor(lease))
	cl.renewAt = dog.renewalDue(a.sent, lease)
	if err := w.admit(h, a); err != nil {
		w.c.undo(cl)
		return nil, 0, err
	}
	return h, lease, nil
}

// newHold prepares a hold of cl.
func (w *wait) newHold(cl *claim) *hold {
	h := &hold{c: w.c, claim: cl, kind: w.request.Kind, limit: w.request.Limit, lease: w.request.Lease}
	if most := w.request.MaxHold; most > 0 && (h.lease == 0 || most < h.lease) {
		h.most = most
	}
	return h
}

// admit puts h under the watchdog's care, unless its time is over by now, its caller has gone, or the client is closed.
// The watchdog's mutex is held, and its claim is up to date.
func (w *wait) admit(h *hold, a answer) error {
	cl, dog := h.claim, w.c.watchdog
	if err := cmp.Or(firstCause(w.ctx), dog.closed); err != nil {
		return err
	}
	if !time.Now().Before(cl.until) {
		return errors.New("redisson: Redis took longer to answer than the lease")
	}
	h.since, h.token = a.sent, a.values[1]
	switch {
	case h.most > 0:
		h.ends = a.sent.Add(goodFor(h.most))
	case h.lease > 0:
		h.ends = a.sent.Add(goodFor(h.lease))
	}
	h.ctx, h.cancel = context.WithCancelCause(context.WithValue(w.ctx, holdKey{w.c, cl.name, h.kind}, h))
	cl.holds = append(cl.holds, h)
	cl.seat.claim = cl
	cl.seat.users++
	dog.watch(cl)
	return nil
}

// clear has what a failed Acquire may have left in Redis, or in the queue of a fair lock, removed, and waits a little for that if the caller can.
func (w *wait) clear(cl *claim, err error) {
	dog := w.c.watchdog
	dog.mu.Lock()
	traces := cl.doubt || cl.queued
	if traces {
		w.c.undo(cl)
	}
	dog.mu.Unlock()
	if !traces || errors.Is(err, lock.ErrBusy) && !cl.queued {
		return
	}
	t := time.NewTimer(undoPatience)
	defer t.Stop()
	select {
	case <-cl.undone:
	case <-t.C:
	case <-w.ctx.Done():
	}
}

// firstCause returns why the first context that has ended did so.
func firstCause(ctxs ...context.Context) error {
	for _, ctx := range ctxs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
