package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"
)

// holders is how many goroutines take the locks of a job.
const holders = 64

// primers is how many of the locks are taken before memory is measured, after primings in which they are released again: with
// them come connections and what else a client has once.
const (
	primers  = 10 * holders
	primings = 10
)

// holdAll takes j.Count locks, more than the primers. The caller's own memory of them, a name and two words each, was
// there before and does not count.
func (w *worker) holdAll(ctx context.Context, p peer, j job) (result, error) {
	keys := make([]string, j.Count)
	for i := range keys {
		keys[i] = fmt.Sprint(j.Key, ":", i)
	}
	w.holds = make([]held, len(keys))
	for range primings {
		if err := w.prime(ctx, p, keys[:primers]); err != nil {
			return result{}, err
		}
	}
	if err := w.take(ctx, p, keys[:primers], w.holds); err != nil {
		return result{}, err
	}
	bytes, goroutines := memory()
	start := time.Now()
	if err := w.take(ctx, p, keys[primers:], w.holds[primers:]); err != nil {
		return result{}, err
	}
	r := result{Done: int64(j.Count), Nanos: time.Since(start).Nanoseconds()}
	bytesAfter, goroutinesAfter := memory()
	r.Bytes = (bytesAfter - bytes) / float64(j.Count-primers)
	r.Routine = math.Round(100*(goroutinesAfter-goroutines)/float64(j.Count-primers)) / 100 // a few that a client has once are none a lock
	runtime.KeepAlive(keys)
	return r, nil
}

// prime takes these locks and releases them.
func (w *worker) prime(ctx context.Context, p peer, keys []string) error {
	holds := make([]held, len(keys))
	if err := w.take(ctx, p, keys, holds); err != nil {
		return err
	}
	for _, h := range holds {
		if err := h.Release(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take takes the locks of these names.
func (w *worker) take(ctx context.Context, p peer, keys []string, holds []held) error {
	errs := make([]error, holders)
	var all sync.WaitGroup
	for n := range holders {
		all.Go(func() {
			for i := n; i < len(keys) && errs[n] == nil; i += holders {
				holds[i], errs[n] = p.Lock(ctx, keys[i])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// memory returns the bytes in use, on the heap and for the stacks of goroutines, and how many goroutines there are.
func memory() (bytes, goroutines float64) {
	runtime.GC()
	runtime.GC() // what finalizers and pools have kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse), float64(runtime.NumGoroutine())
}
