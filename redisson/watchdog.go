package redisson

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// watchdog looks after all claims of a client with one goroutine: it renews those that want it, in batches, tells the
// holders of those that are lost, and removes from Redis what an Acquire in doubt may have left there.
//
// Loss is decided by the local clock: a claim is good until the lease that was last confirmed, counted from the moment
// before the question was sent, is over but for a margin. Nothing that Redis does or omits can delay that.
type watchdog struct {
	timeout time.Duration // the lease of a renewed lock
	grace   time.Duration // how long a script that was not answered may still arrive
	origin  time.Time     // of the grid on which renewals are due
	send    func(context.Context, []errand) []outcome
	wg      sync.WaitGroup
	kick    chan struct{}

	mu     sync.Mutex
	claims claimHeap
	closed error // why no claim is taken any more
}

// errand is a claim's script in a batch: a renewal for lease, or with lease 0 a removal.
type errand struct {
	claim *claim
	call  call
	lease time.Duration
	epoch int
}

// outcome is what became of an errand: done, not there any more, or with err not answered.
type outcome struct {
	done bool
	err  error
}

// batchSize bounds a pipeline, so that its answer comes well before the next attempt is due.
const batchSize = 500

// loss is a hold to be told of its end, outside of the mutex.
type loss struct {
	hold  *hold
	cause error
}

func newWatchdog(timeout, grace time.Duration, send func(context.Context, []errand) []outcome) *watchdog {
	return &watchdog{timeout: timeout, grace: grace, origin: time.Now(), send: send, kick: make(chan struct{}, 1)}
}

// retryAfter is how soon a renewal or removal that was not answered is followed by another one, whether or not the first
// has failed by then.
func (w *watchdog) retryAfter() time.Duration { return min(w.timeout/9, time.Second) }

// renewalDue is when a lease that was confirmed at the given time is to be renewed: at a third of it, as Redisson does,
// but on a grid, so that claims of about the same age share a pipeline.
func (w *watchdog) renewalDue(confirmed time.Time, lease time.Duration) time.Time {
	at := confirmed.Add(min(lease, w.timeout) / 3).Sub(w.origin)
	return w.origin.Add(at.Truncate(min(lease, w.timeout) / 30))
}

func (w *watchdog) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.kick:
		case <-ctx.Done():
			w.closeAll(context.Cause(ctx))
			w.wg.Wait()
			return
		}
		if next := w.pass(ctx); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// pass does all that is due and returns when to come back; zero means not before there is something new.
func (w *watchdog) pass(ctx context.Context) (next time.Time) {
	var losses []loss
	var batch []errand
	w.mu.Lock()
	now := time.Now()
	for len(w.claims) > 0 && !w.claims[0].due().After(now) {
		cl := w.claims[0]
		losses = append(losses, w.expire(cl, now)...)
		if e, ok := w.errandFor(cl, now); ok {
			batch = append(batch, e)
		}
		w.settle(cl)
	}
	if len(w.claims) > 0 {
		next = w.claims[0].due()
	}
	w.mu.Unlock()
	tell(losses)
	if len(batch) > 0 {
		w.wg.Go(func() { w.dispatchAll(ctx, batch, now) })
	}
	return next
}

// expire ends the holds of cl whose time is over. If they had a time of their own and nobody holds any more, the lock ends
// with them, and not only with the lease that it has in Redis.
func (w *watchdog) expire(cl *claim, now time.Time) []loss {
	var losses []loss
	for _, h := range slices.Clone(cl.holds) {
		if !h.ends.IsZero() && !now.Before(h.ends) {
			losses = append(losses, h.lose(now, h.reason()))
			if len(cl.holds) == 0 {
				w.remove(cl, h.since.Add(cmp.Or(h.most, h.lease)))
			}
		}
	}
	if now.Before(cl.until) {
		return losses
	}
	cl.forget()
	return append(losses, cl.lose(now, cl.lapse())...)
}

// remove has the field of cl, which nobody holds, removed from Redis from the given time on, or sooner if that was said
// before.
func (w *watchdog) remove(cl *claim, at time.Time) {
	if cl.undo {
		cl.renewAt = earlier(cl.renewAt, at)
		w.watch(cl)
		return
	}
	cl.undo, cl.undone = true, make(chan struct{})
	cl.renewAt, cl.sure = at, at
	if cl.doubt {
		cl.sure = at.Add(w.grace)
	}
	cl.until = at.Add(max(cl.longest, w.timeout))
	w.watch(cl)
}

// errandFor returns what is to be asked for cl now, if anything.
func (w *watchdog) errandFor(cl *claim, now time.Time) (errand, bool) {
	if !cl.undo && !cl.wantsRenewal() || now.Before(cl.renewAt) {
		return errand{}, false
	}
	cl.renewAt = now.Add(w.retryAfter())
	if cl.undo {
		return cl.removal(), true
	}
	return errand{claim: cl, call: cl.family.renew(cl, w.timeout), lease: w.timeout, epoch: cl.epoch}, true
}

func (cl *claim) removal() errand { return errand{claim: cl, call: cl.family.exit(cl, 0)} }

// dispatchAll sends what was due at the given time, in parts. Parts that came too late for that have been due again since,
// and are in a later batch.
func (w *watchdog) dispatchAll(ctx context.Context, batch []errand, due time.Time) {
	for part := range slices.Chunk(batch, batchSize) {
		if time.Since(due) < w.retryAfter() {
			w.dispatch(ctx, part)
		}
	}
}

