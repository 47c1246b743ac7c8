package redisson

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Why a hold can be lost; they become the Reason of a lock.LostError.
var (
	errGone      = errors.New("not there any more: freed, evicted, or lost in a failover or restart")
	errLease     = errors.New("its lease is over")
	errUnrenewed = errors.New("not renewed in time")
)

// ErrForced is why a hold is lost whose lock somebody has freed by hand, with [Lock.ForceUnlock] or [Client.ForceUnlock] in any process. The
// cause with which its context ends matches it, and lock.ErrLost.
var ErrForced = errors.New("freed by hand")

// holder is one entry in Redis: a holder id at a lock. It belongs to an Acquire and the re-entries under it, which are its
// holds, or to one such call after the other: a plain lock that passes to the next call in line keeps its holder. Every Acquire that asks
// Redis for the lock uses a fresh holder, so that a script that is delayed on its way can't touch a later one.
type holder struct {
	// These never change.
	id       string    // the field of the hash; of a permit, its id
	keys     [1]string // the name of the lock, as mapped, which is the only key of most scripts
	family   family
	patience time.Duration
	limit    int32     // of permits; Redisson's numbers have 32 bits, too
	kind     lock.Kind // of the first hold
	queues   bool      // of a fair lock: gets in line

	// The mutex of the registry guards the rest. There can be very many holders: fields of a size stand together.
	queued     bool  // stands in the queue of a fair lock
	dead       bool  // lost, or being removed: nothing joins any more
	told       bool  // a message said that it was freed by hand, and a question to Redis is under way
	outdated   bool  // the counts in Redis may be others, or it is not known whether the holder is still there
	doubts     int16 // attempts to enter that were not answered
	version    int32 // of the counts
	unreleased int32 // lost holds whose work has not released them
	turns      int32 // how often the lock has passed on
	entry
	holds      []*hold       // joining, held or kept, oldest first
	first      [1]*hold      // room for most of them
	admitted   instant       // when the first hold was
	validUntil instant       // when the holder counts as lost; the key in Redis lives longer
	renewAt    instant       // when to update next, if a hold is renewed or outdated says so
	owed       instant       // when the update was first due that Redis has not confirmed; zero: none is
	asked      time.Duration // the longest lease with which it was tried
	doubtUntil instant       // when the last attempt that was not answered counts as lost on its way
	cut        *cut          // nil: no update has cut the lease
	why        error         // it was freed by hand, if that is known
	lastErr    error         // of the watchdog; what others meet may be the end of their own contexts
	removal    *retry        // of what it may have left in Redis
}

// cut is about updates that cut a holder's lease.
type cut struct {
	underway int
	by       instant       // until then, one of them may arrive late
	lease    time.Duration // the shortest that one of them sets
}

// leastMargin is for machines that are busy: a goroutine can have to wait for its turn for as long.
const leastMargin = 25 * time.Millisecond

// margin is the safety margin of a lease: the holder counts its lease as over by that much earlier than Redis does. It
// covers the time that a timer, a scheduler and the guarded work need to take notice, and clocks that differ by 500
// ppm.
func margin(lease time.Duration) time.Duration {
	return max(min(lease/20, time.Second), lease/2000, min(lease/4, leastMargin))
}

// goodFor returns how long a lease may be relied on, counted from its request.
func goodFor(lease time.Duration) time.Duration { return lease - margin(lease) }

// suspension returns by how much the wall clock has run ahead of the monotonic one from a to b. If nobody has set the clock, the
// machine was suspended for as long.
func suspension(a, b time.Time) time.Duration {
	return time.Duration(b.UnixNano()-a.UnixNano()) - b.Sub(a)
}

func (ho *holder) name() string { return ho.keys[0] }

// nothing reports whether there is nothing to hold, as only a permit of a rate is taken.
func (ho *holder) nothing() bool { return ho.kind == lock.Permit && ho.limit == 0 }

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

// leaves reports whether the last live hold is over. It is not while both sides of a read/write lock are kept, which one successor can't do.
func (ho *holder) leaves() bool {
	return !slices.ContainsFunc(ho.holds, func(h *hold) bool {
		return h.state != released || (h.kind == lock.Write) != (ho.holds[0].kind == lock.Write)
	})
}

