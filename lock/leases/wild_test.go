package leases_test

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/lock/leases"
)

// wild is the network between a Locker and its service.
type wild struct {
	w       *world
	process int
	*memory
}

var errNetwork = errors.New("the network failed")

// carry does op in the service, with what networks do to requests.
func carry[T any](ctx context.Context, s wild, op func() (T, error)) (T, error) {
	var none T
	w := s.w
	switch calm, cut := w.weather(s.process); {
	case calm:
		return op()
	case cut:
		wait(ctx, w.span(2*time.Second))
		return none, errNetwork
	}
	if w.chance(1) {
		panic("the driver has a fault")
	}
	if w.chance(3) { // a driver that does not look at its context
		time.Sleep(w.span(5 * time.Second))
	}
	wait(ctx, w.span(20*time.Millisecond))
	switch n := w.n(100); {
	case n < 4: // lost
		wait(ctx, w.span(2*time.Second))
		return none, errNetwork
	case n < 10: // given up, and late
		late := w.span(20 * time.Second)
		go func() {
			time.Sleep(late)
			_, _ = op()
		}()
		wait(ctx, w.span(2*time.Second))
		return none, errNetwork
	case n < 15: // done, and the answer is lost
		_, _ = op()
		wait(ctx, w.span(2*time.Second))
		return none, errNetwork
	case n < 20: // slow
		wait(ctx, w.span(time.Second))
	case n < 25: // the answer is slow, and then there is none for a while
		value, err := op()
		wait(ctx, w.span(900*time.Millisecond))
		w.cutOff(s.process, w.span(2*watchdog))
		if ctx.Err() != nil {
			return none, context.Cause(ctx)
		}
		return value, err
	}
	value, err := op()
	wait(ctx, w.span(20*time.Millisecond))
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	return value, err
}

// weather reports whether the play is over, and whether the process is cut off.
func (w *world) weather(process int) (calm, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm, time.Now().Before(w.cut[process])
}

func (w *world) cutOff(process int, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[process] = time.Now().Add(d)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (s wild) Take(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	s.w.met(e)
	d = s.coarse(d)
	return carry(ctx, s, func() (leases.Grant, error) {
		g, err := s.memory.Take(ctx, e, d)
		g.Lease = d
		return g, err
	})
}

func (w *world) met(e *leases.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries[e.ID] = e
}

// coarse is what this service makes of a lease: at times more than was asked for, or less.
func (s wild) coarse(d time.Duration) time.Duration {
	switch n := s.w.n(20); {
	case n == 0:
		return d + s.w.span(2*time.Second)
	case n == 1 && d > time.Second:
		return d - d/4
	}
	return d
}

func (s wild) Extend(ctx context.Context, e *leases.Entry, d time.Duration) (time.Duration, error) {
	d = s.coarse(d)
	return carry(ctx, s, func() (time.Duration, error) {
		_, err := s.memory.Extend(ctx, e, d)
		return d, err
	})
}

func (s wild) Free(ctx context.Context, e *leases.Entry, keep time.Duration) error {
	_, err := carry(ctx, s, func() (struct{}, error) { return struct{}{}, s.memory.Free(ctx, e, keep) })
	return err
}

func (s wild) Downgrade(ctx context.Context, e *leases.Entry) error {
	_, err := carry(ctx, s, func() (struct{}, error) { return struct{}{}, s.memory.Downgrade(ctx, e) })
	return err
}

// wildLine has the line of the service, too.
type wildLine struct{ wild }

func (s wildLine) Enter(ctx context.Context, e *leases.Entry, d time.Duration) (leases.Grant, error) {
	s.w.met(e)
	if s.w.chance(5) {
		wait(ctx, s.w.span(2*time.Second))
		return leases.Grant{}, errNetwork
	}
	g, err := fifo{s.memory}.Enter(ctx, e, d)
	switch {
	case s.w.chance(2):
		panic("the driver has a fault")
	case s.w.chance(5): // the answer is lost
		return leases.Grant{}, errNetwork
	case s.w.chance(5):
		time.Sleep(s.w.span(3 * time.Second))
	}
	return g, err
}

// wildWatch sends messages that mean something or nothing, and loses others.
type wildWatch struct{ wild }

func (s wildWatch) Watch(ctx context.Context, _ string) (<-chan struct{}, func(), error) {
	switch s.w.n(10) {
	case 0:
		panic("the driver has a fault")
	case 1:
		return nil, nil, errNetwork
	case 2:
		time.Sleep(s.w.span(3 * time.Second))
	}
	messages := make(chan struct{})
	go func() {
		defer close(messages)
		for range s.w.n(20) {
			wait(ctx, s.w.span(500*time.Millisecond))
			select {
			case messages <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return messages, func() {}, nil
}