// dispatch sends a batch and applies what comes back.
func (w *watchdog) dispatch(ctx context.Context, batch []errand) {
	sent := time.Now()
	outcomes := w.send(ctx, batch)
	var losses []loss
	w.mu.Lock()
	now := time.Now()
	for i, e := range batch {
		losses = append(losses, w.apply(e, outcomes[i], sent, now)...)
		w.settle(e.claim)
	}
	w.mu.Unlock()
	tell(losses)
	w.wake()
}

func (w *watchdog) apply(e errand, o outcome, sent, now time.Time) []loss {
	cl := e.claim
	switch {
	case !cl.active():
	case o.err != nil:
		cl.lastErr = o.err
	case cl.undo:
		if e.lease == 0 {
			cl.answer(o.done || !now.Before(cl.sure))
		}
	case e.lease == 0:
	case !o.done:
		return cl.lose(now, errGone)
	case e.epoch == cl.epoch:
		lease := cl.reliable(e.lease)
		cl.lastErr = nil
		cl.until = later(cl.until, sent.Add(goodFor(lease)))
		cl.renewAt = w.renewalDue(sent, lease)
	}
	return nil
}

// watch looks after cl, which is new or has changed.
func (w *watchdog) watch(cl *claim) {
	w.settle(cl)
	if len(w.claims) > 0 && w.claims[0] == cl {
		w.wake()
	}
}

// settle puts cl where it belongs in the heap, or takes it out.
func (w *watchdog) settle(cl *claim) {
	switch {
	case !cl.active():
		if cl.index >= 0 {
			heap.Remove(&w.claims, cl.index)
		}
	case cl.index < 0:
		heap.Push(&w.claims, cl)
	default:
		heap.Fix(&w.claims, cl.index)
	}
}

func (w *watchdog) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// closeAll ends all holds, because nothing will renew them, and tries a last time to remove what is in doubt.
func (w *watchdog) closeAll(cause error) {
	var losses []loss
	var batch []errand
	w.mu.Lock()
	w.closed = cause
	now := time.Now()
	for _, cl := range slices.Clone(w.claims) {
		if cl.undo {
			batch = append(batch, cl.removal())
		}
		losses = append(losses, cl.lose(now, cause)...)
		cl.forget()
		w.settle(cl)
	}
	w.mu.Unlock()
	tell(losses)
	if len(batch) > 0 {
		w.send(context.Background(), batch)
	}
}

// dropAll ends all holds of the lock, which somebody has removed from Redis.
func (w *watchdog) dropAll(name string, f family) {
	var losses []loss
	w.mu.Lock()
	for _, cl := range slices.Clone(w.claims) {
		if cl.name == name && cl.family == f {
			losses = append(losses, cl.lose(time.Now(), errGone)...)
			w.settle(cl)
		}
	}
	w.mu.Unlock()
	tell(losses)
}

// tell ends the contexts of lost holds.
func tell(losses []loss) {
	for _, l := range losses {
		l.hold.cancel(l.cause)
	}
}

// lose ends all holds of cl for the same reason.
func (cl *claim) lose(now time.Time, reason error) []loss {
	losses := make([]loss, 0, len(cl.holds))
	for _, h := range slices.Clone(cl.holds) {
		losses = append(losses, h.lose(now, reason))
	}
	return losses
}

// lose ends one hold and says what to tell it.
func (h *hold) lose(now time.Time, reason error) loss {
	h.cause = &lock.LostError{Held: now.Sub(h.since), Reason: reason}
	h.end(lost)
	return loss{hold: h, cause: h.cause}
}

// end takes h out of its claim with the given state. The caller cancels the context, outside of the mutex.
func (h *hold) end(s holdState) {
	h.state = s
	h.claim.holds = slices.DeleteFunc(h.claim.holds, func(o *hold) bool { return o == h })
	h.c.leave(h.claim.seat)
}

// reason is why a hold ended when its own time was over.
func (h *hold) reason() error {
	if h.most > 0 {
		return lock.ErrMaxHold
	}
	return errLease
}

// lapse is why a claim is over that was not confirmed again in time.
func (cl *claim) lapse() error {
	switch {
	case cl.lastErr != nil:
		return fmt.Errorf("%w: %w", errUnheard, cl.lastErr)
	case cl.wantsRenewal():
		return errUnheard
	default:
		return errLease
	}
}

// active tells whether there is anything to look after.
func (cl *claim) active() bool { return cl.undo || len(cl.holds) > 0 }

// answer notes that a removal was answered, and ends it if that settles the matter.
func (cl *claim) answer(settled bool) {
	select {
	case <-cl.undone:
	default:
		close(cl.undone)
	}
	if settled {
		cl.undo = false
	}
}

// forget gives up a removal that has become pointless.
func (cl *claim) forget() {
	if cl.undo {
		cl.answer(true)
	}
}

// due is when cl next needs attention.
func (cl *claim) due() time.Time {
	at := cl.until
	if cl.undo || cl.wantsRenewal() {
		at = earlier(at, cl.renewAt)
	}
	for _, h := range cl.holds {
		if !h.ends.IsZero() {
			at = earlier(at, h.ends)
		}
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
