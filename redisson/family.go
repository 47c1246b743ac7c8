package redisson

import (
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// family is what makes one sort of lock out of claims: its scripts, its channel, and how it is waited for. Its scripts set
// counts to what they are to be, and so are safe to repeat.
type family interface {
	// enter takes the lock for the first hold of a claim, h, or adds h to the claim's.
	enter(cl *claim, h *hold, lease time.Duration) call
	// exit leaves the claim with the holds that it still has. With none it also takes the claim out of any queue.
	exit(cl *claim, lease time.Duration) call
	// renew makes the lease of the claim at least as long as given.
	renew(cl *claim, lease time.Duration) call
	// force frees the lock called name whoever holds it.
	force(name string, kind lock.Kind) call
	// channel is where a waiter hears that the lock may be free; "" means nowhere.
	channel(cl *claim) string
}

// familyOf returns the family that serves a kind, and nil if there is none.
func (c *Client) familyOf(k lock.Kind) family {
	switch k {
	case lock.Exclusive:
		return plain{}
	case lock.Fenced:
		return fenced{}
	case lock.Spin:
		return spin{}
	case lock.Fair:
		return fair{}
	case lock.Read, lock.Write:
		return readWrite{}
	case lock.Permit:
		return permit{}
	}
	return nil
}

// plain is Redisson's re-entrant lock.
type plain struct{}

func (plain) enter(cl *claim, _ *hold, lease time.Duration) call {
	return call{acquireScript(), []string{cl.name}, []any{cl.holder, millis(lease), len(cl.holds) + 1}}
}

func (p plain) exit(cl *claim, lease time.Duration) call {
	return exitTo(cl, lease, p.channel(cl))
}

func exitTo(cl *claim, lease time.Duration, channel string) call {
	return call{releaseScript(), []string{cl.name}, []any{cl.holder, len(cl.holds), millis(lease), channel}}
}

func (plain) renew(cl *claim, lease time.Duration) call {
	return call{renewScript(), []string{cl.name}, []any{cl.holder, millis(lease)}}
}

func (plain) force(name string, _ lock.Kind) call {
	return call{forceScript(), []string{name}, []any{lockChannel(name)}}
}

func (plain) channel(cl *claim) string { return lockChannel(cl.name) }

// fenced is plain, and counts up a token with each acquire.
type fenced struct{ plain }

func (f fenced) enter(cl *claim, h *hold, lease time.Duration) call {
	c := f.plain.enter(cl, h, lease)
	c.keys = append(c.keys, tokenKey(cl.name))
	return c
}

// spin is plain without messages: its waiters poll.
type spin struct{ plain }

func (spin) exit(cl *claim, lease time.Duration) call { return exitTo(cl, lease, "") }

func (spin) force(name string, _ lock.Kind) call {
	return call{forceScript(), []string{name}, []any{""}}
}

func (spin) channel(*claim) string { return "" }

// millis rounds up, so that a lease in Redis is never shorter than the one counted here.
func millis(d time.Duration) string {
	ms := d / time.Millisecond
	if d%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(int64(ms), 10)
}