// leave is the exit of ho. If there are kept holds whose time is not over, it leaves the lock to a successor for as long: a fresh holder id, which
// writes if one of them does.
func (ho *holder) leave(now instant) (exit call, successor string) {
	until, side := now, ""
	for _, h := range ho.holds {
		if h.state != released || h.over <= now {
			continue
		}
		if until = max(until, h.over); h.kind == lock.Write {
			side = writes
		}
	}
	if until > now {
		successor = ho.holds[0].c.nextHolder(ho.kind) + note(ho.holds[0].by) + side
	}
	return ho.family.exit(ho, successor, until.sub(now)), successor
}

// beginLeave returns the task that takes ho out of Redis. A partial release that is under way may find nothing any more.
func (ho *holder) beginLeave(now instant) task {
	ho.version++
	ho.dead = true // endRelease buries it
	exit, successor := ho.leave(now)
	return task{call: exit, whole: true, free: successor == "" && (handsOver(ho.family) || ho.kind == lock.Permit), pace: now.sub(ho.admitted) / time.Duration(ho.turns+1)}
}

// renewed reports whether a hold has no lease of its own.
func (ho *holder) renewed() bool {
	return slices.ContainsFunc(ho.holds, func(h *hold) bool { return h.lease == 0 })
}

// believe applies the lease in a script's answer, and returns how much of it counts. No script shortens a lease, so the
// answer stays true in whatever order answers arrive. The exception is an update that cuts the lease: while one may
// still arrive, no answer counts for more than the cut. An answer to a question from before a suspension counts for
// nothing.
func (ho *holder) believe(a answer) (lease time.Duration) {
	lease = duration(a.Values[1])
	if cut := ho.cut; cut != nil && (cut.underway > 0 || instantOf(a.Sent) < cut.by) {
		lease = min(lease, cut.lease)
	}
	if suspension(a.Sent, time.Now()) < lease/3 {
		ho.validUntil = max(ho.validUntil, instantOf(a.Sent).add(goodFor(lease)))
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
	if a.Doubts == 0 {
		late = present()
	}
	ho.cut.by = max(ho.cut.by, late)
}

// goneError is the error of a holder that Redis does not have any more.
func (ho *holder) goneError() error {
	if ho.told {
		return cmp.Or(ho.why, ErrForced)
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

// attention returns when the watchdog must next look at the holder; zero once it is dead.
func (ho *holder) attention() (at instant) {
	if ho.dead {
		return at
	}
	at = ho.validUntil
	for _, h := range ho.holds {
		if h.ends > 0 {
			at = min(at, h.ends)
		}
	}
	if ho.outdated || ho.renewed() {
		at = min(at, ho.renewAt)
	}
	return at
}

// inDoubt reports whether an attempt to enter may still arrive.
func (ho *holder) inDoubt(now instant) bool { return ho.doubts > 0 && now < ho.doubtUntil }

// lockID identifies a lock in Redis: kinds of one family share a name.
type lockID struct {
	name   string
	family lock.Kind
}

func (ho *holder) lockID() lockID { return lockID{ho.name(), ho.kind.Family()} }

// holders are those that are alive, by their lock, in the order in which they were admitted.
type holders map[lockID][]*holder

// lockIDs appends to room the locks of ho: those of all levels of a permit.
func (ho *holder) lockIDs(room []lockID) []lockID {
	room = append(room, ho.lockID())
	if p, ok := ho.family.(*permit); ok {
		for _, l := range p.levels {
			room = append(room, lockID{l.name, lock.Permit})
		}
	}
	return room
}

// add adds the newest holder of its locks.
func (all holders) add(ho *holder) {
	for _, id := range ho.lockIDs(make([]lockID, 0, maxLevels)) {
		all[id] = append(all[id], ho)
	}
}

// remove takes ho out, if it is in.
func (all holders) remove(ho *holder) {
	for _, id := range ho.lockIDs(make([]lockID, 0, maxLevels)) {
		if all[id] = without(all[id], ho); len(all[id]) == 0 {
			delete(all, id)
		}
	}
}

// newest returns the holder of a lock that was admitted last, and nil if there is none.
func (all holders) newest(id lockID) *holder {
	if some := all[id]; len(some) > 0 {
		return some[len(some)-1]
	}
	return nil
}

// all returns all holders, in any order.
func (all holders) all() iter.Seq[*holder] {
	return func(yield func(*holder) bool) {
		for id, some := range all {
			for _, ho := range some {
				if ho.lockID() == id && !yield(ho) {
					return
				}
			}
		}
	}
}
