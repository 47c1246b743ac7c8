package redisson

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

const (
	// pollInterval is how often a lock is tried while no message about it can arrive.
	pollInterval = 250 * time.Millisecond
	// undoPatience is how long a failed Acquire stays to see its traces removed, if that can be had so soon.
	undoPatience = 250 * time.Millisecond
)

// Acquire is lock.Locker's. It serves Exclusive; other kinds are refused with lock.ErrUnsupported.
//
// An error that is neither lock.ErrBusy nor the cause of ctx means that Redis could not be asked, did not answer within
// the client's timeout, or refused. The lock is then not held; what the question may have left behind is removed in the
// background as soon as Redis answers, and ends by itself with its lease otherwise.
func (c *Client) Acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	h, err := c.acquire(ctx, r)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (c *Client) acquire(ctx context.Context, r lock.Request) (*hold, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Kind != lock.Exclusive {
		return nil, fmt.Errorf("redisson: %w: %v", lock.ErrUnsupported, r.Kind)
	}
	if err := firstCause(ctx, c.ctx); err != nil {
		return nil, err
	}
	owner, ok := lock.OwnerFrom(ctx)
	if !ok {
		ctx = lock.NewOwner(ctx)
		owner, _ = lock.OwnerFrom(ctx)
	}
	s := c.sit(seatKey{c.mapName(r.Key), owner})
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

// pass gives the turn to the owner's next call.
func (s *seat) pass() { s.turn <- struct{}{} }

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

// reenter adds a hold to the claim that the owner has, and returns nil, nil if there is none. The seat's turn is taken.
func (w *wait) reenter(s *seat) (*hold, error) {
	lease, dog := w.lease(), w.c.watchdog
	dog.mu.Lock()
	cl := s.claim
	if cl == nil || len(cl.holds) == 0 {
		dog.mu.Unlock()
		return nil, nil
	}
	count := len(cl.holds) + 1
	cl.beginSetting(lease)
	dog.watch(cl)
	dog.mu.Unlock()

	done := func(a answer) { w.c.endSetting(cl, a, lease) }
	a := w.c.ask(w.ctx, cl.acquire(lease, count), done)
	if a.late {
		return nil, a.err
	}
	done(a)
	switch {
	case a.err != nil:
		return nil, a.err
	case a.values[0] == 0: // the claim had been lost, unnoticed so far; now it is, and the lock may be taken anew
		return nil, context.Cause(w.ctx)
	}
	return w.grant(cl, a.sent, lease)
}

// contend takes the lock for an owner who does not hold it. The seat's turn is taken.
func (w *wait) contend(s *seat) (*hold, error) {
	cl := &claim{name: s.key.name, holder: w.c.nextHolder(), seat: s, index: -1}
	if w.request.Wait != 0 {
		return w.queue(cl)
	}
	h, ttl, err := w.try(cl)
	if h == nil && err == nil {
		err = w.busy(ttl)
	}
	return h, err
}

// queue stands in line for the lock and, at the head of the line, tries whenever it may be free: at once, after a message,
// after a (new) subscription, when the holder's lease is over, and in any case once in a third of the watchdog's timeout.
func (w *wait) queue(cl *claim) (*hold, error) {
	place := w.c.lines.join(cl.name)
	defer w.c.lines.leave(place)
	if err := w.await(place.turn, nil, place); err != nil {
		return nil, err
	}
	for {
		// Taken before the try, so that a message in between is not missed.
		hint, live := place.hint()
		h, ttl, err := w.try(cl)
		if h != nil || err != nil {
			return h, err
		}
		place.expect(ttl)
		if hint == nil {
			// The first refusal in this line: from now on it listens. The confirmation is a hint, too, and so
			// makes up for a message that came before it.
			place.listen()
			if hint, live = place.hint(); live {
				continue
			}
		}
		if err := w.await(hint, w.nap(ttl, live), place); err != nil {
			return nil, err
		}
	}
}

// nap is how long to sleep without a hint. A lock without a time to live, which Redisson never makes, is looked at again
// like any other.
func (w *wait) nap(ttl time.Duration, live bool) <-chan time.Time {
	d := w.c.watchdog.timeout / 3
	if ttl > 0 {
		d = min(d, ttl+time.Millisecond)
	}
	if !live {
		d = min(d, pollInterval)
	}
	return time.After(d)
}

// await returns nil when ready or soon was received from, and the reason when there is nothing left to wait for.
func (w *wait) await(ready <-chan struct{}, soon <-chan time.Time, p *place) error {
	select {
	case <-ready:
		return nil
	case <-soon:
		return nil
	case <-w.over():
		return w.busy(p.remaining())
	case <-w.ctx.Done():
	case <-w.c.ctx.Done():
	}
	return firstCause(w.ctx, w.c.ctx)
}

// lease is what Redis is told: the lease asked for, or the watchdog's.
func (w *wait) lease() time.Duration {
	lease := cmp.Or(w.request.Lease, w.c.watchdog.timeout)
	if w.request.MaxHold > 0 {
		return min(lease, w.request.MaxHold)
	}
	return lease
}

// try asks Redis once. It returns a hold, or how long the lock is held by somebody else at least, or an error; then
// nothing stays behind.
func (w *wait) try(cl *claim) (*hold, time.Duration, error) {
	lease := w.lease()
	a := w.c.ask(w.ctx, cl.acquire(lease, 1), func(a answer) {
		if a.inDoubt || a.err == nil && a.values[0] == 1 {
			w.c.lockedUndo(cl, lease)
		}
	})
	switch {
	case a.err != nil && a.inDoubt:
		w.c.lockedUndo(cl, lease)
		w.lingerFor(cl)
		return nil, 0, a.err
	case a.err != nil:
		return nil, 0, a.err
	case a.values[0] == 0:
		return nil, time.Duration(a.values[1]) * time.Millisecond, nil
	}
	h, err := w.grant(cl, a.sent, lease)
	return h, 0, err
}

// lingerFor waits a little for the removal of what cl may have in Redis.
func (w *wait) lingerFor(cl *claim) {
	t := time.NewTimer(undoPatience)
	defer t.Stop()
	select {
	case <-cl.undone:
	case <-t.C:
	case <-w.ctx.Done():
	}
}

// grant makes a hold of an answer that says that Redis has it.
func (w *wait) grant(cl *claim, sent time.Time, lease time.Duration) (*hold, error) {
	h := &hold{c: w.c, claim: cl, since: sent, lease: w.request.Lease}
	if most := w.request.MaxHold; most > 0 && (h.lease == 0 || most < h.lease) {
		h.bound = sent.Add(most)
		h.ends = h.bound.Add(-margin(lease))
	} else if h.lease > 0 {
		h.ends = sent.Add(lease - margin(lease))
	}
	h.ctx, h.cancel = context.WithCancelCause(context.WithValue(w.ctx, holdKey{w.c, cl.name}, h))
	if err := w.c.admit(h, sent, lease); err != nil {
		h.cancel(err)
		return nil, err
	}
	return h, nil
}

// admit puts h under the watchdog's care, unless its time is over by now, its caller has gone, or the client is closed.
func (c *Client) admit(h *hold, sent time.Time, lease time.Duration) error {
	cl, dog := h.claim, c.watchdog
	dog.mu.Lock()
	err := context.Cause(h.ctx)
	if err == nil {
		err = dog.closed
	}
	if err == nil && !time.Now().Before(sent.Add(lease-margin(lease))) {
		err = fmt.Errorf("redisson: Redis took longer to answer than the lease of %v", lease)
	}
	if err == nil {
		cl.holds = append(cl.holds, h)
		cl.seat.claim = cl
		cl.until = sent.Add(lease - margin(lease))
		cl.renewAt = dog.renewalDue(sent, lease)
		dog.watch(cl)
	}
	if err != nil && len(cl.holds) == 0 {
		c.undo(cl, lease)
	}
	dog.mu.Unlock()
	if err != nil {
		return err
	}
	c.sit(cl.seat.key) // for the hold; its end rises
	return nil
}

// beginSetting notes that a script which sets the lease is about to be sent: from now on Redis may have it, and nothing
// that was asked before tells how long the claim lasts.
func (cl *claim) beginSetting(lease time.Duration) {
	cl.settings++
	cl.epoch++
	cl.until = earlier(cl.until, time.Now().Add(lease-margin(lease)))
}

// endSetting notes the answer to a script that set the lease of a claim that goes on.
func (c *Client) endSetting(cl *claim, a answer, lease time.Duration) {
	dog := c.watchdog
	var losses []loss
	dog.mu.Lock()
	cl.settings--
	cl.epoch++
	switch {
	case !cl.active():
	case a.err != nil:
		cl.renewAt = time.Now() // which makes sure of the lease, if the claim is renewed
	case a.values[0] == 0:
		losses = cl.lose(time.Now(), errGone)
	default:
		cl.until = a.sent.Add(lease - margin(lease))
		cl.renewAt = dog.renewalDue(a.sent, lease)
	}
	dog.watch(cl)
	dog.mu.Unlock()
	tell(losses)
}

// undo has the watchdog remove what cl, which nobody holds, may have in Redis, for as long as it can be there. After
// Close it is tried once. The watchdog's mutex is held.
func (c *Client) undo(cl *claim, lease time.Duration) {
	if cl.undo {
		return
	}
	cl.undone = make(chan struct{})
	if c.watchdog.closed != nil {
		done := cl.undone
		c.start(func() {
			defer close(done)
			c.ask(context.Background(), cl.release(0, 0), func(answer) {})
		})
		return
	}
	now := time.Now()
	cl.undo, cl.until, cl.renewAt = true, now.Add(lease), now
	c.watchdog.watch(cl)
}

func (c *Client) lockedUndo(cl *claim, lease time.Duration) {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	c.undo(cl, lease)
}

// acquire is the call that takes the lock, or sets the count of a lock that cl has.
func (cl *claim) acquire(lease time.Duration, count int) call {
	return call{acquireScript(), []string{cl.name}, []any{cl.holder, millis(lease), count}}
}

// release is the call that leaves cl with the given count; the lease matters only above 0.
func (cl *claim) release(count int, lease time.Duration) call {
	return call{releaseScript(), []string{cl.name, lockChannel(cl.name)}, []any{cl.holder, count, millis(lease)}}
}

func (cl *claim) renew(lease time.Duration) call {
	return call{renewScript(), []string{cl.name}, []any{cl.holder, millis(lease)}}
}

// millis rounds up, so that a lease in Redis is never shorter than the one counted here.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
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
