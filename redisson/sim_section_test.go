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

// stay is the time from an owner's first hold to the last.
type stay struct {
	o        *owner
	name     string
	keys     []string
	kind     lock.Kind
	kinds    map[string]lock.Kind // by key, of a MultiLock
	request  lock.Request         // of permits; without a key, it follows from keys
	limits   map[string]int       // of permits by key, if they are others than simPermits
	under    *section             // of another stay, whose levels it has, too; or nil
	pace     time.Duration        // of what is done under it
	sections []*section           // those that the owner has not ended

	// Guarded by the judge's mutex.
	live   []*section    // those whose holds are alive
	leases time.Duration // the sum of all that it had
}

func (o *owner) newStay(kind lock.Kind, keys ...string) *stay {
	return &stay{
		o: o, name: fmt.Sprintf("%s.%d", o.name, o.rounds), keys: keys, kind: kind,
		pace: o.between(20*time.Millisecond, 4*time.Second),
	}
}

// section is what is done under one hold. It ends when the hold's context does, or right before the release.
type section struct {
	stay   *stay
	hold   lock.Hold // nil for permits whose end is not announced
	kind   lock.Kind
	amount int
	lease  time.Duration     // 0: renewed
	asked  time.Duration     // when its acquire was called
	lasts  time.Duration     // until when it must not be lost, if there are no faults
	ids    map[string]string // by key, what Redis calls the holder
	over   sync.Once
	stop   func() bool // the watch over the context

	// Guarded by the judge's mutex.
	entered time.Duration // when it began
	robbed  time.Duration // when the lock was freed by force after that; 0 is never
}

// newSection is called before the hold is asked for.
func (s *stay) newSection(kind lock.Kind, lease time.Duration) *section {
	sec := &section{stay: s, kind: kind, amount: 1, asked: s.o.w.net.Since(), lease: lease}
	sec.lastFor(lease, sec.asked)
	return sec
}

// lastFor notes that the hold was given a lease at the given time or later. It may end a margin before that.
func (sec *section) lastFor(lease, from time.Duration) {
	sec.lasts = max(sec.lasts, from+lease-lease/20-25*time.Millisecond)
}

// kindAt is the kind of the hold of a key.
func (sec *section) kindAt(key string) lock.Kind {
	if kind, several := sec.stay.kinds[key]; several {
		return kind
	}
	return sec.kind
}

// enter begins a section.
func (s *stay) enter(sec *section) {
	h := sec.hold
	sec.ids = s.o.w.scene.identify(sec)
	s.o.w.judge.enter(sec)
	if fenced, ok := h.(interface{ Token() int64 }); ok {
		s.o.w.judge.token(sec, fenced.Token())
	}
	sec.stop = context.AfterFunc(h.Context(), func() {
		if errors.Is(context.Cause(h.Context()), lock.ErrLost) {
			s.o.w.net.Reach("lease over inside")
			s.o.w.judge.look()
		}
		sec.end(false)
	})
}

// end is called when the work must end: because of a release, or of the end of the context.
func (sec *section) end(released bool) {
	sec.over.Do(func() { sec.stay.o.w.judge.leave(sec, released) })
}

// leave ends a section and gives back its hold. Now and then, nobody is to have the lock for a while after that.
func (s *stay) leave(sec *section) {
	o := s.o
	s.note(sec)
	s.sections = slices.DeleteFunc(s.sections, func(o *section) bool { return o == sec })
	sec.stop()
	sec.end(true)
	ctx, what, release := context.Background(), fmt.Sprintf("releases %v", sec.kind), sec.hold.Release
	start, kept := o.w.net.Since(), time.Duration(0)
	if keeper, ok := sec.hold.(interface {
		Keep(context.Context, time.Duration) error
	}); ok && !o.final && o.rand.IntN(8) == 0 {
		kept = o.between(50*time.Millisecond, 5*time.Second).Truncate(time.Millisecond)
		what += fmt.Sprint(" and keeps it for ", kept)
		release = func(ctx context.Context) error { return keeper.Keep(ctx, kept) }
	}
	err := o.call(what, ctx, o.w.times.timeout, func() error { return release(ctx) })
	if kept > 0 {
		o.w.judge.keep(sec, start, kept, err)
	}
	o.w.judge.lost(sec, err)
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

// extend gives a hold a new lease.
func (sec *section) extend() {
	o := sec.stay.o
	h, ok := sec.hold.(interface {
		Extend(context.Context, time.Duration) error
	})
	lease := o.between(o.w.times.least, o.w.times.most).Truncate(time.Millisecond)
	if !ok {
		return
	}
	start := o.w.net.Since()
	err := o.call(fmt.Sprintf("extends %v for %v", sec.kind, lease), context.Background(), o.w.times.timeout, func() error {
		return h.Extend(context.Background(), lease)
	})
	if err == nil {
		o.w.net.Reach("extended")
		sec.lastFor(lease, start)
		o.w.judge.prolong(sec, lease)
	}
}

// refuseAgain asks for the lock as one that is not re-entrant, below a hold.
func (sec *section) refuseAgain() {
	o, ctx := sec.stay.o, sec.hold.Context()
	l := o.client.NonReentrantLock(sec.stay.keys[0])
	if sec.kind == lock.Fair {
		l = o.client.NonReentrantFairLock(sec.stay.keys[0])
	}
	var err error
	_ = o.call("asks for a lock that is not re-entrant", ctx, 0, func() error {
		_, err = l.Lock(ctx)
		return nil
	})
	switch {
	case errors.Is(err, lock.ErrUnsupported):
		o.w.net.Reach("refused as not re-entrant")
	case ctx.Err() == nil:
		o.w.judge.accuse("%s re-entered a lock that is not re-entrant: %v", sec.stay.name, err)
	}
}

// identify returns what Redis calls the holder of a section, by key.
func (s scene) identify(sec *section) map[string]string {
	if s.anonymous || s.majority {
		return nil
	}
	ids := map[string]string{}
	for _, key := range sec.stay.keys {
		if sec.kind == lock.Permit {
			ids[key] = redisson.PermitID(sec.hold)
			continue
		}
		ids[key] = redisson.HolderID(sec.hold.Context(), sec.stay.o.client, key, sec.kindAt(key))
	}
	return ids
}
