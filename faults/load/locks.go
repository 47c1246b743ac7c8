package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// locks is what the subjects share.
type locks struct {
	*counter
	client *redisson.Client
	inside board
	size   size
}

func newLocks(s setting) (*locks, error) {
	inside, err := openBoard(s.Board, s.Size.Keys)
	if err != nil {
		return nil, err
	}
	// On a machine that is busy with other programs, Redis can be silent for seconds. How long that is, is not what is measured here.
	client, err := redisson.Open("redis://"+s.Redis, redisson.WatchdogTimeout(s.Size.Watchdog), redisson.Timeout(s.Size.Watchdog*2/3))
	return &locks{counter: new(counter), client: client, inside: inside, size: s.Size}, err
}

func key(i int) string { return fmt.Sprint("load:", i) }

// crowd is goroutines that take a few locks in turn.
type crowd struct{ *locks }

func (c *crowd) close() error { return c.client.Close() }

func (c *crowd) run(d time.Duration) {
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for i := range c.size.Goroutines {
		all.Go(func() {
			for time.Now().Before(end) {
				c.turn(i % c.size.Keys)
			}
		})
	}
	all.Wait()
}

// turn takes one lock once.
func (c *crowd) turn(i int) {
	start := time.Now()
	h, err := c.client.Acquire(context.Background(), lock.Request{Key: key(i), Wait: -1})
	if err != nil {
		c.failed(err)
		return
	}
	wait := time.Since(start)
	if c.inside.section(i, func() {}) {
		c.overlap()
	}
	if err := h.Release(context.Background()); err != nil {
		c.failed(err)
	}
	c.done(wait)
}

// held is locks that are held all the time. Calls that are no re-entries try to take them, and must find them busy.
type held struct {
	*locks
	holds []lock.Hold
}

func newHeld(l *locks) *held { return &held{locks: l, holds: make([]lock.Hold, l.size.Keys)} }

// run takes what is not held, and then asks for it all the time.
func (h *held) run(d time.Duration) {
	end := time.Now().Add(d)
	h.each(func(i int) {
		if h.holds[i] != nil {
			return
		}
		start := time.Now()
		got, err := h.client.Acquire(context.Background(), lock.Request{Key: key(i)})
		if err != nil {
			h.failed(err)
			return
		}
		h.holds[i] = got
		h.done(time.Since(start))
	})
	for time.Now().Before(end) {
		h.ask(rand.N(h.size.Keys))
		time.Sleep(time.Millisecond)
	}
	for _, hold := range h.holds {
		if hold != nil && hold.Context().Err() != nil {
			h.failed(fmt.Errorf("a hold ended: %w", context.Cause(hold.Context())))
		}
	}
}

// ask tries to take a lock that is held.
func (h *held) ask(i int) {
	got, err := h.client.Acquire(context.Background(), lock.Request{Key: key(i)})
	switch {
	case errors.Is(err, lock.ErrBusy):
		h.busy()
	case err != nil:
		h.failed(err)
	default:
		h.overlap()
		_ = got.Release(context.Background())
	}
}

// each calls f for each key, in some goroutines.
func (h *held) each(f func(i int)) {
	var all sync.WaitGroup
	for part := range h.size.Goroutines {
		all.Go(func() {
			for i := part; i < h.size.Keys; i += h.size.Goroutines {
				f(i)
			}
		})
	}
	all.Wait()
}

func (h *held) close() error {
	h.each(func(i int) {
		if h.holds[i] == nil {
			return
		}
		if err := h.holds[i].Release(context.Background()); err != nil {
			h.failed(err)
		}
	})
	h.holds = slices.Delete(h.holds, 0, len(h.holds))
	return h.client.Close()
}
