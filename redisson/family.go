package redisson

import (
	"math"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// family is what makes one sort of lock: its scripts. It sees only those fields of a holder that never
// change.
//
// The scripts enter and update answer {1, the lease that they left, a fencing token or 0}. No script of ours shortens a
// lease that others rely on, so these answers stay true whatever arrives late or twice; the one exception says so.
type family interface {
	// enter takes the lock for a new holder, with a count of one.
	enter(ho *holder, lease time.Duration) call
	// update sets the counts of a holder that has the lock, and makes its lease at least so long.
	update(ho *holder, c counts, lease time.Duration, why change) call
	// exit takes the holder away, also out of any queue. An successor who is named keeps the lock for a while.
	exit(ho *holder, successor string, kept time.Duration) call
}

// handsOver reports whether the locks of f can pass from one hold to the next one of the same client without being free in between: the
// holder stays in Redis, and another call has it.
func handsOver(f family) bool {
	_, ok := f.(plain)
	return ok
}

// counts is how many holds a holder has, and how many of them are of a kind that matters to its family.
type counts struct {
	all, reads, writes, fenced int
	added                      time.Duration // the lease of a re-entry
}

func (c *counts) add(k lock.Kind) {
	c.all++
	switch k {
	case lock.Read:
		c.reads++
	case lock.Write:
		c.writes++
	case lock.Fenced:
		c.fenced++
	}
}

// change is why counts are updated.
type change uint8

const (
	renewal    change = iota // or release of a part, or the lock passes on
	reentry                  // a writer's lease is added
	fencing                  // another fenced hold, a re-entry or the next one: the token is counted up
	shortening               // release of a part of the writing: the lease is cut
)

// familyOf returns the family that serves a kind, and nil if there is none.
func (c *Client) familyOf(k lock.Kind) family {
	switch k {
	case lock.Exclusive, lock.Fenced, lock.Spin:
		return plain{c.tokenTTL}
	case lock.Fair:
		return fair{plain{c.tokenTTL}}
	case lock.Read, lock.Write:
		return readWrite{}
	case lock.Permit:
		return onlyPermit
	}
	return nil
}

// plain is Redisson's re-entrant lock. A fenced one counts up a token with each acquire, and the waiters of a spin lock poll, as it sends no
// messages.
type plain struct {
	tokenTTL time.Duration // see FencingTokenTTL
}

func (p plain) enter(ho *holder, lease time.Duration) call {
	cl := call{Script: lockAcquire, Keys: ho.keys[:], Args: []any{ho.id, millis(lease)}}
	if ho.kind == lock.Fenced {
		cl.Keys, cl.Args = append(cl.Keys, tokenKey(ho.name())), append(cl.Args, millis(p.tokenTTL))
	}
	return cl
}

// update also keeps the counter of a fenced hold alive: the hold may last longer than counters are kept.
func (p plain) update(ho *holder, c counts, lease time.Duration, why change) call {
	cl := call{Script: lockUpdate, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), c.all}}
	if c.fenced > 0 && (why == fencing || p.tokenTTL > 0) {
		cl.Keys, cl.Args = append(cl.Keys, tokenKey(ho.name())), append(cl.Args, millis(p.tokenTTL), why == fencing)
	}
	return cl
}

func (plain) exit(ho *holder, successor string, kept time.Duration) call {
	cl := call{Script: lockRelease, Keys: ho.keys[:], Args: []any{ho.id, ho.queueID().channel(), successor, millis(kept)}}
	if ho.kind != lock.Spin {
		cl.Keys, cl.Spare = append(cl.Keys, wakeName(ho.name())), 1
	}
	return cl
}

// duration is a number of milliseconds that Redis has answered. What is longer than a Duration can be is as good as that.
func duration(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// millis is a time as an argument. It rounds up, so that a lease in Redis is never shorter than the one counted here.
func millis(d time.Duration) any {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return int64(ms)
}
