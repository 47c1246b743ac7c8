package redisson

import (
	"context"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// ErrTooLate is the error of an Acquire whose lease was over before it was answered.
var ErrTooLate = errTooLate

// ErrGone is the reason of a loss that a force unlock explains, and nothing else does.
var ErrGone = errGone

// DigestOfPermitsRelease is in each request that gives permits of an expirable semaphore back, or undoes an acquire.
var DigestOfPermitsRelease = permitsRelease.SHA

// Prompt has a call that does not wait stay for an answer of Redis for as long as it does by default, and Patient four times as long, as
// tests need beside other work that are not about that.
var Prompt, Patient Option = optionFunc(func(s *settings) { s.answers = answerInterval }), optionFunc(func(s *settings) { s.answers = 4 * answerInterval })

// Callers is how many calls of c ask for a lock without standing in its local queue, or stand in it.
func Callers(c *Client, name string) (n int) {
	c.queues.mu.Lock()
	defer c.queues.mu.Unlock()
	for id := range c.queues.asking {
		if id.name == name {
			n++
		}
	}
	for id, ln := range c.queues.byID {
		for range ln.places.All() {
			if id.name == name {
				n++
			}
		}
	}
	return n
}

// HolderID is what Redis calls the holder of the innermost hold in ctx, also of one that has ended.
func HolderID(ctx context.Context, c *Client, name string, kind lock.Kind) string {
	h, ok := ctx.Value(holdOf{c.newLock(name, kind)}).(*hold)
	if !ok {
		return ""
	}
	return h.holder.id
}

// PermitID is what Redis calls a permit, in the semaphore of each of its levels.
func PermitID(h lock.Hold) string { return h.(*hold).holder.id }

// ReservedIDs are what Redis calls the holders that a reservation above ctx has, by the name of the lock.
func ReservedIDs(ctx context.Context, c *Client) map[string]string {
	ids := map[string]string{}
	if res, ok := ctx.Value(reservationKey{c}).(*reservation); ok {
		for _, one := range res.parts {
			ids[one.ho.name()] = one.ho.id
		}
	}
	return ids
}

// PartIDs are what the servers call the holders of the innermost hold of r in ctx.
func PartIDs(ctx context.Context, r *RedLock) (ids []string) {
	h, ok := ctx.Value(r.key).(*redHold)
	if !ok {
		return nil
	}
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, p := range h.parts {
		ids = append(ids, p.(interface{ inner() *hold }).inner().holder.id)
	}
	return ids
}

// Left is for how long the client relies on the lease of the innermost hold in ctx.
func Left(ctx context.Context, c *Client, name string, kind lock.Kind) time.Duration {
	h, ok := ctx.Value(holdOf{c.newLock(name, kind)}).(*hold)
	if !ok {
		return 0
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return h.holder.validUntil.sub(present())
}

// Waiting returns how many calls MaxWaiters has counted, and of how many keys.
func Waiting(c *Client) (all, keys int) {
	c.waiters.mu.Lock()
	defer c.waiters.mu.Unlock()
	return c.waiters.all, len(c.waiters.ofKey)
}

// Matches is what a search uses for keys that are made from a name.
func Matches(pattern, text string) bool { return matches(pattern, text) }

// Listens reports whether the client listens on its own channel, or is about to.
func Listens(c *Client) bool { return c.listener.open.Load() }

// Hears reports whether the client is told of locks that are freed by hand, and has asked about what it had missed.
func Hears(c *Client) bool {
	_, live := c.subscriber.Changed(clientName(c.id))
	s := c.registry
	s.mu.Lock()
	defer s.mu.Unlock()
	for ho := range s.holders.all() {
		live = live && !ho.outdated
	}
	return live && c.listener.asked.Load() > 0
}

// Twin makes a client that has done nothing yet go on from the memory image of another, as a clone of its process would.
func Twin(c, of *Client) {
	c.id = of.id
	c.holders.Store(of.holders.Load())
	of.receipts.mu.Lock()
	defer of.receipts.mu.Unlock()
	c.receipts.last, c.receipts.slots, c.receipts.free = of.receipts.last, of.receipts.slots, slices.Clone(of.receipts.free)
}
