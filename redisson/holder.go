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

// Why a hold can be lost; they become the Reason of a lock.LostError.
var (
	errGone      = errors.New("removed from Redis by somebody else")
	errLease     = errors.New("its lease is over")
	errUnrenewed = errors.New("not renewed in time")
)

// holder is one entry in Redis: a holder id at a lock. It belongs to an Acquire and the re-entries under it, which are its
// holds. Every Acquire that is no re-entry uses a fresh holder, so that a script that is delayed on its way can't touch a
// later one.
type holder struct {
	// These never change.
	id       string // the field of the hash; of a permit, its id
	name     string // of the lock, as mapped
	channel  string // where a waiter hears that the lock may be free; "" means nowhere
	family   family
	kind     lock.Kind // of the first hold
	limit    int       // of permits
	queues   bool      // of a fair lock: gets in line
	patience time.Duration

	// The mutex of claims guards the rest.
	entry
	next       *holder       // of the same lock, in the order of their admission backwards
	holds      []*hold       // joining, held or kept, oldest first
	first      [1]*hold      // room for most of them
	unreleased int           // lost holds whose work has not released them
	admitted   time.Time     // when the first hold was
	dead       bool          // lost, or being removed: nothing joins any more
	validUntil time.Time     // when the holder counts as lost; the key in Redis lives longer
	renewAt    time.Time     // when to update next, if a hold is renewed or outdated says so
	outdated   bool          // the counts in Redis may be others, or it is not known whether the holder is still there
	version    int32         // of the counts
	cuts       int           // updates under way that cut the lease
	cutBy      time.Time     // until then, one of them may arrive late
	cut        time.Duration // the shortest lease that one of them sets
	asked      time.Duration // the longest lease with which it was tried
	doubts     int           // attempts to enter that were not answered
	doubtUntil time.Time     // when the last of them counts as lost on its way
	lastErr    error         // of an update
	removal    *retry        // of what it may have left in Redis
}

// hold is one successful Acquire.
type hold struct {
	// These are set before anybody else knows of the hold.
	c      *Client
	holder *holder
	kind   lock.Kind
	most   time.Duration // MaxHold; 0 sets no bound
	ctx    heldContext
	cancel context.CancelCauseFunc

	// These are set when the hold is admitted.
	since time.Time // before, when it was asked for
	token int64     // of a fenced lock

	// The mutex of claims guards the rest.
	lease time.Duration // 0: renewed
	ends  time.Time     // for the work, by its own lease or MaxHold; zero: never
	over  time.Time     // the same for Redis, later by the margin; while joining, as far as is known
	state holdState
	cause error // why it was lost
}

type holdState int

const (
	joining holdState = iota // not answered by Redis yet
	held
	lost
	released // or only kept
)

// leastMargin is for machines that are busy: a goroutine can have to wait for its turn for as long.
const leastMargin = 25 * time.Millisecond

// margin is the part of a lease that is given away for the safety of the rest: the holder counts its lease as over by
// that much earlier than Redis does. It covers the time that a timer, a scheduler and the guarded work need to take notice,
// and clocks that differ by 500 ppm.
func margin(lease time.Duration) time.Duration {
	return max(min(lease/20, time.Second), lease/2000, min(lease/4, leastMargin))
}

// goodFor returns how long a lease may be relied on, from when it was asked for.
func goodFor(lease time.Duration) time.Duration { return lease - margin(lease) }

// suspension returns by how much the wall clock has run ahead of the monotonic one from a to b. If nobody has set the clock, the
// machine was suspended for as long.
func suspension(a, b time.Time) time.Duration {
	return b.Round(0).Sub(a.Round(0)) - b.Sub(a)
}

// counts returns how many holds there are, those that join and those that are kept included.
func (ho *holder) counts() (c counts) {
	for _, h := range ho.holds {
		c.add(h.kind)
	}
	return c
}

// has reports whether there is a live hold of that kind.
func (ho *holder) has(k lock.Kind) bool {
	return slices.ContainsFunc(ho.holds, func(h *hold) bool { return h.kind == k && h.state == held })
}

