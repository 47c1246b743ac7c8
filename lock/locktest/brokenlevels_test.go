package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// brokenLevels are wrong about permits: their limits, levels and rates.
var brokenLevels = []brokenLocker{
	{"the first limit is for all", firstLimit, lock.Permit, "limits change from call to call"},
	{"levels without a word", levelsInSilence, lock.Exclusive, "levels and rates are served by those who say so"},
	{"levels ignored", levelsIgnored, lock.Permit, "levels are held together or not at all"},
	{"levels ignored", levelsIgnored, lock.Permit, "any order of levels keeps each limit and comes to an end"},
	{"a level is not given back when another is full", levelStays, lock.Permit, "levels are held together or not at all"},
	{"levels taken one by one", oneByOne, lock.Permit, "a wait for one level holds nothing of the others"},
	{"levels taken one by one", oneByOne, lock.Permit, "any order of levels keeps each limit and comes to an end"},
	{"the key is freed before its levels", keyFreedFirst, lock.Permit, "levels end together"},
	{"levels are not re-entered", levelsNotReentered, lock.Permit, "a nested call re-enters what its ancestors hold"},
	{"a nested call re-enters all", nestedIsFree, lock.Permit, "a nested call re-enters what its ancestors hold"},
	{"a rate that forgets", rateForgets, lock.Permit, "a rate gives so many permits within an interval"},
	{"the first rate is for all", firstRate, lock.Permit, "a rate gives so many permits within an interval"},
	{"a window that does not slide", fixedWindow, lock.Permit, "permits of a rate come back one by one"},
	{"a refused call counts", refusedCounts, lock.Permit, "a call that is refused takes nothing"},
	{"the wait for the rate has a slot", rateWaitsInside, lock.Permit, "a call that is refused takes nothing"},
	{"a rate is a lock", rateIsLock, lock.Permit, "a rate without a limit holds nothing"},
	{"a re-entry counts", reentryCounts, lock.Permit, "a re-entry takes nothing from a rate"},
}

// leveling is a good Locker whose Acquire does what the function does. It says that it serves levels.
type leveling struct{ lock.Locker }

func (leveling) ServesLevels(...string) error { return nil }

func levelers(acquire func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error)) func() lock.Locker {
	return func() lock.Locker {
		l := memlock.New()
		return leveling{lockerFunc(func(ctx context.Context, r lock.Request) (lock.Hold, error) { return acquire(ctx, l, r) })}
	}
}

// firsts changes requests by the first one of their key.
func firsts(change func(r *lock.Request, first lock.Request)) lock.Locker {
	var mu sync.Mutex
	seen := make(map[string]lock.Request)
	return leveling{requested(func(r *lock.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, ok := seen[r.Key]; !ok {
			seen[r.Key] = *r
		}
		change(r, seen[r.Key])
	})}
}

func firstLimit() lock.Locker {
	return firsts(func(r *lock.Request, first lock.Request) { r.Limit = first.Limit })
}

func firstRate() lock.Locker {
	return firsts(func(r *lock.Request, first lock.Request) { r.Rate = first.Rate })
}

func levelsInSilence() lock.Locker { return requested(func(*lock.Request) {}) }

func levelsIgnored() lock.Locker {
	return leveling{requested(func(r *lock.Request) { r.Levels = nil })}
}

// split returns the levels of r as requests of their own.
func split(r lock.Request) []lock.Request {
	rs := []lock.Request{r}
	rs[0].Levels = nil
	for _, level := range r.Levels {
		rs = append(rs, rs[0])
		rs[len(rs)-1].Key, rs[len(rs)-1].Limit = level.Key, level.Limit
	}
	return rs
}

// naming has a busy error name the level that was full.
func naming(err error, level string) error {
	if busy, ok := errors.AsType[*lock.BusyError](err); ok {
		busy.Level = level
	}
	return err
}

var (
	// levelStays takes the levels one by one, and forgets to give them back.
	levelStays = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (h lock.Hold, err error) {
		rs := split(r)
		for i, r := range rs {
			h, err = l.Acquire(ctx, r)
			if err != nil {
				return nil, naming(err, r.Key)
			}
			if i < len(rs)-1 {
				ctx = h.Context()
			}
		}
		return h, nil
	})

	// oneByOne has the first levels while it waits for the others.
	oneByOne = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		var holds []lock.Hold
		release := func(ctx context.Context) (err error) {
			for _, h := range holds {
				err = errors.Join(err, h.Release(ctx))
			}
			return err
		}
		for _, r := range split(r) {
			h, err := l.Acquire(ctx, r)
			if err != nil {
				return nil, errors.Join(naming(err, r.Key), release(ctx))
			}
			holds = append(holds, h)
			ctx = h.Context()
		}
		return brokenHold{Hold: holds[len(holds)-1], release: release}, nil
	})

	// keyFreedFirst goes on holding the levels for a while, as if they had leases of their own.
	keyFreedFirst = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		h, err := l.Acquire(ctx, r)
		if err != nil || len(r.Levels) == 0 {
			return h, err
		}
		last := split(r)[len(r.Levels)]
		last.Lease = time.Hour
		_, _ = l.Acquire(context.WithoutCancel(h.Context()), last)
		return h, nil
	})

	levelsNotReentered = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		if len(r.Levels) > 0 {
			ctx = lock.NewOwner(ctx)
		}
		return l.Acquire(ctx, r)
	})

	// nestedIsFree takes nothing for a call that has one of its keys.
	nestedIsFree = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		for range lock.Ancestors(ctx) {
			rs := split(r)
			return l.Acquire(ctx, rs[len(rs)-1])
		}
		return l.Acquire(ctx, r)
	})

	// rateForgets loses count with the first permit that it takes back.
	rateForgets = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		if r.Rate != (lock.Rate{}) {
			r.Limit, r.Rate = r.Rate.Permits, lock.Rate{}
		}
		return l.Acquire(ctx, r)
	})

	// fixedWindow counts anew with each interval of the clock.
	fixedWindow = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		if r.Rate != (lock.Rate{}) {
			r.Key += fmt.Sprint(time.Now().Truncate(r.Rate.Interval))
		}
		return l.Acquire(ctx, r)
	})

	refusedCounts = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		h, err := l.Acquire(ctx, r)
		if errors.Is(err, lock.ErrBusy) && r.Rate != (lock.Rate{}) {
			r.Limit, r.Levels = 0, nil
			_, _ = l.Acquire(ctx, r)
		}
		return h, err
	})

	// rateWaitsInside takes its levels before it looks at the rate.
	rateWaitsInside = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		if r.Limit == 0 || r.Rate == (lock.Rate{}) {
			return l.Acquire(ctx, r)
		}
		slot := r
		slot.Rate = lock.Rate{}
		h, err := l.Acquire(ctx, slot)
		if err != nil {
			return nil, err
		}
		r.Limit, r.Levels = 0, nil
		if _, err := l.Acquire(h.Context(), r); err != nil {
			return nil, errors.Join(err, h.Release(ctx))
		}
		return h, nil
	})

	rateIsLock = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		r.Limit = max(r.Limit, 1)
		return l.Acquire(ctx, r)
	})

	reentryCounts = levelers(func(ctx context.Context, l *memlock.Locker, r lock.Request) (lock.Hold, error) {
		if above := slices.Collect(lock.Ancestors(ctx)); len(above) > 0 && r.Rate != (lock.Rate{}) {
			counted := r
			counted.Limit = 0
			if _, err := l.Acquire(ctx, counted); err != nil {
				return nil, err
			}
		}
		return l.Acquire(ctx, r)
	})
)
