package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// Lock is Redisson's RLock: a re-entrant lock. It is only a name, a kind and a client, free to make and safe for concurrent
// use.
//
// Its methods take and return contexts, which say who holds what: the context that Lock and TryLock return is the one to
// work under, to lock again under, and to give to Unlock. Where a function fits, [Lock.Do] is shorter and can't be misused.
type Lock struct {
	named
	kind lock.Kind
	// nonReentrant refuses a call under a hold of the lock.
	nonReentrant bool
}

// Lock returns the lock of that name, Redisson's getLock: for one owner at a time. An empty name is refused by the lock's
// methods. Locks of different kinds must not share a name.
func (c *Client) Lock(name string) *Lock { return c.newLock(name, lock.Exclusive) }

// SpinLock returns the spin lock of that name, Redisson's getSpinLock: a Lock whose waiters poll, with growing pauses, in
// place of listening for a message that its release does not send. See SpinBackoff.
func (c *Client) SpinLock(name string) *Lock { return c.newLock(name, lock.Spin) }

// NonReentrantLock returns the lock of that name, Redisson's getNonReentrantLock: a Lock that refuses a call under a hold of it
// with an error that matches lock.ErrUnsupported.
func (c *Client) NonReentrantLock(name string) *Lock { return c.Lock(name).once() }

// NonReentrantFairLock is to FairLock what NonReentrantLock is to Lock.
func (c *Client) NonReentrantFairLock(name string) *Lock { return c.FairLock(name).once() }

// once makes a new lock refuse re-entries.
func (l *Lock) once() *Lock {
	l.nonReentrant = true
	return l
}

func (c *Client) newLock(name string, kind lock.Kind) *Lock {
	return &Lock{named: c.named(name), kind: kind}
}

// Lock takes the lock, waiting as long as ctx, and has it renewed until Unlock. The context that it returns derives
// from ctx and ends with a cause that matches lock.ErrLost before anybody else can have the lock. The error is the
// cause of ctx, or says why Redis did not answer; it matches lock.ErrUnsupported for a reader that wants to write, and
// for a name that another sort of lock has.
func (l *Lock) Lock(ctx context.Context) (held context.Context, err error) {
	return l.LockFor(ctx, 0)
}

// LockFor is Lock with a lease: a hold that ends by itself after that time. A lease of 0 or less is Lock.
func (l *Lock) LockFor(ctx context.Context, lease time.Duration) (held context.Context, err error) {
	return heldBy(l.acquire(ctx, lock.Request{Wait: -1, Lease: max(lease, 0)}))
}

// TryLock takes the lock if it becomes free within wait; a wait of 0 or less tries once. A lease above 0 ends the hold
// by itself after that time; otherwise it is renewed until Unlock. ok reports whether the lock is held. Where it is
// not, held is nil, and err too unless ctx ended or Redis did not answer. A reader that wants to write does not get the
// lock, either.
func (l *Lock) TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error) {
	return triedBy(l.acquire(ctx, lock.Request{Wait: max(wait, 0), Lease: max(lease, 0)}))
}

// heldBy is the result of a Lock.
func heldBy(h interface{ Context() context.Context }, err error) (context.Context, error) {
	if err != nil {
		return nil, err
	}
	return h.Context(), nil
}

// triedBy is the result of a TryLock.
func triedBy(h interface{ Context() context.Context }, err error) (held context.Context, ok bool, _ error) {
	held, err = heldBy(h, err)
	return held, err == nil, unlessBusy(err)
}

// unlessBusy is the error of a TryLock that has failed with err: none if others have the lock, or if a reader wants to
// write.
func unlessBusy(err error) error {
	kinds, _ := errors.AsType[*lock.KindError](err)
	if errors.Is(err, lock.ErrBusy) || kinds != nil && kinds.Held == lock.Read && kinds.Wanted == lock.Write {
		return nil
	}
	return err
}

// Do takes the lock like Lock, calls f with the context of the hold, and gives the lock back, also if f panics. The error
// joins those of f and of Unlock.
func (l *Lock) Do(ctx context.Context, f func(held context.Context) error) (err error) {
	h, err := l.acquire(ctx, lock.Request{Wait: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Release(context.WithoutCancel(ctx))) }()
	return f(h.Context())
}

