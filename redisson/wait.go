package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/transport"
)

// answerInterval is how much longer than its wait a caller stays for a first answer: with less, a slow one would look like an outage.
const answerInterval = 500 * time.Millisecond

// waiter is one call that waits: for a lock, for permits, or for the end of a count.
type waiter struct {
	c   *Client
	ctx context.Context
	// try asks Redis once, and stays for the answer until by. The wait is done when the waiter has what it wants or, with an
	// error, when its own request can't succeed. Any other error is an outage, or a refusal of all in line. Without one, another
	// try may succeed after ttl even without a message; negative: that is not known.
	try func(by time.Time) (done bool, ttl time.Duration, err error)
	// rest bounds the sleep between two tries; 0: only a third of the watchdog's timeout does.
	rest time.Duration
	// backoff, if there is one, is how a waiter sleeps that gets no messages.
	backoff *backoff
	// hold is what a call for a lock is for; nil for others.
	hold *hold
	// own is the holder for which try asks. A lock that passes to the hold brings another one.
	own    *holder
	at     int           // the level of a permit that has none
	ttl    time.Duration // until there may be one
	stands bool          // in a wake list
	standing

	start time.Time // of the call

	// These are set by run.
	wait     time.Duration
	patience time.Duration // for the first answer of Redis
	place    place
	stay     stay
}

// run waits for at most the given time; 0 tries once, and a negative one waits as long as ctx. Those who give the same id stand in
// one local queue.
func (w *waiter) run(id queueID, wait time.Duration) error {
	w.wait, w.patience = wait, w.c.patience(wait)
	if wait < 0 {
		w.wait = forever
	}
	switch {
	case w.wait <= 0:
		t := w.round(w.start.Add(w.patience))
		if !t.done && t.err == nil {
			t.err = &lock.BusyError{Remaining: max(t.ttl, 0), Waited: time.Since(w.start)}
		}
		return t.err
	}
	var asked *round
	if w.c.queues.first(id) {
		t := w.round(w.start.Add(w.patience))
		if t.done || w.at > 0 {
			w.c.queues.tried(id, t.done && t.err == nil)
		}
		if t.done {
			return t.err
		}
		if asked = &t; w.at > 0 {
			id = w.own.queueOf(w.at)
		}
	}
	for {
		err := w.standIn(id, asked)
		if !errors.Is(err, errElsewhere) {
			return err
		}
		id, asked, w.place = w.own.queueOf(w.at), &round{asked: time.Now(), ttl: w.ttl}, place{}
	}
}

// round is one try, with its outcome.
type round struct {
	asked time.Time
	done  bool
	ttl   time.Duration
	err   error
}

func (w *waiter) round(by time.Time) (t round) {
	t.asked = time.Now()
	t.done, t.ttl, t.err = w.try(by)
	return t
}

// first reports whether a call may ask without standing in line: there is no line, no question for the same is under
// way, and the client does not listen to the channel. The method tried must follow, or join with a place that comes
// first.
func (l *localQueues) first(id queueID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] != nil || l.asking[id] || time.Until(l.aloof[id]) > 0 {
		return false
	}
	if _, live := l.listenedLocked(id); live {
		return false
	}
	l.asking[id] = true
	return true
}

// tried ends a question that first has allowed. Calls that have come meanwhile may ask, but not at once if this one has
// got the lock.
func (l *localQueues) tried(id queueID, got bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asking, id)
	switch ln := l.byID[id]; {
	case ln == nil:
	case got && ln.places.First() != nil && ln.places.First().hold != nil: // to which the lock may pass
		l.restLocked(ln, pollInterval)
	default:
		ln.resumeLocked()
	}
}

// patience returns how long a call with such a wait stays for the first answer of Redis.
func (c *Client) patience(wait time.Duration) time.Duration {
	if wait < 0 || wait > c.timeout {
		return c.timeout
	}
	return min(wait+c.answers, c.timeout)
}

// standIn waits in a local queue, of which it is the first if it has asked already.
func (w *waiter) standIn(id queueID, asked *round) (err error) {
	got := false
	w.stay = stay{waiters: &w.c.waiters, name: id.name, kind: id.kind}
	var next *hold
	if w.own != nil && handsOver(w.own.family) { // whoever has the lock by then was confirmed when it came
		next, w.place.lease = w.hold, w.own.asked
	}
	w.c.queues.join(&w.place, id, next, asked != nil)
	w.c.presence.begin(w)
	defer func() {
		w.c.presence.end(w)
		w.stay.end()
		behind, over := w.c.queues.leave(&w.place, got && err == nil)
		if behind {
			w.c.registry.abandon(w.hold)
		}
		if over != "" {
			w.c.passOn(id, over)
		}
	}()
	if asked != nil {
		got, err = w.answered(*asked, nil, false)
	}
	for !got && err == nil {
		switch next := w.c.queues.next(&w.place); {
		case next.err != nil || next.opened:
			return next.err
		case next.granted != nil:
			got, err = w.receive(*next.granted)
		case next.ask:
			w.stands, w.standing = next.stands, next.standing
			got, err = w.answered(w.round(w.until(next.news, time.Now())), next.changed, next.live)
		default:
			err = w.sleep(nil, forever)
		}
	}
	return err
}

// receive takes a lock that has passed to the hold, and reports whether that was possible. Otherwise the wait goes on, unless the context
// has ended.
func (w *waiter) receive(g grant) (got bool, err error) {
	if g.answer != nil {
		got = w.hold.enter(g.version, g.answer) == nil
	}
	if !got {
		w.hold.holder = w.own
		return false, context.Cause(w.ctx)
	}
	return true, nil
}

