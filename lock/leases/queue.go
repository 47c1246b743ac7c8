package leases

import (
	"context"
	"errors"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

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

// silence returns when a service that was heard last at since counts as out.
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