func (l *Lock) acquire(ctx context.Context, r lock.Request) (lock.Hold, error) {
	r.Key, r.Kind = l.name, l.kind
	return l.c.acquire(ctx, r, !l.nonReentrant, time.Now())
}

// Unlock gives back the hold that returned the context held, or else the innermost one around it, with which the contexts of
// the holds inside end, too. It works on a context that has ended, and takes no longer than the client's timeout. The error
// matches lock.ErrNotHeld when held is under no hold of this lock or that hold was given back before, and lock.ErrLost when
// the lock was no longer held.
func (l *Lock) Unlock(held context.Context) error {
	return l.with(held, func(h *hold) error { return h.Release(context.Background()) }) // nothing else of held matters to it
}

// Keep is Unlock, except that nobody gets the lock for another d: for work that is done once an interval.
func (l *Lock) Keep(held context.Context, d time.Duration) error {
	return l.with(held, func(h *hold) error { return h.Keep(context.WithoutCancel(held), d) })
}

// Extend gives the hold that returned the context held another d from now on, if its lease would end sooner. One that is
// renewed does not need that. The errors are those of Unlock, or say that Redis did not answer.
func (l *Lock) Extend(held context.Context, d time.Duration) error {
	return l.with(held, func(h *hold) error { return h.Extend(context.WithoutCancel(held), d) })
}

// errNoHold is the error of a release under a context without the hold.
var errNoHold = fmt.Errorf("%w: the context is under no hold of this lock; pass the one that Lock returned", lock.ErrNotHeld)

// with calls f with the hold of the lock that the context held is under.
func (l *Lock) with(held context.Context, f func(h *hold) error) error {
	h, ok := held.Value(holdOf{l}).(*hold)
	if !ok {
		return errNoHold
	}
	return f(h)
}

// ForceUnlock frees the lock, whoever holds it, and wakes a waiter. It reports whether there was anything to free; one side
// of a read/write lock leaves the other one alone. It is a tool for repairs. The contexts of the holds of this package end with
// [ErrForced], those of other processes within a moment, or when they next renew if Redis can't tell them; Redisson's holders find
// out when they renew. It frees once and no more, as [Client.ForceUnlock] does.
func (l *Lock) ForceUnlock(ctx context.Context) (bool, error) {
	if err := l.c.checkName(l.name); err != nil {
		return false, err
	}
	keys := []string{l.key, wakeName(l.key)}
	switch l.kind {
	case lock.Read, lock.Write, lock.Spin:
		keys = keys[:1]
	case lock.Fair:
		keys = fairKeys(l.key)
	}
	a, _ := l.c.force(ctx, l.kind.String(), keys, Freed{}, l.kind.Family())
	return a.Yes(), a.Err
}

// IsLocked reports whether anybody holds the lock: of a read/write lock, this side of it.
func (l *Lock) IsLocked(ctx context.Context) (bool, error) {
	a := l.state(ctx)
	return a.Yes(), a.Err
}

// TTL returns how long the lock lasts if it is not renewed. It is 0 when the lock is free, and negative for a lock
// without an end, which neither Redisson nor this package makes.
func (l *Lock) TTL(ctx context.Context) (time.Duration, error) {
	const free = -2
	a := l.state(ctx)
	if a.Err != nil || a.Values[1] == free {
		return 0, a.Err
	}
	return duration(a.Values[1]), nil
}

func (l *Lock) state(ctx context.Context) answer {
	side := ""
	if l.kind == lock.Read || l.kind == lock.Write {
		side = l.kind.String()
	}
	return l.c.queryNamed(ctx, l.name, call{Script: lockState, Keys: []string{l.key}, Args: []any{side}})
}

// HoldCount returns how many live holds of this lock are above ctx: how many times the call holds it. It does not ask Redis.
func (l *Lock) HoldCount(ctx context.Context) (n int) {
	for a := range lock.Ancestors(ctx) {
		if h := l.c.within(a, l.key); h != nil && h.kind == l.kind {
			n++
		}
	}
	return n
}

