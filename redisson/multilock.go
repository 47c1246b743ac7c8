package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// Member is what a MultiLock or a RedLock is made of: a *Lock of any kind, a *FencedLock, or a *MultiLock, which stands for its
// locks.
type Member interface {
	members() []*Lock
}

func (l *Lock) members() []*Lock { return []*Lock{l} }

func (m *MultiLock) members() []*Lock { return m.locks }

// compare orders the locks of all programs alike, but for those of one name on several servers, which only have an order within
// a program. Of a read/write lock, the side that writes comes first: a writer may read, and a reader can't become a writer.
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
// The locks are taken one after the other in the order of their names, whatever the order in which they were given, so
// that two MultiLocks of one program do not wait for each other. Where a lock can't be had soon, those that are held
// already are given back, and the next attempt begins with waiting for that lock, or for its server, holding none: neither the peers in
// Redisson, which take locks in the order of a list, nor programs whose clients have another order can cause a deadlock.
//
// A lock that is given more than once is taken as often, by re-entry, and both sides of a read/write lock are taken by who writes and
// reads. Two locks of one name in two clients on one server exclude each other, so that they can't be had together.
type MultiLock struct {
	locks []*Lock // sorted
	key   multiKey
}

// multiKey finds in a context the innermost hold of a MultiLock.
type multiKey string

type multiHold struct {
	ctx      context.Context
	parts    []lock.Hold
	released atomic.Bool
}

// Context is the context of the hold.
func (h *multiHold) Context() context.Context { return h.ctx }

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
// from ctx and ends with a cause that matches lock.ErrLost before anybody else can have any of the locks. The error is the
// cause of ctx, or says why one of the servers could not be asked; nothing is held then.
//
// Unlock is needed after a loss, too: the other locks are still held.
func (m *MultiLock) Lock(ctx context.Context) (held context.Context, err error) {
	return heldBy(m.acquire(ctx, lock.Request{Wait: -1}))
}

// TryLock takes all locks if they can be had together within wait; a wait of 0 or less tries each once. A lease above 0
// ends the hold by itself after that time, counted from when the first of the locks was taken; the others are waited for
// no longer than a tenth of it. Otherwise the locks are renewed until Unlock. ok reports whether all are held; where none
// are, held is nil, and err too unless ctx ended, or a server refused or could not be asked. A reader that wants to write can't have the
// lock, either.
func (m *MultiLock) TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error) {
	return triedBy(m.acquire(ctx, lock.Request{Wait: max(wait, 0), Lease: max(lease, 0)}))
}

// Unlock gives back all locks of the hold that returned the context held, or else of the innermost one around it, whether
// or not one of them fails. It works on a context that has ended, and asks all servers at once, so that it takes no longer
// than the slowest of them. The error joins those of the single locks, and matches lock.ErrLost when any of them was no
// longer held; it is lock.ErrNotHeld when held is under no hold of these locks or that hold was given back before.
func (m *MultiLock) Unlock(held context.Context) error {
	h, ok := held.Value(m.key).(*multiHold)
	if !ok {
		return errNoHold
	}
	if h.released.Swap(true) {
		return lock.ErrNotHeld
	}
	return giveBack(context.WithoutCancel(held), h.parts)
}

// acquire makes attempts until one succeeds or the wait is over.
func (m *MultiLock) acquire(ctx context.Context, r lock.Request) (*multiHold, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	start := time.Now()
	for lead, patience, first := 0, firstPatience, true; ; patience, first = min(2*patience, mostPatience), false {
		try := &attempt{ctx: ctx, under: ctx, request: r, start: start, patience: patience + m.locks[0].c.jitter(patience)}
		stuck, err := try.take(m.from(lead), lead, first)
		if err == nil {
			h := &multiHold{parts: try.parts}
			h.ctx = context.WithValue(try.under, m.key, h)
			return h, nil
		}
		if ctx.Err() != nil { // the caller has stayed for the answer of one member already
			m.locks[0].c.background(func() { _ = giveBack(context.Background(), try.parts) }) // as long as the clients' timeouts let it
			return nil, context.Cause(ctx)
		}
		try.giveBack()
		switch busy, _ := errors.AsType[*lock.BusyError](err); {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case busy == nil && !errors.Is(err, lock.ErrLost) && (stuck == 0 || lasting(err)), errors.Is(err, ErrTooManyWaiters):
			return nil, err // an outage only if that lock was waited for as long as any
		case r.Wait >= 0 && time.Since(start) >= r.Wait:
			if busy != nil {
				err = &lock.BusyError{Remaining: busy.Remaining, Waited: time.Since(start)}
			}
			return nil, err
		}
		lead = m.leadAt(m.indexFrom(lead, stuck))
	}
}

// leadAt returns the index of the member with which to begin in order to get the one at i: the first of the same lock.
func (m *MultiLock) leadAt(i int) int { return slices.IndexFunc(m.locks, m.locks[i].same) }

