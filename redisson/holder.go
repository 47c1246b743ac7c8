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
	id       string    // the field of the hash; of a permit, its id
	keys     [1]string // the name of the lock, as mapped, which is the only key of most scripts
	family   family
	limit    int // of permits
	patience time.Duration
	kind     lock.Kind // of the first hold
	queues   bool      // of a fair lock: gets in line

	// The mutex of claims guards the rest. There can be very many holders: fields of a size stand together.
	queued     bool  // stands in the queue of a fair lock
	dead       bool  // lost, or being removed: nothing joins any more
	told       bool  // by somebody that it was freed by hand; Redis is asked
	toldAgain  bool  // since it was
	outdated   bool  // the counts in Redis may be others, or it is not known whether the holder is still there
	version    int32 // of the counts
	unreleased int32 // lost holds whose work has not released them
	doubts     int32 // attempts to enter that were not answered
	entry
	next       *holder       // of the same lock, in the order of their admission backwards
	holds      []*hold       // joining, held or kept, oldest first
	first      [1]*hold      // room for most of them
	admitted   instant       // when the first hold was
	validUntil instant       // when the holder counts as lost; the key in Redis lives longer
	renewAt    instant       // when to update next, if a hold is renewed or outdated says so
	owed       instant       // when the update was first due that Redis has not confirmed; zero: none is
	asked      time.Duration // the longest lease with which it was tried
	doubtUntil instant       // when the last attempt that was not answered counts as lost on its way
	cut        *cut          // nil: no update has cut the lease
	lastErr    error         // of an update
	removal    *retry        // of what it may have left in Redis
}

// cut is about updates that cut a holder's lease.
type cut struct {
	underway int
	by       instant       // until then, one of them may arrive late
	lease    time.Duration // the shortest that one of them sets
}

// hold is one successful Acquire.
type hold struct {
	// These are set before anybody else knows of the hold.
	c      *Client
	holder *holder
	exit   *call         // its release without an heir, if that was made before the admission
	most   time.Duration // MaxHold; 0 sets no bound
	ctx    heldContext
	cancel context.CancelCauseFunc
	kind   lock.Kind

	// The mutex of claims guards the rest; since and token don't change once the hold is admitted.
	state holdState
	since instant       // before it is admitted, when it was asked for
	token int64         // of a fenced lock
	lease time.Duration // 0: renewed
	ends  instant       // for the work, by its own lease or MaxHold; zero: never
	over  instant       // the same for Redis, later by the margin; while joining, as far as is known
	cause error         // why it was lost
}

type holdState uint8

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
	return time.Duration(b.UnixNano()-a.UnixNano()) - b.Sub(a)
}

func (ho *holder) name() string { return ho.keys[0] }

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
func (ho *holder) need(now instant, watchdogTimeout time.Duration) (d time.Duration) {
	for _, h := range ho.holds {
		if h.lease == 0 {
			d = max(d, watchdogTimeout)
		} else {
			d = max(d, h.over.sub(now))
		}
	}
	return max(d, time.Millisecond)
}

// heir returns who keeps the lock, and until when, after the last live hold. Kept holds leave it to a fresh holder id; without
// any, the id is empty. It is not ok while a hold is live, or while both sides of a read/write lock are kept.
func (ho *holder) heir() (id string, until instant, ok bool) {
	for _, h := range ho.holds {
		if h.state != released || (h.kind == lock.Write) != (ho.holds[0].kind == lock.Write) {
			return "", until, false
		}
		until = max(until, h.over)
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
	if cut := ho.cut; cut != nil && (cut.underway > 0 || instantOf(a.sent) < cut.by) {
		lease = min(lease, cut.lease)
	}
	if suspension(a.sent, time.Now()) < lease/3 {
		ho.validUntil = max(ho.validUntil, instantOf(a.sent).add(goodFor(lease)))
	}
	ho.lastErr = nil
	return lease
}

// beginCut prepares for an update that leaves only the given lease.
func (ho *holder) beginCut(lease time.Duration, now instant) {
	if ho.cut == nil || ho.cut.underway == 0 && now >= ho.cut.by {
		ho.cut = &cut{lease: lease}
	}
	ho.cut.underway++
	ho.cut.lease = min(ho.cut.lease, lease)
	ho.validUntil = min(ho.validUntil, now.add(goodFor(ho.cut.lease)))
}

// endCut notes the end of such an update. If one of its attempts was not answered, a copy may arrive until late.
func (ho *holder) endCut(a answer, late instant) {
	ho.cut.underway--
	if a.doubts == 0 {
		late = present()
	}
	ho.cut.by = max(ho.cut.by, late)
}

// goneError is why a holder is lost that Redis does not have any more.
func (ho *holder) goneError() error {
	if ho.told {
		return ErrForced
	}
	return errGone
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
func (ho *holder) attention() (at instant) {
	if ho.dead {
		return at
	}
	at = ho.validUntil
	if ho.outdated || ho.renewed() {
		at = min(at, ho.renewAt)
	}
	for _, h := range ho.holds {
		if h.ends > 0 {
			at = min(at, h.ends)
		}
	}
	return at
}

// inDoubt reports whether an attempt to enter may still arrive.
func (ho *holder) inDoubt(now instant) bool { return ho.doubts > 0 && now < ho.doubtUntil }

// admit makes h a hold that Redis has granted.
func (h *hold) admit(a answer) {
	h.state, h.since, h.token = held, instantOf(a.sent), a.values[2]
	if h.lease > 0 || h.most > 0 {
		h.lastFor(cmp.Or(h.lease, h.most), h.since)
	}
}

// lastFor gives the hold d from the time at which Redis was asked, but no more than MaxHold in all.
func (h *hold) lastFor(d time.Duration, asked instant) {
	h.ends, h.over = max(h.ends, asked.add(goodFor(d))), max(h.over, asked.add(d))
	if h.most > 0 {
		h.ends, h.over = min(h.ends, h.since.add(goodFor(h.most))), min(h.over, h.since.add(h.most))
	}
}

// lapse returns why the hold has ended when its own time is over.
func (h *hold) lapse() error {
	if h.most > 0 && h.over == h.since.add(h.most) {
		return lock.ErrMaxHold
	}
	return errLease
}

func (h *hold) lostError(now instant, reason error) error {
	return &lock.LostError{Held: now.sub(h.since), Reason: reason}
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
	if l, ok := key.(holdOf); ok && l.c == c.hold.c && l.key == c.hold.holder.name() && l.kind == c.hold.kind {
		return c.hold
	}
	if v := c.link.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// ready makes what h will need, while its call waits: afterwards, others would wait for that.
func (h *hold) ready(ctx context.Context) {
	if h.exit == nil {
		h.open(ctx)
		exit := h.holder.family.exit(h.holder, "", 0)
		h.exit = &exit
	}
}

// open makes the context of a hold that is about to be admitted, unless it is made.
func (h *hold) open(ctx context.Context) {
	if h.cancel != nil {
		return
	}
	h.ctx.hold = h
	h.ctx.Context, h.cancel = context.WithCancelCause(ctx) //nolint:fatcontext // once
	h.ctx.link.Join(ctx, h.public(), h)
}

// shut ends the context of a hold that is not admitted, if it is made.
func (h *hold) shut() {
	if h.cancel != nil {
		h.cancel(nil)
	}
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
	c.metrics.released(d.hold, err)
	if d.free {
		notified := int64(-1)
		if a.yes() && c.topology.Cluster() == nil { // there, each node knows of its own subscribers only
			notified = a.values[1]
		}
		c.lines.released(d.hold, notified)
	}
	return err
}
