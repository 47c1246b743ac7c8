package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// tick is the step in which the embedded Redis' clock follows the real one.
const tick = 10 * time.Millisecond

// embedded is a Redis within this process, for trying things out.
type embedded struct {
	*miniredis.Miniredis
	stop    chan struct{}
	stopped sync.WaitGroup
}

func startEmbedded() (*embedded, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("embedded Redis: %w", err)
	}
	e := &embedded{Miniredis: m, stop: make(chan struct{})}
	e.stopped.Go(e.drive)
	return e, nil
}

// drive moves the clock, which stands still by itself: no lock would ever expire.
func (e *embedded) drive() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-e.stop:
			return
		case now := <-ticker.C:
			e.FastForward(now.Sub(last))
			last = now
		}
	}
}

// Close stops the clock, and then the server.
func (e *embedded) Close() {
	close(e.stop)
	e.stopped.Wait()
	e.Miniredis.Close()
}
