package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// owner takes a lock again and again.
type owner struct {
	w      *world
	client *redisson.Client
	name   string
	rand   *rand.Rand
	stays  int
}

// simLimit is how many may hold a permit.
const simLimit = 2

var simKinds = map[string][]lock.Kind{
	"plain": {lock.Exclusive}, "fenced": {lock.Fenced}, "spin": {lock.Spin}, "fair": {lock.Fair}, "write": {lock.Write},
	"permit": {lock.Permit}, "read": {lock.Read, lock.Read, lock.Read, lock.Write}, "rw": {lock.Read, lock.Write},
}

// live is an owner's life.
func (o *owner) live() {
	o.sleep(5 * time.Millisecond)
	for range o.w.options.rounds {
		o.round()
		o.sleep(20 * time.Millisecond)
	}
}

func (o *owner) round() {
	switch o.w.options.kinds {
	case "permits":
		o.takePermit()
	default:
		o.stay()
	}
}

func (o *owner) sleep(most time.Duration) { time.Sleep(o.upTo(most)) }

// upTo is a time below d, to the nanosecond, so that no two are the same.
func (o *owner) upTo(d time.Duration) time.Duration { return time.Duration(o.rand.Int64N(int64(d))) }

// between is a time between the two, of which each order of magnitude is as likely.
func (o *owner) between(least, most time.Duration) time.Duration {
	ratio := float64(most) / float64(least)
	return time.Duration(float64(least) * math.Pow(ratio, o.rand.Float64()))
}

// lease is 0 or a time from 300 ms to 20 s.
func (o *owner) lease() time.Duration {
	if o.rand.IntN(2) == 0 || o.w.options.leases == "renewed" {
		return 0
	}
	return o.between(300*time.Millisecond, 20*time.Second).Truncate(time.Millisecond)
}

// patience is the context of an acquire.
func (o *owner) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 20*time.Second+o.upTo(10*time.Second))
}

// stay is the time from an owner's first hold of a lock to the last.
type stay struct {
	o        *owner
	name     string
	sections []*section // live ones
	pace     time.Duration

	kind                     lock.Kind // of the first section
	readers, writers, others int       // guarded by the judge
}

func (s *stay) count(kind lock.Kind, by int) {
	switch kind {
	case lock.Read:
		s.readers += by
	case lock.Write:
		s.writers += by
	default:
		s.others += by
	}
}

// section is what is done under one hold. It ends with the hold's context, or right before the release.
type section struct {
	stay *stay
	hold lock.Hold
	kind lock.Kind
	end  func()
	stop func() bool
}

func (s *stay) enter(h lock.Hold, kind lock.Kind, limit int) {
	sec := &section{stay: s, hold: h, kind: kind}
	sec.end = sync.OnceFunc(func() {
		s.o.w.judge.leave(s, kind)
	})
	s.o.w.judge.enter(s, kind, limit)
	sec.stop = context.AfterFunc(h.Context(), func() {
		s.o.w.judge.look()
		sec.end()
	})
	s.sections = append(s.sections, sec)
	s.o.w.counted()
}

// release ends a section.
func (s *stay) release(sec *section) {
	s.sections = slices.DeleteFunc(s.sections, func(o *section) bool { return o == sec })
	sec.stop()
	sec.end()
	s.o.sleep(time.Millisecond)
	err := sec.hold.Release(context.Background())
	s.o.w.net.Note("%s released %v: %v", s.name, sec.kind, err)
}

// stay takes the lock, does this and that under it, and gives it back.
func (o *owner) stay() {
	kinds := simKinds[o.w.options.kinds]
	o.stays++
	s := &stay{o: o, name: fmt.Sprintf("%s.%d", o.name, o.stays)}
	ctx, cancel := o.patience()
	defer cancel()
	kind := kinds[o.rand.IntN(len(kinds))]
	s.kind = kind
	if !s.acquire(ctx, kind, -1) {
		return
	}
	s.pace = o.between(20*time.Millisecond, 4*time.Second)
	steps := o.rand.IntN(12)
	if o.rand.IntN(6) == 0 {
		steps *= 3
	}
	for range steps {
		s.step()
	}
	for len(s.sections) > 0 {
		s.release(s.sections[o.rand.IntN(len(s.sections))])
	}
}

// step does one thing of a stay.
func (s *stay) step() {
	o := s.o
	if len(s.sections) == 0 {
		return
	}
	sec := s.sections[o.rand.IntN(len(s.sections))]
	switch o.rand.IntN(4) {
	case 0:
		if len(s.sections) > 1 {
			s.release(sec)
		}
	case 1, 2:
		s.nest(sec)
	default:
		o.pause(s)
	}
}

func (s *stay) nest(under *section) {
	ctx := under.hold.Context()
	if ctx.Err() != nil || under.kind == lock.Permit {
		return
	}
	if s.o.rand.IntN(2) == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	kind := under.kind
	if kind == lock.Write && s.o.rand.IntN(2) == 0 {
		kind = lock.Read
	}
	s.acquire(ctx, kind, time.Second)
}

func (s *stay) acquire(ctx context.Context, kind lock.Kind, wait time.Duration) bool {
	lease := s.o.lease()
	s.o.sleep(time.Millisecond)
	h, err := s.o.client.Acquire(ctx, lock.Request{Key: "L", Kind: kind, Wait: wait, Lease: lease, Limit: simLimit})
	s.o.w.net.Note("%s acquires %v for %v: %v", s.name, kind, lease, err)
	if err != nil {
		return false
	}
	limit := 0
	if kind == lock.Permit {
		limit = simLimit
	}
	s.enter(h, kind, limit)
	return true
}

// pause lets time pass while a hold is alive.
func (o *owner) pause(s *stay) {
	timer := time.NewTimer(o.upTo(s.pace))
	defer timer.Stop()
	for _, sec := range s.sections {
		select {
		case <-timer.C:
			return
		case <-sec.hold.Context().Done():
		}
	}
}

// takePermit is a round with an expirable semaphore. Nobody tells the holder of a permit that it is over, so it reckons with
// the lease from the earliest time on at which the permit can have been given.
func (o *owner) takePermit() {
	o.stays++
	s := &stay{o: o, name: fmt.Sprintf("%s.%d", o.name, o.stays), kind: lock.Permit}
	ctx, cancel := o.patience()
	defer cancel()
	sem := o.client.PermitExpirableSemaphore("L")
	var lease time.Duration
	if o.rand.IntN(2) == 0 {
		lease = o.between(2*time.Second, 20*time.Second).Truncate(time.Millisecond)
	}
	id, err := sem.Acquire(ctx, lease)
	o.w.net.Note("%s acquires a permit for %v: %v", s.name, lease, err)
	if err != nil {
		return
	}
	stay := o.between(time.Millisecond, 4*time.Second)
	if lease > 0 {
		stay = min(stay, lease-simTimeout)
	}
	o.w.judge.enter(s, lock.Permit, simLimit)
	time.Sleep(stay)
	o.w.judge.leave(s, lock.Permit)
	o.w.counted()
	err = sem.Release(context.Background(), id)
	o.w.net.Note("%s released a permit: %v", s.name, err)
	if errors.Is(err, lock.ErrNotHeld) && (lease == 0 || stay < lease-simTimeout) {
		o.w.judge.accuse("%s has lost its permit", s.name)
	}
}
