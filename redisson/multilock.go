package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// How long a MultiLock that has some of its locks stays for the others: a random time from one to two of these, which
// double with each attempt, so that two of them that hold what the other one wants do not give up in step for ever.
const (
	firstPatience = 16 * time.Millisecond
	mostPatience  = 1600 * time.Millisecond
)

// Member is a part of a MultiLock or a RedLock: a *Lock of any kind, a *FencedLock, or a *MultiLock, which stands for
// its locks.
type Member interface {
	members() []*Lock
}

func (l *Lock) members() []*Lock { return []*Lock{l} }

func (m *MultiLock) members() []*Lock { return m.locks }

// compare orders the locks of all programs alike, but for those of one name on several servers, which only have an
// order within a program. The write side of a read/write lock comes first: a writer may read, and a reader can't become
// a writer.
func (l *Lock) compare(o *Lock) int {
	return cmp.Or(cmp.Compare(l.key, o.key), cmp.Compare(o.kind, l.kind), cmp.Compare(l.c.id, o.c.id))
}

// same reports whether both are one lock in Redis, of whatever kinds.
func (l *Lock) same(o *Lock) bool { return l.c == o.c && l.key == o.key }

// gather returns the locks of all members in order, and a text that is the same for the same locks.
func gather(all []Member) (sorted []*Lock, text string, err error) {
	for _, m := range all {
		if m == nil || reflect.ValueOf(m).IsNil() {
			return nil, "", errors.New("redisson: one of the locks is nil")
		}
		sorted = append(sorted, m.members()...)
	}
	slices.SortStableFunc(sorted, (*Lock).compare)
	var b strings.Builder
	for _, l := range sorted {
		fmt.Fprintf(&b, "%s %v %q\n", l.c.id, l.kind, l.key)
	}
	return sorted, b.String(), nil
}

// MultiLock is Redisson's RedissonMultiLock: several locks that are held together or not at all. They can be locks of
// several clients, on several servers. Like a Lock it is free to make and safe for concurrent use, and has its owner in
// the context; it has nothing of its own in Redis.
//
// The locks are taken in the order of their names, whatever the order in which they were given, so that two MultiLocks
// of one program do not wait for each other. Free locks of one client are taken together. If a lock does not become
// free soon, those that are held already are given back, and the next attempt begins with waiting for that lock, or for
// its server, holding none: neither the peers in Redisson, which take locks in the order of a list, nor programs whose
// clients have another order can cause a deadlock.
//
// A lock that is given more than once is taken as often, by re-entry. A MultiLock of both sides of a read/write lock
// takes both. Two locks of one name in two clients on one server exclude each other, so that nobody can hold both.
type MultiLock struct {
	locks []*Lock // sorted
	key   multiKey
}

// multiKey finds in a context the innermost hold of a MultiLock.
type multiKey string

// NewMultiLock returns the lock of all locks given. It is an error to give none, or a nil.
func NewMultiLock(locks ...Member) (*MultiLock, error) {
	if len(locks) == 0 {
		return nil, errors.New("redisson: a MultiLock of no locks")
	}
	sorted, text, err := gather(locks)
	if err != nil {
		return nil, err
	}
	return &MultiLock{locks: sorted, key: multiKey(text)}, nil
}

// Lock takes all locks, waiting as long as ctx, and has them renewed until Unlock. The context that it returns derives
// from ctx and ends with a cause that matches lock.ErrLost before anybody else can have any of the locks. The error is
// the cause of ctx, or says why one of the servers did not answer; nothing is held then.
//
// Unlock is needed after a loss, too: the other locks are still held.
func (m *MultiLock) Lock(ctx context.Context) (held context.Context, err error) {
	return heldBy(m.acquire(ctx, lock.Request{Wait: forever}))
}

// TryLock takes all locks if they are free together within wait; a wait of 0 or less tries each once. A lease above 0
// ends the hold by itself after that time, counted from when the first of the locks was taken; the others are waited
// for no longer than a tenth of it. Otherwise the locks are renewed until Unlock. ok reports whether all are held;
// where none are, held is nil, and err too unless ctx ended, or a server refused or did not answer. A reader that wants
// to write does not get the lock, either.
func (m *MultiLock) TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error) {
	return triedBy(m.acquire(ctx, lock.Request{Wait: max(wait, 0), Lease: max(lease, 0)}))
}

