package memlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

// randomRequest names some of three keys in any order, with limits that change from call to call, and perhaps a rate.
func randomRequest(r *rand.Rand) lock.Request {
	q := lock.Request{Kind: lock.Permit, Wait: time.Duration(r.IntN(40)-5) * time.Millisecond}
	for i, n := range r.Perm(3)[:1+r.IntN(3)] {
		level := lock.Level{Key: string(rune('a' + n)), Limit: 1 + r.IntN(n+2)} // up to 2 of a, 3 of b, 4 of c
		if i == 0 {
			q.Key, q.Limit = level.Key, level.Limit
			continue
		}
		q.Levels = append(q.Levels, level)
	}
	if r.IntN(3) == 0 {
		q.Rate = lock.Rate{Permits: 1 + r.IntN(5), Interval: time.Duration(1+r.IntN(20)) * time.Millisecond}
		if len(q.Levels) == 0 && r.IntN(2) == 0 {
			q.Limit = 0
		}
	}
	if r.IntN(4) == 0 {
		q.MaxHold = time.Duration(1+r.IntN(10)) * time.Millisecond
	}
	return q
}

// Whatever calls come, those who wait have a reason to, and in the end nothing is left.
func TestRandomLevels(t *testing.T) {
	for seed := range uint64(300) {
		bubble(t, func(t *testing.T, l *Locker) {
			var wg sync.WaitGroup
			for i := range uint64(12) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(seed, i))
					for range 15 {
						l.randomCall(t, r)
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				case <-time.After(time.Millisecond):
				}
				synctest.Wait()
				l.checkLines(t)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if len(l.rates) != 0 {
				t.Errorf("%d rates left behind", len(l.rates))
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// randomCall holds what it gets for a while, and perhaps makes another call under it.
func (l *Locker) randomCall(t *testing.T, r *rand.Rand) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(60))*time.Millisecond)
	defer cancel()
	h, err := l.Acquire(ctx, randomRequest(r))
	if err != nil {
		if !errors.Is(err, lock.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire() = %v", err)
		}
		return
	}
	time.Sleep(time.Duration(r.IntN(5000)) * time.Microsecond)
	if inner, err := l.Acquire(h.Context(), randomRequest(r)); err == nil {
		time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
		defer func() { _ = inner.Release(ctx) }()
	}
	if r.IntN(5) == 0 {
		_ = h.(keeper).Keep(ctx, time.Duration(r.IntN(5))*time.Millisecond)
	}
	if err := h.Release(ctx); err != nil && !errors.Is(err, lock.ErrLost) && !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Release() = %v", err)
	}
}

// checkLines checks that each line is in the order of arrival, and that its gate is shut to the first.
func (l *Locker) checkLines(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	check := func(g gate) {
		last := uint64(0)
		for w := range g.line().All() {
			if w.number <= last || w.at != g {
				t.Errorf("number %d is behind number %d", w.number, last)
			}
			last = w.number
		}
		if w := g.line().First(); w != nil && !g.shut(w.hold) {
			t.Errorf("%+v waits for nothing", w.r)
		}
	}
	for key, e := range l.keys {
		check(e)
		stays := make(map[*stay]bool)
		for c := range e.holds.All() {
			stays[c.stay] = true
		}
		if limit := int(key[0]-'a') + 2; e.key != key || e.stays != len(stays) || e.stays == 0 || e.stays > limit {
			t.Errorf("%q has %d stays, counted as %d, with limits of up to %d", key, len(stays), e.stays, limit)
		}
	}
	for _, r := range l.rates {
		check(r)
	}
}
