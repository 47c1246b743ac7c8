package redisson_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// keyList is locks that are reserved together and acquired one after the other, as a guard with a list of keys does it. In between, time passes.
type keyList struct {
	o     *owner
	keys  []string
	kinds map[string]lock.Kind
	held  map[context.Context][]lock.Hold // by the context of the last
}

// listOf sorts the keys, so that no two lists wait for each other.
func (s *stay) listOf(keys []string) *keyList {
	return &keyList{o: s.o, keys: slices.Sorted(slices.Values(keys)), kinds: s.kinds, held: map[context.Context][]lock.Hold{}}
}

func (l *keyList) Lock(ctx context.Context) (context.Context, error) { return l.take(ctx, -1, 0) }

func (l *keyList) TryLock(ctx context.Context, wait, lease time.Duration) (context.Context, bool, error) {
	held, err := l.take(ctx, wait, lease)
	return held, err == nil, err
}

// take reserves and acquires. Now and then it has reserved in vain, and does it again.
func (l *keyList) take(ctx context.Context, wait, lease time.Duration) (context.Context, error) {
	for began, vain := time.Now(), l.o.rand.IntN(3) == 0; ; vain = false {
		left := wait
		if wait > 0 {
			left = max(0, wait-time.Since(began))
		}
		if held, err := l.reserve(ctx, left, lease, vain); !vain || err != nil {
			return held, err
		}
	}
}

// reserve reserves the locks and, unless that is in vain, acquires them.
func (l *keyList) reserve(ctx context.Context, wait, lease time.Duration, vain bool) (context.Context, error) {
	rs := make([]lock.Request, len(l.keys))
	for i, key := range l.keys {
		rs[i] = lock.Request{Key: key, Kind: l.kinds[key], Wait: wait, Lease: lease}
	}
	reserved, _, leave, err := l.o.client.Reserve(ctx, rs)
	l.pause(ctx, wait)
	if err != nil || vain {
		leave()
		l.gone(ctx, reserved)
		return nil, err
	}
	defer leave()
	var holds []lock.Hold
	for _, r := range rs {
		hold, err := l.o.client.Acquire(reserved, r)
		if err != nil {
			return nil, errors.Join(err, l.o.client.ReleaseAll(ctx, holds)) // for as long as the caller can wait
		}
		holds, reserved = append(holds, hold), hold.Context()
	}
	l.held[reserved] = holds
	return reserved, nil
}

// gone accuses if Redis still has what was reserved in vain. With faults, that may take a while.
func (l *keyList) gone(ctx, reserved context.Context) {
	for key, id := range redisson.ReservedIDs(reserved, l.o.client) {
		if w := l.o.w; w.sim != nil && w.options.faults == "none" && ctx.Err() == nil && w.hasField(key, id) {
			w.judge.accuse("left: %s, which %s had reserved in vain", key, l.o.name)
		}
	}
}

// pause lets time pass that a call with this wait has, until its context ends.
func (l *keyList) pause(ctx context.Context, wait time.Duration) {
	most := 500 * time.Millisecond
	if wait >= 0 {
		most = min(most, wait/8+time.Millisecond)
	}
	select {
	case <-ctx.Done():
	case <-time.After(l.o.upTo(most)):
	}
}

func (l *keyList) Unlock(held context.Context) error {
	holds := l.held[held]
	slices.Reverse(holds)
	return l.o.client.ReleaseAll(context.WithoutCancel(held), holds)
}
