package redisson

import (
	"context"

	"github.com/latchkey-go/latchkey/lock"
)

// FencedLock is Redisson's RFencedLock: a Lock that numbers its acquires. The number, a fencing token, goes along with the
// work to the resource, which refuses tokens that are smaller than the last one it has seen; so a holder that lost the lock
// without noticing can't overwrite what the next one did. It has all methods of Lock.
//
// As Redisson has it, Redis keeps the counter for ever, under a key of its own for each name that was ever locked. That makes
// tokens safe, but where names are made from requests the keys add up: one site found 25 million of them. [FencingTokenTTL] lets
// them go.
type FencedLock struct{ base }

// base is Lock under a name that does not hide its method of that name.
type base = Lock

// FencedLock returns the fenced lock of that name.
func (c *Client) FencedLock(name string) *FencedLock {
	return &FencedLock{*c.newLock(name, lock.Fenced)}
}

// Token returns the token of the innermost hold of this lock in the context held, and false if there is none.
func (l *FencedLock) Token(held context.Context) (token int64, ok bool) {
	h, ok := held.Value(holdOf{&l.base}).(*hold)
	if !ok {
		return 0, false
	}
	return h.token, true
}

// LastToken returns the token that was given out last, to whomever; 0 if there was none. It proves nothing about holding
// the lock.
func (l *FencedLock) LastToken(ctx context.Context) (int64, error) {
	return l.c.number(ctx, l.name, tokenKey(l.key))
}

// fencedHold is a hold with a token to ask for.
type fencedHold struct{ *hold }

// Token returns the fencing token of the hold.
func (h fencedHold) Token() int64 { return h.token }

// number reads a number of the object of that name from Redis; 0 if there is none.
func (c *Client) number(ctx context.Context, name, key string) (int64, error) {
	a := c.queryNamed(ctx, name, call{Script: number, Keys: []string{key}, Args: nil})
	if a.Err != nil {
		return 0, a.Err
	}
	return a.Values[0], nil
}
