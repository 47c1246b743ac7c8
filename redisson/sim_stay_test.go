package redisson_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// stay takes the lock, does this and that under it, and gives it back.
func (o *owner) stay() bool {
	kinds := o.w.scene.kinds
	s := o.newStay(kinds[o.rand.IntN(len(kinds))], "L")
	wait, ctx, cancel := o.patience()
	defer cancel()
	if !s.acquire(ctx, s.kind, wait) {
		return false
	}
	s.work(s.nest, s.leaveBeside)
	return true
}

// work does this and that until the stay is over. The holds are given back in any order, and the last one by the given function.
func (s *stay) work(nest, last func(*section)) {
	o := s.o
	steps := o.rand.IntN(12)
	if o.rand.IntN(6) == 0 {
		steps *= 3
	}
	for range steps {
		if len(s.sections) == 0 {
			return
		}
		sec := s.sections[o.rand.IntN(len(s.sections))]
		switch draw := o.rand.IntN(9); {
		case draw < 2 && len(s.sections) > 1:
			s.leave(sec)
		case draw < 2:
		case draw < 6:
			nest(sec)
		case draw < 8:
			s.pause()
		case o.rand.IntN(3) == 0 && sec.reenters():
			sec.refuseAgain()
		default:
			sec.extend()
		}
	}
	for len(s.sections) > 1 {
		s.leave(s.sections[o.rand.IntN(len(s.sections))])
	}
	for len(s.sections) > 0 {
		last(s.sections[0])
	}
}

// reenters reports whether there is a lock that would be the same but for its re-entrance.
func (sec *section) reenters() bool {
	return len(sec.ids) == 1 && sec.kind.Family() == lock.Exclusive
}

// nest takes the lock again below a hold, whose end may be the end of the new one or not.
func (s *stay) nest(under *section) {
	o, ctx, kind := s.o, under.hold.Context(), under.kind
	if ctx.Err() != nil || kind == lock.Permit {
		return
	}
	if o.rand.IntN(2) == 0 {
		ctx = context.WithoutCancel(ctx)
	}
	if kind == lock.Write && o.rand.IntN(2) == 0 {
		kind = lock.Read
	}
	if s.acquire(ctx, kind, o.w.times.timeout) {
		o.w.net.Reach("re-entry")
	}
}

// leaveBeside is leave, while work that the owner has started now and then takes the lock again below the same hold: either still
// under it, or as anybody else would.
func (s *stay) leaveBeside(sec *section) {
	o := s.o
	if sec.kind == lock.Permit || o.final || o.rand.IntN(4) > 0 {
		s.leave(sec)
		return
	}
	started := *o
	started.name, started.rand = o.name+"'", rand.New(rand.NewPCG(o.rand.Uint64(), 0))
	var again *section
	var all sync.WaitGroup
	all.Go(func() {
		again = s.ask(&started, context.WithoutCancel(sec.hold.Context()), sec.kind, started.upTo(5*time.Second))
	})
	s.leave(sec)
	all.Wait()
	if again != nil {
		s.sections = append(s.sections, again)
		if again.ids[s.keys[0]] == sec.ids[s.keys[0]] {
			o.w.net.Reach("re-entry beside a release")
		}
	}
}

func (s *stay) acquire(ctx context.Context, kind lock.Kind, wait time.Duration) bool {
	sec := s.ask(s.o, ctx, kind, wait)
	if sec != nil {
		s.sections = append(s.sections, sec)
	}
	return sec != nil
}

// ask takes the lock by a call of o, and begins a section under it. It returns nil if that is not possible.
func (s *stay) ask(o *owner, ctx context.Context, kind lock.Kind, wait time.Duration) *section {
	r := s.request
	if r.Key == "" {
		r.Key, r.Limit = s.keys[0], simPermits
	}
	r.Kind, r.Wait, r.Lease = kind, wait, o.lease()
	done := func() {}
	if kind == lock.Permit {
		done = o.w.judge.want(s)
	}
	sec := s.newSection(kind, r.Lease)
	err := o.acquire(fmt.Sprintf("acquires %v within %v for %v", kind, wait, r.Lease), ctx, wait, s.keys, func() (err error) {
		sec.hold, err = o.client.Acquire(ctx, r)
		return err
	})
	defer done()
	if err != nil {
		return nil
	}
	s.enter(sec)
	return sec
}

// pause lets time pass while a hold is alive.
func (s *stay) pause() {
	timer := time.NewTimer(s.o.upTo(s.pace))
	defer timer.Stop()
	for _, sec := range s.sections {
		select {
		case <-timer.C:
			return
		case <-sec.hold.Context().Done():
		}
	}
}