// from returns the members in order, but with the one at lead first.
func (m *MultiLock) from(lead int) []*Lock {
	return slices.Concat(m.locks[lead:lead+1], m.locks[:lead], m.locks[lead+1:])
}

// indexFrom returns the index of the member that is at i in from(lead).
func (m *MultiLock) indexFrom(lead, i int) int {
	switch {
	case i == 0:
		return lead
	case i <= lead:
		return i - 1
	}
	return i
}

// attempt is one try to take locks, each under the context of those before, so that the last context ends when any of them is lost.
type attempt struct {
	ctx      context.Context
	under    context.Context // of the last lock, or the caller's
	request  lock.Request
	start    time.Time     // of the whole wait
	patience time.Duration // for the others, once the first is held
	parts    []lock.Hold
}

// take returns the index of the lock that could not be had, with the reason. The locks before it are held. All that are free are taken together: first
// without holding anything, if there is no lead, and again once the first is held. The first is out of order if lead is not 0, and then those that
// belong before it, up to the index lead, are waited for only for a moment. So only who keeps to the order waits for long while holding something, and
// many contenders do not go on giving up for each other.
func (a *attempt) take(locks []*Lock, lead int, first bool) (stuck int, err error) {
	wait := a.request.Wait
	if wait > 0 {
		wait = max(wait-time.Since(a.start), 0)
	}
	if first {
		leave, err := a.reserve(locks, a.request.Wait)
		defer leave()
		if err != nil {
			return 0, err
		}
	}
	var end time.Time // for all but the first
	for i, l := range locks {
		if i > 0 {
			wait = max(time.Until(end), 0)
		}
		if i > 0 && i <= lead {
			wait = min(wait, firstPatience)
		}
		h, err := l.acquire(a.under, lock.Request{Wait: wait, Lease: a.request.Lease})
		if err != nil {
			return i, err
		}
		a.under, a.parts = h.Context(), append(a.parts, h) //nolint:fatcontext // one a lock
		if i > 0 {
			continue
		}
		if end = a.end(); !first && len(locks) > 1 {
			leave, err := a.reserve(locks[1:], max(time.Until(end), 0))
			defer leave()
			if err != nil {
				return 1, err
			}
		}
	}
	return 0, nil
}

// reserve takes locks together, those of each client all or none, if none of them has to be waited for. The error is that of a server, or of a
// caller who does not wait.
func (a *attempt) reserve(locks []*Lock, wait time.Duration) (leave func(), err error) {
	var of []*reservation
	requests := map[*Client][]lock.Request{}
	for _, l := range locks {
		if requests[l.c] == nil {
			of = append(of, l.c.newReservation(a.under))
		}
		requests[l.c] = append(requests[l.c], lock.Request{Key: l.name, Kind: l.kind, Wait: wait, Lease: a.request.Lease})
	}
	if len(locks) > 1 {
		errs := make([]error, len(of))
		each(len(of), func(i int) { _, errs[i] = of[i].take(a.under, requests[of[i].c], true) })
		err = errors.Join(errs...)
	}
	for _, res := range of {
		a.under = context.WithValue(a.under, reservationKey{res.c}, res)
	}
	if errors.Is(err, lock.ErrBusy) && wait != 0 {
		err = nil
	}
	return func() { each(len(of), func(i int) { of[i].leave() }) }, err
}

// each calls f for each number below n at once.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// giveBack releases what was taken, by the watchdog where that fails or takes longer than the caller stays.
func (a *attempt) giveBack() {
	ctx := a.ctx
	if a.request.Wait >= 0 {
		bounded, cancel := context.WithDeadline(ctx, a.start.Add(a.request.Wait).Add(answerInterval))
		defer cancel()
		ctx = bounded
	}
	_ = giveBack(ctx, a.parts)
}

// end is until when the others are waited for.
func (a *attempt) end() time.Time {
	now := time.Now()
	end := now.Add(a.patience)
	if lease := a.request.Lease; lease > 0 {
		end = transport.Earlier(end, now.Add(lease/10))
	}
	if a.request.Wait >= 0 {
		end = transport.Earlier(end, a.start.Add(a.request.Wait))
	}
	return end
}

// giveBack releases all holds at once, those of each client together, and joins the errors.
func giveBack(ctx context.Context, holds []lock.Hold) error {
	var clients []*Client
	of := map[*Client][]lock.Hold{}
	for _, h := range holds {
		c := h.(interface{ inner() *hold }).inner().c
		if of[c] == nil {
			clients = append(clients, c)
		}
		of[c] = append(of[c], h)
	}
	errs := make([]error, len(clients))
	each(len(clients), func(i int) { errs[i] = clients[i].ReleaseAll(ctx, of[clients[i]]) })
	return errors.Join(errs...)
}
