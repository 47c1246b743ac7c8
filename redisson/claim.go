package redisson

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// Why a hold can be lost; they become the Reason of a lock.LostError.
var (
	errGone    = errors.New("removed from Redis by somebody else")
	errLease   = errors.New("its lease is over")
	errUnheard = errors.New("not renewed in time")
)

// seat is where one owner sits at one lock. Its turn orders the owner's own calls, which may come from several
// goroutines; a seat lasts while there is a call or a hold. Its other fields are guarded by the watchdog's mutex.
type seat struct {
	key   seatKey
	turn  chan struct{} // holds one token while nobody has the turn
	users int           // calls in progress and live holds
	claim *claim        // the last one; it may have ended
}

type seatKey struct {
	name  string
	owner lock.Owner
}

func (c *Client) sit(key seatKey) *seat {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	s := c.seats[key]
	if s == nil {
		s = &seat{key: key, turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		c.seats[key] = s
	}
	s.users++
	return s
}

// rise undoes sit, for a call. The watchdog's mutex is free.
func (c *Client) rise(s *seat) {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	c.leave(s)
}

// leave undoes sit, for a call or a hold. The watchdog's mutex is held.
func (c *Client) leave(s *seat) {
	if s.users--; s.users == 0 {
		delete(c.seats, s.key)
	}
}

// held tells whether the owner holds the lock. The watchdog's mutex is held.
func (s *seat) held() bool { return s.claim != nil && len(s.claim.holds) > 0 }

// pass gives the turn to the owner's next call.
func (s *seat) pass() { s.turn <- struct{}{} }

// claim is one stay of an owner at a lock, from the first hold to the last: one field in one hash in Redis. All that can
// change is guarded by the watchdog's mutex.
type claim struct {
	name   string // of the lock, as mapped
	holder string // the hash field
	seat   *seat

	holds   []*hold       // live ones, oldest first
	until   time.Time     // when the claim must be taken for lost; the key in Redis lives longer
	renewAt time.Time     // when to renew next, if a hold wants it
	epoch   int           // counts the scripts that may have shortened the lease; an older renewal says nothing about it
	stray   time.Duration // the shortest lease of such a script that was not answered and may still arrive; 0: none
	doubt   bool          // an attempt to take the lock was not answered, and may still arrive
	longest time.Duration // of the leases with which it was tried
	lastErr error         // of a renewal
	index   int           // in the watchdog's heap; -1 when not there

	// Once nobody holds, what may be left in Redis is removed: from renewAt until until, and not believed to be gone
	// before sure.
	undo   bool
	sure   time.Time
	undone chan struct{} // closed with the first answer
}

// hold is one successful Acquire: a count of the claim.
type hold struct {
	c      *Client
	claim  *claim
	ctx    context.Context
	cancel context.CancelCauseFunc
	since  time.Time
	lease  time.Duration // 0: renewed
	ends   time.Time     // for the work, with its own lease or MaxHold, whatever the claim does; zero: never
	most   time.Duration // MaxHold, if that is what sets ends; else 0
	state  holdState
	cause  error // why it was lost
}

type holdState int

const (
	held holdState = iota
	lost
	released
)

// holdKey finds in a context the innermost hold of a lock.
type holdKey struct {
	c    *Client
	name string
}

// margin is the part of a lease that is given away for the safety of the rest: the holder counts its lease as over by
// that much earlier than Redis does. It covers the drift between the two clocks and the time that a timer, a scheduler
// and the guarded work need to take notice.
func margin(lease time.Duration) time.Duration { return min(lease/20, time.Second) }

// goodFor is how long a lease that was asked for at a time may be relied on from then on.
func goodFor(lease time.Duration) time.Duration { return lease - margin(lease) }

// wantsRenewal tells whether a live hold has no lease of its own.
func (cl *claim) wantsRenewal() bool {
	return slices.ContainsFunc(cl.holds, func(h *hold) bool { return h.lease == 0 })
}

// leaseFor is the lease that Redis is to have for these holds, oldest first: the watchdog's while one of them is renewed,
// and otherwise the last one asked for, which is Redisson's rule and may shorten it.
func leaseFor(holds []*hold, watchdogTimeout time.Duration) time.Duration {
	lease := watchdogTimeout
	for _, h := range holds {
		if h.lease == 0 {
			return watchdogTimeout
		}
		lease = h.lease
	}
	return lease
}

// undo has the watchdog remove what cl, which nobody holds, may have in Redis. After Close it is tried once. The watchdog's
// mutex is held.
func (c *Client) undo(cl *claim) {
	if c.watchdog.closed == nil {
		c.watchdog.remove(cl, time.Now())
		return
	}
	cl.undone = make(chan struct{})
	done := cl.undone
	c.start(func() {
		defer close(done)
		c.ask(context.Background(), cl.release(0, 0), func(answer) {})
	})
}

// reliable is how much of a lease counts when an unanswered script with a shorter one may still arrive.
func (cl *claim) reliable(lease time.Duration) time.Duration {
	if cl.stray > 0 {
		return min(lease, cl.stray)
	}
	return lease
}

// setting is a script under way that sets the lease of a claim and may shorten it. A renewal never does.
type setting struct {
	claim  *claim
	lease  time.Duration
	before time.Time // cl.until
}

// set notes that such a script is about to be sent.
func (cl *claim) set(lease time.Duration) setting {
	s := setting{cl, lease, cl.until}
	cl.epoch++
	cl.until = earlier(cl.until, time.Now().Add(goodFor(lease)))
	return s
}

// answered notes what became of it.
func (s setting) answered(w *watchdog, a answer) []loss {
	cl := s.claim
	cl.epoch++
	switch {
	case a.late || a.err != nil && a.inDoubt:
		cl.stray = cl.reliable(s.lease)
		cl.renewAt = time.Now() // which makes sure of the lease, if the claim is renewed
	case a.err != nil: // it did not run
		cl.until = later(cl.until, s.before)
	case a.values[0] == 0:
		return cl.lose(time.Now(), errGone)
	default:
		cl.until = a.sent.Add(goodFor(cl.reliable(s.lease)))
		cl.renewAt = w.renewalDue(a.sent, cl.reliable(s.lease))
	}
	return nil
}

// acquire is the call that takes the lock, or sets the count of a lock that cl has.
func (cl *claim) acquire(lease time.Duration, count int) call {
	return call{acquireScript(), []string{cl.name}, []any{cl.holder, millis(lease), count}}
}

// release is the call that leaves cl with the given count; the lease matters only above 0.
func (cl *claim) release(count int, lease time.Duration) call {
	return call{releaseScript(), []string{cl.name}, []any{cl.holder, count, millis(lease), lockChannel(cl.name)}}
}

// renew is the call that makes the lease at least as long as given.
func (cl *claim) renew(lease time.Duration) call {
	return call{renewScript(), []string{cl.name}, []any{cl.holder, millis(lease)}}
}

// millis rounds up, so that a lease in Redis is never shorter than the one counted here.
func millis(d time.Duration) string {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10)
}

// holderOf returns the hash field under which the owner in ctx holds the lock now.
func (c *Client) holderOf(ctx context.Context, name string) (holder string, ok bool) {
	h, ok := ctx.Value(holdKey{c, name}).(*hold)
	if !ok {
		return "", false
	}
	return h.claim.holder, true
}