// checkName refuses a name that is empty, or in a cluster one whose key and derived names are in different slots.
func (c *Client) checkName(name string, derived ...string) error {
	return cmp.Or((lock.Request{Key: name}).Validate(), c.checkSlot(c.mapName(name), derived...))
}

// errCrossSlot refuses a name in a cluster, or where a map puts its keys at different servers.
var errCrossSlot = errors.New("redisson: the braces in this name put the lock and what belongs to it into different slots of the cluster")

// checkSlot refuses a name, as mapped, whose derived names are in other slots of the cluster than itself, or at other
// servers where there is a map and no cluster. It checks the names by Redisson's two rules, and those in derived, which
// follow neither.
func (c *Client) checkSlot(name string, derived ...string) error {
	if !c.topology.Mapped() {
		return nil
	}
	for _, d := range append(derived, prefixed("p", name), suffixed(name, "s")) {
		if pubsub.Slot(d) == pubsub.Slot(name) {
			continue
		}
		var err error
		if c.topology.Drawn {
			ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
			_, err = c.topology.Sharded(ctx) // what the servers are
			cancel()
		}
		switch {
		case err != nil:
			return fmt.Errorf("redisson: %w", err)
		case c.topology.Cluster() || c.topology.Master(d) != c.topology.Master(name):
			return fmt.Errorf("%w: an opening brace needs a closing one behind it, with something in between", errCrossSlot)
		}
	}
	return nil
}

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

// LastToken returns the token that was given out last, to any holder; 0 if there was none. It proves nothing about
// holding the lock.
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

// ReadWriteLock is Redisson's RReadWriteLock: any number of owners read, or one writes. It prefers nobody: readers pass a
// writer that waits. An owner that writes may also read and then stop writing, so that nobody writes in between; an owner
// that only reads is refused as a writer, since it would wait for itself.
//
// The context of a hold ends with its Unlock, and with it all that derive from it. To go on reading after writing, take
// both locks under one owner, side by side: see the example.
type ReadWriteLock struct {
	c    *Client
	name string
}

// ReadWriteLock returns the read/write lock of that name. An empty name is refused by the methods of its sides.
func (c *Client) ReadWriteLock(name string) *ReadWriteLock { return &ReadWriteLock{c, name} }

// ReadLock returns the side that readers share.
func (l *ReadWriteLock) ReadLock() *Lock { return l.c.newLock(l.name, lock.Read) }

// WriteLock returns the side that one owner has alone.
func (l *ReadWriteLock) WriteLock() *Lock { return l.c.newLock(l.name, lock.Write) }

// readWrite keeps a mode, and a count for each reader and for the writer, in the lock's hash; and for each reader a key that
// lives as long as its lease, from which a release learns how long the others read on. Redisson has such a key for each hold
// of a reader, and takes the longest; so the first one is enough.
type readWrite struct{}

func (readWrite) enter(ho *holder, lease time.Duration) call {
	s := readAcquire
	if ho.kind == lock.Write {
		s = writeAcquire
	}
	return call{Script: s, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), readTimeout(ho.name(), ho.id)}}
}

func (readWrite) update(ho *holder, c counts, lease time.Duration, why change) call {
	how := any("")
	switch why {
	case reentry:
		how = millis(c.added)
	case shortening:
		how = "cut"
	}
	return call{Script: rwUpdate, Keys: ho.keys[:], Args: []any{ho.id, millis(lease), c.reads, c.writes, how, readTimeout(ho.name(), ho.id)}}
}

func (readWrite) exit(ho *holder, successor string, kept time.Duration) call {
	return call{Script: rwRelease, Keys: ho.keys[:], Args: []any{ho.id, suffixBase(ho.name()), message(ho.kind), rwChannel(ho.name()), successor, millis(kept)}}
}

// message is the message at the end of a side: "1" wakes all waiters of a process, "0" one.
func message(k lock.Kind) string {
	if k == lock.Write {
		return "1"
	}
	return "0"
}
