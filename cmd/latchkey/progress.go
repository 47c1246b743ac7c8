package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/redisson"
)

// progress is a line on a terminal that comes and goes.
type progress struct {
	*app
	found      atomic.Int64
	keys, all  atomic.Int64 // of Redis: looked at, and there are
	once       sync.Once
	quit, gone chan struct{}

	mu    sync.Mutex
	shown bool
}

const eraseLine = "\r\x1b[K"

// look notes how far the search has come.
func (p *progress) look(now redisson.Progress) {
	p.keys.Store(now.Keys)
	p.all.Store(now.Total)
}

func (p *progress) show(since time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.err, "%slooking for locks: %d so far, ", eraseLine, p.found.Load())
	if all := p.all.Load(); all > 0 {
		fmt.Fprintf(p.err, "in %d of %d keys, ", p.keys.Load(), all)
	}
	fmt.Fprint(p.err, since.Round(time.Second))
	p.shown = true
}

// without writes something else, for which the line makes room.
func (p *progress) without(write func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.err, eraseLine)
		p.shown = false
	}
	return write()
}

// stop ends it. A second one does nothing.
func (p *progress) stop() {
	p.once.Do(func() {
		close(p.quit)
		<-p.gone
		_ = p.without(func() error { return nil })
	})
}