// need returns the longest lease that any of the holds still needs.
func (ho *holder) need(now time.Time, watchdogTimeout time.Duration) (d time.Duration) {
	for _, h := range ho.holds {
		if h.lease == 0 {
			d = max(d, watchdogTimeout)
		} else {
			d = max(d, h.over.Sub(now))
		}
	}
	return max(d, time.Millisecond)
}

// heir returns who keeps the lock, and until when, after the last live hold. Kept holds leave it to a fresh holder id; without
// any, the id is empty. It is not ok while a hold is live, or while both sides of a read/write lock are kept.
func (ho *holder) heir() (id string, until time.Time, ok bool) {
	for _, h := range ho.holds {
		if h.state != released || (h.kind == lock.Write) != (ho.holds[0].kind == lock.Write) {
			return "", until, false
		}
		until = later(until, h.over)
	}
	if len(ho.holds) > 0 {
		id = ho.holds[0].c.nextHolder(ho.kind)
		if ho.holds[0].kind == lock.Write {
			id += ":write"
		}
	}
	return id, until, true
}

// renewed reports whether a hold has no lease of its own.
func (ho *holder) renewed() bool {
	return slices.ContainsFunc(ho.holds, func(h *hold) bool { return h.lease == 0 })
}

// believe takes over the lease that a script has answered, and returns how much of it counts. No script shortens a lease, so the
// answer stays true in whatever order answers arrive. The exception is an update that cuts the lease: while one may still arrive,
// no answer counts for more than the cut. An answer to a question from before a suspension counts for nothing.
func (ho *holder) believe(a answer) (lease time.Duration) {
	lease = duration(a.values[1])
	if ho.cuts > 0 || a.sent.Before(ho.cutBy) {
		lease = min(lease, ho.cut)
	}
	if suspension(a.sent, time.Now()) < lease/3 {
		ho.validUntil = later(ho.validUntil, a.sent.Add(goodFor(lease)))
	}
	ho.lastErr = nil
	return lease
}

// beginCut prepares for an update that leaves only the given lease.
func (ho *holder) beginCut(lease time.Duration, now time.Time) {
	if ho.cuts == 0 && !now.Before(ho.cutBy) {
		ho.cut = lease
	}
	ho.cuts++
	ho.cut = min(ho.cut, lease)
	ho.validUntil = earlier(ho.validUntil, now.Add(goodFor(ho.cut)))
}

// endCut notes the end of such an update. If one of its attempts was not answered, a copy may arrive until late.
func (ho *holder) endCut(a answer, late time.Time) {
	ho.cuts--
	if a.doubts == 0 {
		late = time.Now()
	}
	ho.cutBy = later(ho.cutBy, late)
}

// changed makes an update due now. It brings the counts to Redis, or finds out whether the holder is still there.
func (ho *holder) changed() {
	ho.version++
	ho.outdated, ho.renewAt = true, soon()
}

// lapse returns why a holder is lost that is not valid any more.
func (ho *holder) lapse() error {
	switch {
	case ho.lastErr != nil:
		return fmt.Errorf("%w: %w", errUnrenewed, ho.lastErr)
	case ho.renewed():
		return errUnrenewed
	}
	return errLease
}

// attention returns when the holder next needs to be seen to; zero once it is dead.
func (ho *holder) attention() (at time.Time) {
	if ho.dead {
		return at
	}
	at = ho.validUntil
	if ho.outdated || ho.renewed() {
		at = earlier(at, ho.renewAt)
	}
	for _, h := range ho.holds {
		if !h.ends.IsZero() {
			at = earlier(at, h.ends)
		}
	}
	return at
}

// inDoubt reports whether an attempt to enter may still arrive.
func (ho *holder) inDoubt(now time.Time) bool { return ho.doubts > 0 && now.Before(ho.doubtUntil) }

// admit makes h a hold that Redis has granted.
func (h *hold) admit(a answer) {
	h.state, h.since, h.token = held, a.sent, a.values[2]
	if h.lease > 0 || h.most > 0 {
		h.lastFor(cmp.Or(h.lease, h.most), a.sent)
	}
}

// lastFor gives the hold d from the time at which Redis was asked, but no more than MaxHold in all.
func (h *hold) lastFor(d time.Duration, asked time.Time) {
	h.ends, h.over = later(h.ends, asked.Add(goodFor(d))), later(h.over, asked.Add(d))
	if h.most > 0 {
		h.ends, h.over = earlier(h.ends, h.since.Add(goodFor(h.most))), earlier(h.over, h.since.Add(h.most))
	}
}

