package redisson

import (
	"context"
	"errors"
	"slices"
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
// goroutines; a seat lasts while there is a call or a hold.
type seat struct {
	key   seatKey
	turn  chan struct{} // holds one token while nobody has the turn
	users int           // calls in progress and live holds, guarded by Client.seatsMu
	claim *claim        // the last one; it may have ended; guarded by the watchdog's mutex
}

type seatKey struct {
	name  string
	owner lock.Owner
}

func (c *Client) sit(key seatKey) *seat {
	c.seatsMu.Lock()
	defer c.seatsMu.Unlock()
	s := c.seats[key]
	if s == nil {
		s = &seat{key: key, turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		c.seats[key] = s
	}
	s.users++
	return s
}

func (c *Client) rise(s *seat) {
	c.seatsMu.Lock()
	defer c.seatsMu.Unlock()
	if s.users--; s.users == 0 {
		delete(c.seats, s.key)
	}
}

// holding tells whether the owner holds the lock.
func (c *Client) holding(s *seat) bool {
	c.watchdog.mu.Lock()
	defer c.watchdog.mu.Unlock()
	return s.claim != nil && len(s.claim.holds) > 0
}

// claim is one stay of an owner at a lock, from the first hold to the last: one field in one hash in Redis. All that can
// change is guarded by the watchdog's mutex.
type claim struct {
	name   string // of the lock, as mapped
	holder string // the hash field
	seat   *seat

	holds    []*hold   // live ones, oldest first
	until    time.Time // when the claim must be taken for lost; the key in Redis lives longer
	renewAt  time.Time // when to renew next, if a hold wants it
	settings int       // scripts under way that set the lease: no renewal meanwhile
	epoch    int       // counts these scripts; a renewal that was sent in an earlier epoch says nothing about the lease
	undo     bool      // nobody holds, but the field may stand in Redis until then: to be removed
	undone   chan struct{}
	lastErr  error // of a renewal
	index    int   // in the watchdog's heap; -1 when not there
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
	bound  time.Time     // for the lock in Redis, with MaxHold; zero: never
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

// wantsRenewal tells whether a live hold has no lease of its own.
func (cl *claim) wantsRenewal() bool {
	return slices.ContainsFunc(cl.holds, func(h *hold) bool { return h.lease == 0 })
}

// leaseAfter is the lease that Redis is to have when the holds in rest are what remains: Redisson takes the last one
// asked for.
func leaseAfter(rest []*hold, watchdogTimeout time.Duration) time.Duration {
	for _, h := range slices.Backward(rest) {
		if h.lease > 0 {
			return h.lease
		}
		break
	}
	return watchdogTimeout
}

// renewalLease is how long a renewal that is sent now may make the lock last: no longer than the last MaxHold of its
// renewed holds.
func (cl *claim) renewalLease(now time.Time, watchdogTimeout time.Duration) time.Duration {
	var most time.Duration
	for _, h := range cl.holds {
		switch {
		case h.lease > 0:
		case h.bound.IsZero():
			return watchdogTimeout
		default:
			most = max(most, h.bound.Sub(now))
		}
	}
	return min(most, watchdogTimeout)
}

// end takes h out of its claim with the given state. The caller cancels the context outside of the mutex.
func (h *hold) end(s holdState) {
	h.state = s
	h.claim.holds = slices.DeleteFunc(h.claim.holds, func(o *hold) bool { return o == h })
}

// holderOf returns the hash field under which the owner in ctx holds the lock now.
func (c *Client) holderOf(ctx context.Context, name string) (holder string, ok bool) {
	h, ok := ctx.Value(holdKey{c, name}).(*hold)
	if !ok {
		return "", false
	}
	return h.claim.holder, true
}
