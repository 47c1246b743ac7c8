package redisson

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/lock"
)

const (
	// pollInterval is how often something is tried while no message about it can arrive.
	pollInterval = 250 * time.Millisecond
	// answerInterval is how much longer than its wait a caller stays for a first answer: with less, a slow one would look like
	// an outage.
	answerInterval = 500 * time.Millisecond
)

// waiter is one call that waits: for a lock, for permits, or for the end of a count.
type waiter struct {
	c     *Client
	ctx   context.Context
	wait  time.Duration // 0 tries once; negative waits as long as ctx
	start time.Time
	// try asks Redis once, and stays for the answer until by. It reports whether the waiter has what it wants. If not, another
	// try may succeed after ttl even without a message; negative: that is not known.
	try func(by time.Time) (ok bool, ttl time.Duration, err error)
	// rest bounds the sleep between two tries; 0: only a third of the watchdog's timeout does.
	rest time.Duration
	// backoff, if there is one, is how a waiter sleeps that gets no messages.
	backoff *backoff

	place *place
	timer *time.Timer
}

// run waits. Those who give the same id stand in one line.
func (w *waiter) run(id lineID) (err error) {
	if w.wait == 0 {
		err = w.once()
	} else {
		err = w.standIn(id)
	}
	if own, ok := errors.AsType[refusal](err); ok {
		return own.error
	}
	return err
}

func (w *waiter) once() error {
	ok, ttl, err := w.try(w.firstAnswerBy())
	if !ok && err == nil {
		err = &lock.BusyError{Remaining: max(ttl, 0), Waited: time.Since(w.start)}
	}
	return err
}

// standIn waits in a line. The order of a round matters. The state of the channel is noted before the try, so that a message after
// it is not missed. The first refusal is followed by a subscription; its confirmation counts as a change, because messages before
// it are lost.
func (w *waiter) standIn(id lineID) error {
	w.place = w.c.lines.join(id)
	defer w.c.lines.leave(w.place)
	if err := w.sleep(w.place.turn, nil, forever); err != nil {
		return err
	}
	for {
		changed, live := w.c.lines.changed(w.place)
		asked := time.Now()
		ok, ttl, err := w.try(w.until(asked))
		if err != nil {
			if err = w.outcome(asked, err); err != nil {
				return err
			}
			changed, ttl = nil, pollInterval
		} else if w.c.lines.answered(w.place, ttl); ok {
			return nil
		} else if w.c.lines.listen(w.place) {
			if changed, live = w.c.lines.changed(w.place); live {
				continue
			}
		}
		if err := w.sleep(nil, changed, w.pause(ttl, live)); err != nil {
			return err
		}
	}
}

// refusal is an error of a try that Redis has answered: it is no outage, but the waiter can't go on.
type refusal struct{ error }

// Unwrap returns the error itself.
func (r refusal) Unwrap() error { return r.error }

// until returns how long the head of a line waits for an answer.
func (w *waiter) until(now time.Time) time.Time {
	heard, silent, _ := w.c.lines.news(w.place)
	if !heard {
		return w.firstAnswerBy()
	}
	if silent.IsZero() {
		silent = now
	}
	by := silent.Add(w.c.timeout)
	if w.wait > 0 {
		by = earlier(by, w.start.Add(w.wait))
	}
	return by
}

// firstAnswerBy returns when the first answer of Redis is overdue.
func (w *waiter) firstAnswerBy() time.Time {
	if w.wait < 0 {
		return w.start.Add(w.c.timeout)
	}
	return w.start.Add(min(w.wait+answerInterval, w.c.timeout))
}

// outcome returns what the failure of a try means for the head of a line; the try began at asked. It is nil if Redis has answered
// before and may soon do so again. An error that is true of Redis, and not only of this caller, fails all in line.
func (w *waiter) outcome(asked time.Time, err error) error {
	if cause := firstCause(w.ctx, w.c.ctx); cause != nil {
		return cause
	}
	own, refused := errors.AsType[refusal](err)
	if refused && !errors.Is(own, lock.ErrUnsupported) {
		return own
	}
	if !refused && !lasting(err) {
		heard, silent, _ := w.c.lines.unanswered(w.place, asked)
		switch {
		case heard && time.Since(silent) < w.c.timeout:
			_, err := w.over()
			return err
		case !heard && errors.Is(err, errNoAnswer): // in the time that this caller had for it
			return err
		}
	}
	w.c.lines.fail(w.place, err)
	return err
}

// over returns when the wait is over as far as is known now, and the error if it is: busy if Redis has answered anybody in line.
func (w *waiter) over() (at time.Time, err error) {
	heard, _, remaining := w.c.lines.news(w.place)
	now := time.Now()
	end, firstAnswerBy := w.start.Add(w.wait), w.firstAnswerBy()
	switch {
	case heard && w.wait < 0:
		return now.Add(forever), nil
	case heard && !now.Before(end):
		return end, &lock.BusyError{Remaining: remaining, Waited: now.Sub(w.start)}
	case heard:
		return end, nil
	case !now.Before(firstAnswerBy):
		return end, noAnswer(now.Sub(w.start))
	case w.wait > 0 && now.Before(end):
		return earlier(end, firstAnswerBy), nil
	}
	return firstAnswerBy, nil
}

func noAnswer(after time.Duration) error {
	return fmt.Errorf("redisson: %w within %v", errNoAnswer, after.Round(time.Millisecond))
}

// forever is longer than anything waits.
const forever = 24 * time.Hour

// pause returns how long to sleep without a message.
func (w *waiter) pause(ttl time.Duration, live bool) time.Duration {
	d := w.c.claims.timeout / 3
	if w.rest > 0 {
		d = min(d, w.rest)
	}
	if ttl >= 0 {
		d = min(d, ttl+time.Millisecond)
	}
	switch {
	case w.backoff != nil:
		d = w.backoff.next()
	case !live && w.place.line.id.channel != "":
		d = min(d, pollInterval)
	}
	return d
}

// sleep returns nil when it is the waiter's turn, when something has changed, or after d, and the reason when there is nothing
// left to wait for.
func (w *waiter) sleep(turn <-chan error, changed <-chan struct{}, d time.Duration) error {
	if cause := firstCause(w.ctx, w.c.ctx); cause != nil {
		return cause
	}
	select {
	case err := <-turn:
		return err
	default:
	}
	for wake := time.Now().Add(d); ; {
		at, err := w.over()
		if err != nil {
			return err
		}
		left := time.Until(earlier(wake, at))
		if w.timer == nil {
			w.timer = time.NewTimer(left)
			defer w.timer.Stop()
		} else {
			w.timer.Reset(left)
		}
		select {
		case err := <-turn:
			return err
		case <-changed:
			return nil
		case now := <-w.timer.C:
			if !now.Before(wake) {
				return nil
			}
		case <-w.ctx.Done():
			return context.Cause(w.ctx)
		case <-w.c.ctx.Done():
			return context.Cause(w.c.ctx)
		}
	}
}

// jitter is a time below d that differs between clients and from one time to another. It follows from both, so that a run in
// simulated time can be repeated.
func (c *Client) jitter(d time.Duration) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.id)) // never fails
	return time.Duration(rand.New(rand.NewPCG(h.Sum64(), uint64(time.Now().UnixNano()))).Int64N(int64(d)))
}

// backoff is a growing pause. Each is a random one between the present step and twice as long.
type backoff struct{ first, longest time.Duration }

// next returns a pause and doubles the step, up to the longest.
func (b *backoff) next() time.Duration {
	d := b.first + rand.N(b.first)
	b.first = min(2*b.first, b.longest)
	return min(d, b.longest)
}
