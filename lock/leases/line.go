package leases

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

var errLate = errors.New("leases: the wait is over")

// line waits in the line of this process. The first one asks the service, and then again after a pause, or when something has changed.
func (c *claim) line(ctx context.Context) (*hold, error) {
	p := c.join()
	defer c.leave(p)
	for {
		ask, err := c.turn(p)
		if at, reason := c.bounds(p); err == nil && !at.IsZero() && !time.Now().Before(at) {
			err = reason
		}
		if err != nil {
			return nil, err
		}
		var pause <-chan time.Time
		if ask {
			h, err := c.first(ctx, p)
			if h != nil || err != nil {
				return h, err
			}
			pause = time.After(c.l.pause + rand.N(c.l.random+1))
		}
		if err := c.sleep(ctx, p, pause); err != nil {
			return nil, err
		}
	}
}

func (c *claim) join() *place {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	p := c.l.placeLocked(c.r.Key)
	p.line.Join(&c.at, &c.waiter)
	return p
}

func (c *claim) leave(p *place) {
	if c.unwatch != nil {
		c.unwatch()
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if p.line.First() == &c.waiter {
		defer p.wakeLocked()
	}
	c.at.Leave()
	c.l.sweepLocked(c.r.Key)
}

// turn reports whether the claim must ask the service: it is the first in line, and nobody of this process is in the
// way.
func (c *claim) turn(p *place) (bool, error) {
	leaving, err := c.obstacle()
	switch {
	case errors.Is(err, lock.ErrBusy) || leaving != nil:
		return false, nil
	case err != nil:
		return false, err
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	return p.line.First() == &c.waiter, nil
}

// first asks for the first in line. It returns neither a hold nor an error if the wait goes on.
func (c *claim) first(ctx context.Context, p *place) (*hold, error) {
	at, reason := c.patience(p)
	limited, cancel := context.WithDeadlineCause(ctx, at, errLate)
	defer cancel()
	asked := time.Now()
	c.asking(p, true)
	h, err := c.try(ctx, limited)
	c.asking(p, false)
	switch {
	case err == nil:
		return h, nil
	case ctx.Err() != nil:
		return nil, leftEarly{ctx}
	case errors.Is(err, lock.ErrBusy):
		c.heard(p, nil)
		c.watch(ctx)
		return nil, nil
	case certain(err):
		return nil, err
	case limited.Err() != nil && time.Since(asked) < c.l.timeout: // this says nothing about the service
		return nil, reason
	case limited.Err() != nil:
		err = errSilent
	}
	c.heard(p, err)
	return nil, nil
}

func (c *claim) asking(p *place, now bool) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	p.asking = now
	if now && p.outage == nil {
		p.silent = time.Now()
	}
}

// heard notes the answer of the service, for all who wait.
func (c *claim) heard(p *place, outage error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if outage == nil {
		p.known = time.Now()
	}
	if (outage != nil) != (p.outage != nil) { // the others have to see to their bounds
		for w := range p.line.All() {
			if w != &c.waiter { // which looks now, and then has to pause
				w.signal()
			}
		}
	}
	p.outage = outage
}

// watch listens to the store from the first refusal on, if it can be listened to, until the claim leaves. As what happened before it
// listened was not heard, the claim asks again then. A Watch that hangs, fails or ends leaves the claim to its pauses.
func (c *claim) watch(ctx context.Context) {
	w, ok := c.l.store.(Watcher)
	if !ok || c.unwatch != nil {
		return
	}
	ctx, c.unwatch = context.WithCancel(ctx)
	go func() {
		defer func() { _ = recover() }() // the client's fault costs the messages and nothing else
		changed, stop, err := w.Watch(ctx, c.r.Key)
		if err != nil {
			return
		}
		if stop != nil {
			defer stop()
		}
		for open := ctx.Err() == nil; open; {
			c.signal()
			select {
			case _, open = <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// bounds returns when the claim gives up, and with which error. That the lock is busy it says only if it is known.
func (c *claim) bounds(p *place) (time.Time, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	known := !p.known.Before(c.start) || !p.known.IsZero() && !p.asking
	switch {
	case p.outage == nil && (known || len(p.stays) > 0):
		return c.end, lock.ErrBusy
	case known:
		if last := p.silent.Add(c.l.timeout); c.end.IsZero() || last.Before(c.end) {
			return last, p.outage
		}
		return c.end, lock.ErrBusy
	}
	return c.silence(c.start, false), cmp.Or(p.outage, errSilent)
}

// patience returns until when the claim waits for the answer to a question, which ends with the Timeout in any case, and what it
// returns then.
func (c *claim) patience(p *place) (time.Time, error) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	switch {
	case p.known.Before(c.start):
		return c.silence(c.start, false).Add(grace), cmp.Or(p.outage, errSilent)
	case c.end.IsZero():
		return c.start.Add(longest), errSilent
	}
	return c.end.Add(grace), lock.ErrBusy
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// sleep waits until there is a reason to look again, or returns why the claim gives up.
func (c *claim) sleep(ctx context.Context, p *place, pause <-chan time.Time) error {
	at, _ := c.bounds(p)
	if time.Now().Before(c.end) && c.end.Before(at) { // what is known by then may be another end
		at = c.end
	}
	var end <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-c.wake:
	case <-pause:
	case <-end:
	case <-ctx.Done():
		return leftEarly{ctx}
	}
	return nil
}

// queue waits in the line of the service. After an outage it comes again, at the end of the line.
func (c *claim) queue(ctx context.Context, q Queue) (*hold, error) {
	if _, err := c.obstacle(); errors.Is(err, lock.ErrUnsupported) {
		return nil, err
	}
	since := c.start // when the service was heard last
	answered := false
	for pause := firstTidy; ; pause = min(2*pause, time.Second) {
		h, err := c.queueOnce(ctx, q, c.silence(since, answered))
		answered = answered || c.entry.answered.Load()
		switch {
		case err == nil:
			return h, nil
		case ctx.Err() != nil:
			return nil, leftEarly{ctx}
		case certain(err):
			return nil, err
		case c.over() && answered:
			return nil, lock.ErrBusy
		}
		if c.entry.answered.Load() {
			since = time.Now()
		}
		if last := c.silence(since, answered); time.Now().Add(pause).After(last) {
			return nil, err
		}
		c.entry = c.l.entry(c.r)
		if !clock.Sleep(ctx, pause) {
			return nil, leftEarly{ctx}
		}
	}
}

// over reports whether the claim has waited for as long as it was ready to.
func (c *claim) over() bool { return !c.end.IsZero() && !time.Now().Before(c.end) }

// silence returns when a service counts as out. It answered last at since or, if answered is false, was first asked
// then.
func (c *claim) silence(since time.Time, answered bool) time.Time {
	last := since.Add(c.l.timeout)
	switch {
	case c.end.IsZero():
		return last
	case answered:
		return earlier(last, c.end)
	}
	return earlier(last, c.end.Add(extra))
}

// queueOnce enters the line with the present entry, and frees it if that does not end in a hold. Until silent the service has to have
// put it in line.
func (c *claim) queueOnce(ctx context.Context, q Queue, silent time.Time) (*hold, error) {
	e := c.entry
	inLine, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(time.Until(silent), func() {
		if !e.answered.Load() || c.over() {
			cancel(errSilent)
		}
	}).Stop()
	if !c.end.IsZero() {
		defer time.AfterFunc(time.Until(c.end), func() {
			if e.answered.Load() {
				cancel(errLate)
			}
		}).Stop()
	}
	asked := time.Now()
	g, err := c.enterLine(inLine, q, e)
	switch late := context.Cause(inLine); {
	case err == nil:
		return c.granted(ctx, g, asked)
	case errors.Is(late, errLate):
		return nil, lock.ErrBusy
	case errors.Is(late, errSilent):
		return nil, errSilent
	}
	return nil, err
}

// enterLine is Enter, but returns soon after ctx has ended. An entry that was not granted is freed.
func (c *claim) enterLine(ctx context.Context, q Queue, e *Entry) (Grant, error) {
	patient, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, leave) })()
	free := func(err error) { c.l.remove(e, c.lease, err != nil && !certain(err)) }
	a := ask(patient, e, longest, func(context.Context) (Grant, error) { return q.Enter(ctx, e, c.lease) }, free)
	switch {
	case a.open:
		return Grant{}, context.Cause(ctx)
	case a.err != nil:
		free(a.err)
	}
	return a.value, a.err
}