// lapse returns why the hold has ended when its own time is over.
func (h *hold) lapse() error {
	if h.most > 0 && h.over.Equal(h.since.Add(h.most)) {
		return lock.ErrMaxHold
	}
	return errLease
}

func (h *hold) lostError(now time.Time, reason error) error {
	return &lock.LostError{Held: now.Sub(h.since), Reason: reason}
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

// holdOf finds in a context the innermost hold of a lock, also one that has ended.
type holdOf struct{ *Lock }

// heldContext is the context of a hold.
type heldContext struct {
	context.Context
	link lock.Link
	hold *hold
}

// Value implements [context.Context].
func (c *heldContext) Value(key any) any {
	if l, ok := key.(holdOf); ok && l.c == c.hold.c && l.key == c.hold.holder.name && l.kind == c.hold.kind {
		return c.hold
	}
	if v := c.link.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// open makes the context of a hold that is about to be admitted.
func (h *hold) open(ctx context.Context) {
	h.ctx.hold = h
	h.ctx.Context, h.cancel = context.WithCancelCause(ctx) //nolint:fatcontext // once
	h.ctx.link.Join(ctx, h.public(), h)
}

// public is h as its owner sees it.
func (h *hold) public() lock.Hold {
	if h.kind == lock.Fenced {
		return fencedHold{h}
	}
	return h
}

func (h *hold) inner() *hold { return h }

// Held is for the chain of contexts.
func (h *hold) Held() bool { return h.c.claims.live(h) }

// Context implements [lock.Hold].
func (h *hold) Context() context.Context { return &h.ctx }

// Release implements [lock.Hold]. The script goes out even if ctx has ended; ctx bounds only the wait for its answer, and so
// does the client's timeout. When the answer is an error, the watchdog goes on trying to remove the lock until its lease ends.
func (h *hold) Release(ctx context.Context) error { return h.release(ctx, 0) }

// Keep is Release, except that nobody gets the lock for another d: for work that is done once an interval. A d of 0 or less is
// Release. If the hold is a re-entry, the time counts from now, too, but the outer hold goes on.
func (h *hold) Keep(ctx context.Context, d time.Duration) error { return h.release(ctx, max(d, 0)) }

func (h *hold) release(ctx context.Context, kept time.Duration) error {
	d, lost := h.depart(kept)
	if d.hold == nil {
		return lost
	}
	return cmp.Or(lost, d.end(ctx, h.c.road.askSoon(ctx, d.call)))
}

// departure is the release of a hold, by a call that may make a waiter the next holder.
type departure struct {
	hold *hold
	task task
	call call
	to   *place // of that waiter
	free bool   // nobody is the next holder
}

// depart begins a release. The departure is zero if there is nothing to ask. The error says why the hold was lost.
func (h *hold) depart(kept time.Duration) (d departure, lost error) {
	t, lost := h.c.claims.beginRelease(h, kept)
	if t.call.script == nil {
		return d, lost
	}
	d = departure{hold: h, task: t, call: t.call}
	if family, ok := h.holder.family.(passing); ok && t.free && lost == nil {
		if d.to = h.c.lines.offer(h); d.to != nil {
			d.call = family.pass(h.holder, d.to.hold.holder)
		}
		d.free = d.to == nil
	}
	return d, lost
}

// end notes what Redis has answered. If the server refuses to pass the lock on, it is released.
func (d departure) end(ctx context.Context, a answer) error {
	c := d.hold.c
	if d.to != nil {
		if !c.lines.give(d.to, a) {
			c.claims.discard(d.to.hold.holder) // it has left meanwhile
		}
		if lasting(a.err) {
			a = c.road.askSoon(ctx, d.task.call)
		}
	}
	err := c.claims.endRelease(d.hold, d.task, a)
	if d.free {
		notified := int64(-1)
		if a.yes() && c.topology.Cluster() == nil { // there, each node knows of its own subscribers only
			notified = a.values[1]
		}
		c.lines.released(d.hold, notified)
	}
	return err
}
