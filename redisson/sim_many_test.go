package redisson_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// several is a MultiLock, a list or a RedLock.
type several interface {
	Lock(ctx context.Context) (held context.Context, err error)
	TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error)
	Unlock(held context.Context) error
}

// severalHold is one that is held.
type severalHold struct {
	locks several
	ctx   context.Context
}

func (h severalHold) Context() context.Context      { return h.ctx }
func (h severalHold) Release(context.Context) error { return h.locks.Unlock(h.ctx) }

// simMemberKinds are the kinds of the members of a MultiLock by key. An owner takes one of them.
var simMemberKinds = map[string][]lock.Kind{
	"K1": {lock.Exclusive, lock.Fenced, lock.Spin, lock.Fair},
	"K2": {lock.Exclusive, lock.Fair},
	"K3": {lock.Write},
}

// stayAtMany is stay with one to three locks at once: a list, or a MultiLock. Of three, two are a MultiLock of their own. One may be given twice, unless it
// writes: the two releases of a writer each ask, at the same time, and which comes first is up to chance.
func (o *owner) stayAtMany() bool {
	keys := []string{"K1", "K2", "K3"}
	o.rand.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	s := o.newStay(lock.Exclusive, keys[:1+o.rand.IntN(len(keys))]...)
	s.kinds = map[string]lock.Kind{}
	var members []redisson.Member
	var singles []oneLock
	for _, key := range s.keys {
		kinds := simMemberKinds[key]
		s.kinds[key] = kinds[o.rand.IntN(len(kinds))]
		l := o.member(key, s.kinds[key])
		members, singles = append(members, l), append(singles, l)
	}
	if o.rand.IntN(3) == 0 {
		return s.stayUnder(s.listOf(s.keys), singles)
	}
	again := o.member(s.keys[0], s.kinds[s.keys[0]])
	if len(members) == 3 {
		members = []redisson.Member{members[0], o.multiLock(members[1:]...)}
	}
	if o.rand.IntN(4) == 0 && s.kinds[s.keys[0]] != lock.Write {
		members = append([]redisson.Member{again}, members...)
	}
	return s.stayUnder(o.multiLock(members...), singles)
}

func (o *owner) multiLock(members ...redisson.Member) *redisson.MultiLock {
	m, err := redisson.NewMultiLock(members...)
	if err != nil {
		panic(err)
	}
	return m
}

// oneLock is a single lock.
type oneLock interface {
	redisson.Member
	several
	Name() string
}

func (o *owner) member(key string, kind lock.Kind) oneLock {
	switch kind {
	case lock.Fenced:
		return o.client.FencedLock(key)
	case lock.Spin:
		return o.client.SpinLock(key)
	case lock.Fair:
		return o.client.FairLock(key)
	case lock.Write:
		return o.client.ReadWriteLock(key).WriteLock()
	}
	return o.client.Lock(key)
}

// stayAtMajority is stay with a RedLock. Each process has a link of its own to each of the servers, so these are the clients, which
// the processes use in turn; what stands for a server is a key.
func (o *owner) stayAtMajority() bool {
	s := o.newStay(lock.Exclusive, "R")
	var members []redisson.Member
	var singles []oneLock
	for i, key := range simServers {
		l := o.linkTo(i).Lock(key)
		members, singles = append(members, l), append(singles, l)
	}
	r, err := redisson.NewRedLock(members...)
	if err != nil {
		o.w.judge.accuse("NewRedLock: %v", err)
		return false
	}
	return s.stayUnder(r, singles)
}

// simServers are the keys of a RedLock.
var simServers = []string{"R1", "R2", "R3"}

// linkTo is the client with which the process of an owner asks a server.
func (o *owner) linkTo(server int) *redisson.Client {
	return o.w.clients[(o.process+server)%len(o.w.clients)]
}

func (s *stay) stayUnder(locks several, singles []oneLock) bool {
	wait, ctx, cancel := s.o.patience()
	defer cancel()
	if !s.acquireAll(ctx, locks, wait) {
		return false
	}
	s.work(func(under *section) { s.nestUnder(under, locks, singles) }, s.leave)
	return true
}

// nestUnder takes all locks again below a hold of them, or a single one, whose hold counts as part of the other. Without faults that must be
// possible for as long as the hold is alive.
func (s *stay) nestUnder(under *section, locks several, singles []oneLock) {
	ctx := under.hold.Context()
	if ctx.Err() != nil {
		return
	}
	var ok bool
	what := "re-entry"
	one := singles[s.o.rand.IntN(len(singles))]
	single := s.o.rand.IntN(3) == 0
	mine := !s.o.w.scene.majority || s.o.w.isPart(ctx, locks, one) // the servers that it does not have yet are for all
	if single {
		ok, what = s.takeOne(ctx, one), "re-entry of a member"
	} else {
		ok = s.acquireAll(ctx, locks, s.o.w.times.timeout)
	}
	switch {
	case ok:
		s.o.w.net.Reach(what)
	case s.o.w.options.faults != "none" || ctx.Err() != nil || s.o.w.judge.mayBeRobbed(under):
	case single && (!mine || s.o.w.scene.majority && !s.o.w.isPart(ctx, locks, one)): // or somebody has freed that one by force meanwhile
	default:
		s.o.w.judge.accuse("%s did not get what it holds by %s", s.name, what)
	}
}

// isPart reports whether a server of a RedLock has the hold above ctx as its holder.
func (w *world) isPart(ctx context.Context, locks several, one oneLock) bool {
	return slices.ContainsFunc(redisson.PartIDs(ctx, locks.(*redisson.RedLock)), func(id string) bool { return w.hasField(one.Name(), id) })
}

// takeOne takes a member below a hold of all, and gives it back at once.
func (s *stay) takeOne(ctx context.Context, one oneLock) (ok bool) {
	o := s.o
	var held context.Context
	_ = o.call("takes a member", ctx, o.w.times.timeout, func() (err error) {
		held, ok, err = one.TryLock(ctx, o.w.times.timeout, 0)
		return busyUnless(ok, err)
	})
	if ok {
		_ = o.call("gives a member back", context.Background(), o.w.times.timeout, func() error { return one.Unlock(held) })
	}
	return ok
}

func (s *stay) acquireAll(ctx context.Context, locks several, wait time.Duration) bool {
	lease := s.o.lease()
	if wait < 0 { // there is no such call with a lease
		lease = 0
	}
	h := severalHold{locks: locks}
	sec := s.newSection(lock.Exclusive, lease)
	err := s.o.acquire(fmt.Sprintf("acquires %q within %v for %v", s.keys, wait, lease), ctx, wait, s.keys, func() (err error) {
		if wait < 0 {
			h.ctx, err = locks.Lock(ctx)
			return err
		}
		var ok bool
		h.ctx, ok, err = locks.TryLock(ctx, wait, lease)
		return busyUnless(ok, err)
	})
	if err != nil {
		return false
	}
	sec.hold = h
	s.enter(sec)
	s.sections = append(s.sections, sec)
	return true
}