// answered ends a round of the head of a queue, which has asked. The order matters. The head took the state of the
// channel before that, so that it misses no message after it. A subscription follows the first refusal; its
// confirmation counts as a change, because messages before it are lost.
func (w *waiter) answered(t round, changed <-chan struct{}, live bool) (done bool, err error) {
	if t.err != nil && !t.done {
		if err = w.outcome(t.asked, t.err); err != nil {
			return false, err
		}
		changed, t.ttl = nil, pollInterval
	} else if w.c.queues.answered(&w.place, t.ttl, t.done); t.done {
		return true, t.err
	} else if _, err = w.over(time.Now()); err != nil { // so nobody subscribes for it
		return false, err
	} else if now, lives, listens := w.c.queues.listen(&w.place); listens {
		if lives && now != changed {
			return false, nil
		}
		changed, live = now, lives
	}
	return false, w.sleep(changed, w.pause(t.ttl, live))
}

// until returns how long the head of a queue waits for the answer to a question that it asks now.
func (w *waiter) until(n news, now time.Time) time.Time {
	if !n.heard {
		return w.start.Add(w.patience)
	}
	if n.silent.IsZero() {
		n.silent = now
	}
	return transport.Earlier(w.start.Add(w.wait), n.silent.Add(w.c.timeout))
}

// outcome returns the error that a failed try is for the head of a queue; the try began at asked. It is nil if Redis
// has answered before and may soon do so again. An error that is true of Redis, and not only of this caller, fails all
// in line.
func (w *waiter) outcome(asked time.Time, err error) error {
	n, cause := w.c.queues.unanswered(&w.place, asked), w.ended()
	switch {
	case cause != nil:
		return cause
	case lasting(err):
	case n.heard && time.Since(n.silent) < w.c.timeout:
		_, err = w.over(time.Now())
		return err
	case !n.heard && errors.Is(err, transport.ErrNoAnswer): // in the time that this caller had for it
		return err
	}
	w.c.queues.fail(&w.place, err)
	return err
}

// over returns when the wait is over, as far as is known now, and why it is if it is: busy if Redis has answered anybody in line.
func (w *waiter) over(now time.Time) (at time.Time, err error) {
	if err = w.ended(); err != nil {
		return at, err
	}
	n, waited := w.c.queues.news(&w.place), now.Sub(w.start)
	switch {
	case n.heard && waited >= w.wait:
		return at, w.busy()
	case !n.heard && waited >= w.patience:
		return at, w.c.road.NoAnswer(waited)
	case !n.heard && (w.patience < w.wait || waited >= w.wait):
		return w.start.Add(w.patience), nil
	}
	return w.start.Add(w.wait), nil
}

// ended returns why the call or the client has ended, or nil.
func (w *waiter) ended() error {
	switch { // Err asks for less than Cause, with which all of a context wait for each other
	case w.ctx.Err() != nil:
		return context.Cause(w.ctx)
	case w.c.ctx.Err() != nil:
		return ErrClosed
	}
	return nil
}

// busy is the error of a call that would have to wait for longer.
func (w *waiter) busy() error {
	n := w.c.queues.news(&w.place)
	return &lock.BusyError{Remaining: max(0, time.Until(n.busyUntil)), Waited: time.Since(w.start)}
}

// pause returns how long to sleep without a message.
func (w *waiter) pause(ttl time.Duration, live bool) time.Duration {
	if w.backoff != nil {
		return w.backoff.next()
	}
	d, late := min(w.c.registry.timeout/3, cmp.Or(w.rest, forever)), time.Millisecond
	if w.stands && live {
		look, later := w.c.queues.looks(&w.place)
		d, late = min(d, look), late+later
	}
	if ttl >= 0 {
		d = min(d, ttl+late)
	}
	if !live && w.place.queue.channel != "" {
		d = min(d, pollInterval)
	}
	return d
}

// sleep returns nil when it is time to look at the waiter's place, when something has changed, or after d, and the
// reason when there is nothing left to wait for. The first sleep of a call makes it one of the client's waiters, which
// MaxWaiters bounds.
func (w *waiter) sleep(changed <-chan struct{}, d time.Duration) error {
	if err := w.stay.begin(); err != nil {
		return fmt.Errorf("%w: %w", err, w.busy())
	}
	now := time.Now()
	for wake := now.Add(d); ; now = time.Now() {
		at, err := w.over(now)
		if err != nil || !now.Before(wake) {
			return err
		}
		select {
		case <-w.place.look:
			return w.ended()
		case <-changed:
			return nil
		case <-time.After(transport.Earlier(wake, at).Sub(now)):
		case <-w.ctx.Done():
		case <-w.c.ctx.Done():
		}
	}
}

// queueID identifies a queue. Its waiters want the same: each could go when the one ahead could.
type queueID struct {
	name    string
	kind    lock.Kind // or one of those below
	permits int64
	alone   string // who stands in a queue of its own, because the fair queue is in Redis
}

// The kinds of queues for something else than a lock.
const (
	latchQueue lock.Kind = 128 + iota
	semaphoreQueue
	permitsQueue
	limiterQueue
)

// queueID returns the queue for the lock of ho.
func (ho *holder) queueID() queueID {
	id := queueID{name: ho.name(), kind: ho.kind, permits: int64(ho.limit)}
	if ho.queues {
		id.alone = ho.id
	}
	return id
}

// channel is the channel of messages that it may be the queue's turn; "" if there is none.
func (id queueID) channel() string {
	switch id.kind {
	case lock.Exclusive, lock.Fenced:
		return lockChannel(id.name)
	case lock.Fair:
		return lockChannel(id.name) + ":" + id.alone
	case lock.Read, lock.Write:
		return rwChannel(id.name)
	case lock.Permit, permitsQueue, semaphoreQueue:
		return semaphoreChannel(id.name)
	case latchQueue:
		return latchChannel(id.name)
	}
	return ""
}