// Unlock gives back all locks of the hold that returned the context held, or else of the innermost one around it, whether
// or not one of them fails. It works on a context that has ended, and asks all servers at once, so that it takes no longer
// than the slowest of them. The error joins those of the single locks, and matches lock.ErrLost when any of them was no
// longer held; it is lock.ErrNotHeld when held is under no hold of these locks or that hold was given back before.
func (m *MultiLock) Unlock(held context.Context) error {
	h, ok := held.Value(m.key).(*attempt)
	if !ok {
		return errNoHold
	}
	return releaseAll(context.WithoutCancel(held), h.parts)
}

// acquire makes attempts until one succeeds or the wait is over.
func (m *MultiLock) acquire(ctx context.Context, r lock.Request) (*attempt, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	deadline, locks, alone := time.Now().Add(r.Wait), m.locks, 0
	for patience := firstPatience; ; patience = min(2*patience, mostPatience) {
		try := &attempt{ctx: ctx, lease: r.Lease, deadline: deadline, patience: patience + jitter(patience)}
		if r.Lease > 0 {
			try.patience = min(try.patience, r.Lease/10)
		}
		stuck, err := try.take(m.key, locks, alone)
		if err == nil {
			return try, nil
		}
		withdraw(ctx, try.parts)
		passes := errors.Is(err, lock.ErrBusy) && !errors.Is(err, ErrTooManyWaiters) || errors.Is(err, lock.ErrLost) ||
			stuck != locks[0] && !lasting(err) // an outage only if that lock was waited for as long as any
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !passes, !time.Now().Before(deadline):
			return nil, err
		}
		lead := slices.IndexFunc(m.locks, stuck.same)
		locks, alone = slices.Concat(m.locks[lead:lead+1], m.locks[:lead], m.locks[lead+1:]), 1
	}
}

// attempt is one try to take locks, and the hold of all of them if it succeeds. Each is taken under the context of those before, so that the last
// context ends when any of them is lost.
type attempt struct {
	ctx      context.Context // of the last lock, or the caller's
	lease    time.Duration
	deadline time.Time     // of the whole wait
	patience time.Duration // for the others, once the first is held
	parts    []lock.Hold
	leave    []func() // to give back reserved locks that are left over
}

// Context is the context of the hold.
func (a *attempt) Context() context.Context { return a.ctx }

// take takes locks, and returns the one that it could not take, with the reason; it holds those before it. It takes all
// free ones together. With an alone of 1, it first waits for the first lock without holding anything. That lock may be
// out of order, and then take waits only for a moment for those that belong before it. So only a caller that keeps to
// the order waits for long while holding something, and many contenders do not go on giving up for each other. The last
// context leads to a by key.
func (a *attempt) take(key multiKey, locks []*Lock, alone int) (stuck *Lock, err error) {
	defer func() {
		for _, leave := range a.leave {
			leave()
		}
	}()
	end := a.deadline
	for i, l := range locks {
		if i == alone {
			if stuck, err = a.reserve(locks[i:], max(time.Until(end), 0)); err != nil {
				return stuck, err
			}
		}
		wait := max(time.Until(end), 0)
		if l.compare(locks[0]) < 0 {
			wait = min(wait, firstPatience)
		}
		h, err := l.acquire(a.ctx, lock.Request{Wait: wait, Lease: a.lease})
		if err != nil {
			return l, err
		}
		if a.ctx, a.parts = h.Context(), append(a.parts, h); i == 0 {
			end = transport.Earlier(a.deadline, time.Now().Add(a.patience))
		}
	}
	a.ctx = context.WithValue(a.ctx, key, a)
	return nil, nil
}

// reserve takes those locks together that are free at once, for each client that has several. An error is about the
// lock stuck.
func (a *attempt) reserve(locks []*Lock, wait time.Duration) (stuck *Lock, err error) {
	requests := map[*Client][]lock.Request{}
	for _, l := range locks {
		requests[l.c] = append(requests[l.c], lock.Request{Key: l.name, Kind: l.kind, Wait: wait, Lease: a.lease})
	}
	for _, l := range locks {
		if rs := requests[l.c]; len(rs) > 1 {
			ctx, _, leave, err := l.c.Reserve(a.ctx, rs)
			a.ctx, a.leave = ctx, append(a.leave, leave) //nolint:fatcontext // one for each client
			if err != nil {
				return l, err
			}
		}
		delete(requests, l.c)
	}
	return nil, nil
}

// withdraw gives back locks that were taken in vain, and waits for that for a moment if the caller can.
func withdraw(ctx context.Context, parts []lock.Hold) {
	moment, cancel := context.WithTimeout(ctx, leaveInterval)
	defer cancel()
	_ = releaseAll(moment, parts) // the watchdog sees to the rest
}
