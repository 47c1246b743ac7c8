package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// drain is how long after the end of a job the callers that still wait may get the lock, before they are sent away.
const drain = 100 * time.Millisecond

// caller is one of the goroutines of a job.
type caller struct {
	id      int64
	key     string
	times   []int64 // of a pair, or on one key of a wait, in ns
	gaps    []int64
	served  bool // since the moment that counts
	changes int64
	overlap int64
	longest int64
	failed  int64
	failure error
}

// load has callers lock and unlock, each its own key or all the same, until the time is over. Each takes one of the peers.
func load(ctx context.Context, peers []peer, j job) (result, error) {
	b, err := openBoard(j.Board)
	if err != nil {
		return result{}, err
	}
	callers := make([]caller, j.Callers)
	for i := range callers {
		callers[i] = caller{id: int64(j.Side*j.Callers + i + 1), key: j.Key, times: make([]int64, 0, 4096)}
		if !j.OneKey {
			callers[i].key = fmt.Sprint(j.Key, ":", i)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var over atomic.Bool
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	since, counts := start.Add(time.Duration(j.Since)*time.Millisecond), start.Add(time.Duration(j.Skip)*time.Millisecond)
	for i := range callers {
		all.Go(func() { callers[i].run(ctx, peers[i%len(peers)], b, j, since, counts, &over) })
	}
	sleep(ctx, time.Duration(j.Millis)*time.Millisecond)
	over.Store(true)
	nanos := time.Since(start).Nanoseconds()
	runtime.ReadMemStats(&after)
	stop := time.AfterFunc(drain, cancel)
	all.Wait()
	stop.Stop()
	return sum(callers, nanos, float64(after.Mallocs-before.Mallocs)), nil
}

func (c *caller) run(ctx context.Context, p peer, b *board, j job, since, counts time.Time, over *atomic.Bool) {
	away := time.Duration(j.Away) * time.Millisecond
	for !over.Load() {
		start := time.Now()
		h, err := p.Lock(ctx, c.key)
		waited := time.Since(start).Nanoseconds()
		if over.Load() { // what took longer than the job does not count
			c.longest = max(c.longest, waited)
			if err == nil {
				_ = h.Release(context.WithoutCancel(ctx))
			}
			return
		}
		if err != nil {
			c.fail(err)
			sleep(ctx, time.Millisecond)
			continue
		}
		c.served = c.served || time.Now().After(since)
		if j.OneKey {
			c.enter(b, j, waited, j.Skip == 0 || time.Now().After(counts))
			sleep(ctx, time.Duration(j.Hold)*time.Millisecond)
			b.leave()
		}
		err = h.Release(context.WithoutCancel(ctx))
		if err != nil && !over.Load() {
			c.fail(err)
		}
		if !j.OneKey {
			c.times = append(c.times, time.Since(start).Nanoseconds())
		}
		sleep(ctx, away)
	}
}

// enter notes an acquisition of the one key. The method leave of the board follows.
func (c *caller) enter(b *board, j job, waited int64, counts bool) {
	changed, gap, overlap := b.enter(c.id, int64(j.Limit))
	if counts {
		c.times = append(c.times, waited)
	}
	c.longest = max(c.longest, waited)
	if changed {
		c.changes++
		c.gaps = append(c.gaps, gap.Nanoseconds())
	}
	if overlap {
		c.overlap++
	}
}

func (c *caller) fail(err error) {
	c.failed++
	c.failure = err
}

// sum adds up what the callers have seen.
func sum(callers []caller, nanos int64, allocs float64) result {
	r := result{Nanos: nanos}
	var times, gaps []int64
	for _, c := range callers {
		r.Done += int64(len(c.times))
		times, gaps = append(times, c.times...), append(gaps, c.gaps...)
		r.Changes += c.changes
		r.Overlap += c.overlap
		r.Longest = max(r.Longest, c.longest)
		r.Failed += c.failed
		if c.failure != nil {
			r.Failure = c.failure.Error()
		}
		if !c.served {
			r.Starved++
		}
	}
	r.Times, r.Gaps = percentiles(times), percentiles(gaps)
	if r.Done > 0 {
		r.Allocs = allocs / float64(r.Done)
	}
	return r
}

// percentiles returns the median, the 99th percentile and the maximum, and nothing of nothing.
func percentiles(all []int64) []int64 {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return []int64{all[len(all)/2], all[len(all)*99/100], all[len(all)-1]}
}

// pair locks and unlocks key.
func pair(ctx context.Context, p peer, key string) error {
	h, err := p.Lock(ctx, key)
	if err != nil {
		return err
	}
	return h.Release(ctx)
}

// sleep waits for d, or for the end of ctx. No time at all is not even a turn for others.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
