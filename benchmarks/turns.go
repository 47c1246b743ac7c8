package main

import (
	"context"
	"time"
)

// ready is how long the holder gives the other side to get from its call to its wait.
const ready = 3 * time.Millisecond

// turns is one side of two that take strict turns: each release finds the other side waiting, and each call finds the lock
// held by the other side.
func turns(ctx context.Context, p peer, j job) (result, error) {
	b, err := openBoard(j.Board)
	if err != nil {
		return result{}, err
	}
	var r result
	var gaps []int64
	start := time.Now()
	end := start.Add(time.Duration(j.Millis) * time.Millisecond)
	ctx, cancel := context.WithCancel(ctx) // without a deadline, which would shorten a peer's leases
	defer cancel()
	defer time.AfterFunc(time.Until(end)+2*time.Second, cancel).Stop() // for a turn that never comes
	for time.Now().Before(end) {
		seen := b.Turn.Load()
		b.Waiting[j.Side].Store(seen + 1)
		h, err := p.Lock(ctx, j.Key)
		if err != nil && time.Now().After(end) { // the other side has released, and nobody told this one
			r.Starved = 1
			break
		}
		if err != nil {
			return r, err
		}
		changed, gap, overlap := b.enter(int64(j.Side+1), 1)
		if overlap {
			r.Overlap++
		}
		if changed {
			r.Done++
			gaps = append(gaps, gap.Nanoseconds())
		}
		turn := b.Turn.Add(1)
		until(end, func() bool { return b.Waiting[1-j.Side].Load() >= turn })
		sleep(ctx, ready)
		b.leave()
		if err := h.Release(context.WithoutCancel(ctx)); err != nil {
			return r, err
		}
		until(end, func() bool { return b.Turn.Load() > turn })
	}
	r.Nanos, r.Gaps = time.Since(start).Nanoseconds(), percentiles(gaps)
	return r, nil
}

// until waits for what the other process does.
func until(end time.Time, done func() bool) {
	for !done() && time.Now().Before(end) {
		time.Sleep(50 * time.Microsecond)
	}
}
