package guard

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DrainReport is the result of Drain.
type DrainReport struct {
	// Took is how long Drain waited.
	Took time.Duration
	// Ended is how many calls ended meanwhile that were running when Drain began, or that such calls made.
	Ended int
	// Refused is how many calls were refused with ErrDraining so far: those in line for a lock, and new ones.
	Refused int
	// Running is how many calls are still running, by guard. It is empty if Drain succeeded.
	Running map[string]int
}

// Drain lets no new calls in, refuses those that are in line for a lock, and waits until the others have ended and
// given back their locks. The work of a running call goes on as ever, further guarded calls included. A Stack is one
// call, which is in line until it has all of its locks. The measurement of the mode Shadow is a part of its call. Only
// the context of a Lead ends.
//
// The error says which guards were still running when ctx ended. Nothing is undone then: Drain may be called once more.
func (r *Registry) Drain(ctx context.Context) (DrainReport, error) {
	start := time.Now()
	before, idle := r.gate.close()
	r.begin()
	select {
	case <-idle:
	case <-ctx.Done():
	}
	report := DrainReport{Took: time.Since(start), Running: make(map[string]int)}
	ended, refused, calls := r.gate.count()
	report.Ended, report.Refused = ended-before, refused
	if calls == 0 {
		return report, nil
	}
	var running []string
	for _, e := range r.list() {
		if n := int(e.inside.Load()); n > 0 {
			report.Running[e.spec().Name] = n
			running = append(running, fmt.Sprintf("%s (%d)", e.spec().Name, n))
		}
	}
	return report, fmt.Errorf("guard: still running after %v: %s: %w", report.Took, strings.Join(running, ", "), context.Cause(ctx))
}

// gate counts the calls of a Registry that are under way.
type gate struct {
	mu      sync.Mutex
	running int
	ended   int
	refused int
	idle    chan struct{} // closed when nothing runs anymore; nil until the gate is closed
}

// enter lets a call in. A closed gate lets in only calls inside of a running one.
func (g *gate) enter(nested bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle != nil && (!nested || g.running == 0) {
		g.refused++
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.ended++
	if g.running == 0 && g.idle != nil {
		close(g.idle) // once, as nobody enters from now on
	}
}

// refuse counts a call that was let in, and then had to go.
func (g *gate) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused++
	g.ended-- // it is about to leave
}

// close closes the gate. It returns how many calls have ended so far, and a channel that is closed when nothing runs
// anymore.
func (g *gate) close() (ended int, idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.idle == nil {
		g.idle = make(chan struct{})
		if g.running == 0 {
			close(g.idle)
		}
	}
	return g.ended, g.idle
}

func (g *gate) count() (ended, refused, running int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended, g.refused, g.running
}

// insideContext marks work inside of a call of a Registry.
type insideContext struct {
	context.Context
	registry *Registry
	over     atomic.Bool // the call has ended
}

type insideKey struct{}

func (c *insideContext) Value(key any) any {
	if key == (insideKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// within reports whether ctx is inside of a call of r that has not ended.
func (r *Registry) within(ctx context.Context) bool {
	c, ok := ctx.Value(insideKey{}).(*insideContext)
	for ok && (c.registry != r || c.over.Load()) {
		c, ok = c.Context.Value(insideKey{}).(*insideContext)
	}
	return ok
}
