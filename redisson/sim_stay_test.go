package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// section is what is done under one hold. It ends when the hold's context does, or right before the release.
type section struct {
	stay    *stay
	hold    lock.Hold // nil for permits that do not tell of their end
	kind    lock.Kind
	amount  int
	renewed bool
	asked   time.Duration // when its acquire was called
	over    sync.Once
	stop    func() bool // the watch over the context
}

// end is called when the work must end: because of a release, or of the end of the context.
func (sec *section) end(released bool) {
	sec.over.Do(func() { sec.stay.o.w.judge.leave(sec, released) })
}

// enter begins a section.
func (s *stay) enter(sec *section) {
	h := sec.hold
	s.o.w.judge.enter(sec)
	if fenced, ok := h.(interface{ Token() int64 }); ok {
		s.o.w.judge.token(s, fenced.Token())
	}
	sec.stop = context.AfterFunc(h.Context(), func() {
		if errors.Is(context.Cause(h.Context()), lock.ErrLost) {
			s.o.w.net.Reach("lease over inside")
			s.o.w.judge.look()
		}
		sec.end(false)
	})
	s.sections = append(s.sections, sec)
}

// leave ends a section and gives back its hold.
func (s *stay) leave(sec *section) {
	s.note(sec)
	s.sections = slices.DeleteFunc(s.sections, func(o *section) bool { return o == sec })
	sec.stop()
	sec.end(true)
	_ = s.o.call(fmt.Sprintf("releases %v", sec.kind), context.Background(), s.o.w.times.timeout, func() error {
		return sec.hold.Release(context.Background())
	})
}

// note notes in what order holds are given back.
func (s *stay) note(sec *section) {
	if len(s.sections) > 1 && s.sections[0] == sec {
		s.o.w.net.Reach("outer hold released first")
		if sec.kind == lock.Write && s.sections[1].kind == lock.Read {
			s.o.w.net.Reach("downgrade")
		}
	}
}

// stay takes the lock, does this and that under it, and gives it back.
func (o *owner) stay() bool {
	kinds := o.w.scene.kinds
	s := o.newStay(kinds[o.rand.IntN(len(kinds))], "L")
	wait, ctx, cancel := o.patience()
	defer cancel()
	if !s.acquire(ctx, s.kind, wait) {
		return false
	}
	s.work(s.nest)
	return true
}

// work does this and that until the stay is over. The holds are given back in any order.
func (s *stay) work(nest func(*section)) {
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
		switch draw := o.rand.IntN(4); {
		case draw == 0 && len(s.sections) > 1:
			s.leave(sec)
		case draw == 1, draw == 2:
			nest(sec)
		case draw == 3:
			s.pause()
		}
	}
	for len(s.sections) > 0 {
		s.leave(s.sections[o.rand.IntN(len(s.sections))])
	}
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

func (s *stay) acquire(ctx context.Context, kind lock.Kind, wait time.Duration) bool {
	r := lock.Request{Key: s.keys[0], Kind: kind, Wait: wait, Lease: s.o.lease(), Limit: simPermits}
	sec := &section{stay: s, kind: kind, amount: 1, renewed: r.Lease == 0, asked: s.o.w.net.Since()}
	err := s.o.acquire(fmt.Sprintf("acquires %v within %v for %v", kind, wait, r.Lease), ctx, wait, s.keys, func() (err error) {
		sec.hold, err = s.o.client.Acquire(ctx, r)
		return err
	})
	if err != nil {
		return false
	}
	s.enter(sec)
	return true
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

// multiHold is a MultiLock that is held.
type multiHold struct {
	m   *redisson.MultiLock
	ctx context.Context
}

func (h multiHold) Context() context.Context      { return h.ctx }
func (h multiHold) Release(context.Context) error { return h.m.Unlock(h.ctx) }

// stayAtMany is stay with one to three locks at once.
func (o *owner) stayAtMany() bool {
	keys := []string{"K1", "K2", "K3"}
	o.rand.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	s := o.newStay(lock.Exclusive, keys[:1+o.rand.IntN(len(keys))]...)
	members := make([]redisson.Member, len(s.keys))
	for i, key := range s.keys {
		members[i] = o.client.Lock(key)
	}
	m, err := redisson.NewMultiLock(members...)
	if err != nil {
		o.w.judge.accuse("NewMultiLock: %v", err)
		return false
	}
	wait, ctx, cancel := o.patience()
	defer cancel()
	if !s.acquireAll(ctx, m, wait) {
		return false
	}
	s.work(func(under *section) { s.nestAll(m, under) })
	return true
}

func (s *stay) nestAll(m *redisson.MultiLock, under *section) {
	if ctx := under.hold.Context(); ctx.Err() == nil && s.acquireAll(ctx, m, s.o.w.times.timeout) {
		s.o.w.net.Reach("re-entry")
	}
}

func (s *stay) acquireAll(ctx context.Context, m *redisson.MultiLock, wait time.Duration) bool {
	lease := s.o.lease()
	h := multiHold{m: m}
	sec := &section{stay: s, kind: lock.Exclusive, amount: 1, renewed: lease == 0, asked: s.o.w.net.Since()}
	err := s.o.acquire(fmt.Sprintf("acquires %q within %v for %v", s.keys, wait, lease), ctx, wait, s.keys, func() (err error) {
		if wait < 0 {
			h.ctx, err = m.Lock(ctx)
			return err
		}
		var ok bool
		h.ctx, ok, err = m.TryLock(ctx, wait, lease)
		return busyUnless(ok, err)
	})
	if err != nil {
		return false
	}
	sec.hold = h
	s.enter(sec)
	return true
}
