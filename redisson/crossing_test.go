package redisson_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// Lists that cross each other, and callers who want one of their keys: all get on, and nobody gets less than a fifth of what is due. Each
// is due many turns before that is judged, as a few say little of a share.

// contender wants some keys again and again.
type contender struct {
	keys   []int
	turns  atomic.Int64
	longer atomic.Int64 // the longest that it has waited, in ns
}

// crossing has contenders take the locks of their keys, each in a process of its own, until each is due 50 turns, or for a minute.
func crossing(t *testing.T, all []*contender, work func(t *testing.T, s *redistest.Server, keys []int) (turn func(ctx context.Context) error)) {
	t.Helper()
	s := redistest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for _, one := range all {
		turn := work(t, s, one.keys)
		group.Go(func() {
			for began := time.Now(); turn(ctx) == nil; began = time.Now() {
				one.turns.Add(1)
				one.longer.Store(max(one.longer.Load(), int64(time.Since(began))))
			}
		})
	}
	for ctx.Err() == nil && slices.Min(slices.Collect(maps.Values(due(all)))) < 50 {
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	group.Wait()
	for one, share := range due(all) {
		n, longest := one.turns.Load(), time.Duration(one.longer.Load())
		t.Logf("keys %v: %d turns, due %d, longest wait %v", one.keys, n, share, longest)
		if 5*n < share {
			t.Errorf("keys %v: %d turns, where %d are due; the longest wait was %v", one.keys, n, share, longest)
		}
	}
}

// due is how many turns each should have had by now: at each of its keys, all who want it get as many, and a list is bound by the key that most
// want.
func due(all []*contender) map[*contender]int64 {
	turns, wanted := map[int]int64{}, map[int]int64{}
	for _, one := range all {
		for _, k := range one.keys {
			turns[k] += one.turns.Load()
			wanted[k]++
		}
	}
	shares := map[*contender]int64{}
	for _, one := range all {
		shares[one] = math.MaxInt64
		for _, k := range one.keys {
			shares[one] = min(shares[one], turns[k]/wanted[k])
		}
	}
	return shares
}

func crossingLists() (all []*contender) {
	for i := range 8 {
		all = append(all, &contender{keys: []int{i, (i + 1) % 8, (i + 3) % 8, (i + 6) % 8}}, &contender{keys: []int{i}})
	}
	return all
}

func names(keys []int) (names []string) {
	for _, k := range keys {
		names = append(names, fmt.Sprint("k", k))
	}
	return names
}

func TestCrossingMultiLocks(t *testing.T) {
	t.Parallel()
	crossing(t, crossingLists(), func(t *testing.T, s *redistest.Server, keys []int) func(context.Context) error {
		var l compound
		c := newClient(t, s)
		if l = multiLock(t, namedLocks(c, names(keys)...)...); len(keys) == 1 {
			l = c.Lock(names(keys)[0])
		}
		return func(ctx context.Context) error {
			held, err := l.Lock(ctx)
			if err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			return l.Unlock(held)
		}
	})
}

func TestCrossingLists(t *testing.T) {
	t.Parallel()
	crossing(t, crossingLists(), func(t *testing.T, s *redistest.Server, keys []int) func(context.Context) error {
		c := newClient(t, s)
		var rs []lock.Request
		for i := range 8 { // in order
			for _, k := range keys {
				if k == i {
					rs = append(rs, lock.Request{Key: names([]int{k})[0], Wait: time.Minute})
				}
			}
		}
		return func(ctx context.Context) error {
			holds, err := takeAsGuard(ctx, c, rs)
			if err == nil {
				time.Sleep(time.Millisecond)
			}
			if failed := c.ReleaseAll(context.WithoutCancel(ctx), holds); err == nil {
				err = failed
			}
			return err
		}
	})
}

// takeAsGuard takes the locks of rs as a guard does: what is free at once, and what is not in turn.
func takeAsGuard(ctx context.Context, c *redisson.Client, rs []lock.Request) (holds []lock.Hold, err error) {
	reserved := 0
	for i, r := range rs {
		if i >= reserved && i < len(rs)-1 {
			var leave func()
			var n int
			if ctx, n, leave, err = c.Reserve(ctx, rs[i:]); err != nil {
				return holds, err
			}
			defer leave()
			reserved = i + n
		}
		h, err := c.Acquire(ctx, r)
		if err != nil {
			return holds, err
		}
		holds, ctx = append(holds, h), h.Context()
	}
	return holds, nil
}
