package redisson_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// several is a MultiLock or a RedLock.
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

// stayAtMany is stay with one to three locks at once. Of three, two are a MultiLock of their own.
func (o *owner) stayAtMany() bool {
	keys := []string{"K1", "K2", "K3"}
	o.rand.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	s := o.newStay(lock.Exclusive, keys[:1+o.rand.IntN(len(keys))]...)
	var members []redisson.Member
	for _, key := range s.keys {
		members = append(members, o.client.Lock(key))
	}
	if len(members) == 3 {
		pair, err := redisson.NewMultiLock(members[1:]...)
		if err != nil {
			o.w.judge.accuse("NewMultiLock: %v", err)
			return false
		}
		members = []redisson.Member{members[0], pair}
	}
	m, err := redisson.NewMultiLock(members...)
	if err != nil {
		o.w.judge.accuse("NewMultiLock: %v", err)
		return false
	}
	return s.stayUnder(m)
}

// stayAtMajority is stay with a RedLock. Each process has a link of its own to each of the servers, so these are the clients, which
// the processes use in turn; what stands for a server is a key.
func (o *owner) stayAtMajority() bool {
	s := o.newStay(lock.Exclusive, "R")
	var members []redisson.Member
	for i, key := range simServers {
		members = append(members, o.linkTo(i).Lock(key))
	}
	r, err := redisson.NewRedLock(members...)
	if err != nil {
		o.w.judge.accuse("NewRedLock: %v", err)
		return false
	}
	return s.stayUnder(r)
}

// simServers are the keys of a RedLock.
var simServers = []string{"R1", "R2", "R3"}

// linkTo is the client with which the process of an owner asks a server.
func (o *owner) linkTo(server int) *redisson.Client {
	return o.w.clients[(o.process+server)%len(o.w.clients)]
}

func (s *stay) stayUnder(locks several) bool {
	wait, ctx, cancel := s.o.patience()
	defer cancel()
	if !s.acquireAll(ctx, locks, wait) {
		return false
	}
	s.work(func(under *section) {
		if ctx := under.hold.Context(); ctx.Err() == nil && s.acquireAll(ctx, locks, s.o.w.times.timeout) {
			s.o.w.net.Reach("re-entry")
		}
	}, s.leave)
	return true
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
