package redisson

import (
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/queue"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// localQueues are the queues of this process' waiters, one for each thing that is waited for. Only the head of a queue asks Redis, so a
// process is one contender, however many of its goroutines wait.
//
// Within a queue, a lock passes from one hold to the next: the holder stays in Redis, and nobody else hears of it. Such
// a streak has a bound; see release.go. At its end the lock is released as usual, and the queue leaves it to others for
// a moment.
type localQueues struct {
	subscriber *pubsub.Subscriber
	timeout    time.Duration // the watchdog's
	client     string        // its id
	joined     int64         // how often a queue of it has stood in a wake list

	mu     sync.Mutex
	byID   map[queueID]*localQueue
	asking map[queueID]bool      // questions of callers that stand in no queue
	aloof  map[queueID]time.Time // until when locks are left to others
}

// localQueue has one state for all of its waiters. The mutex of localQueues guards it.
type localQueue struct {
	id           queueID
	channel      string // where others hear that it may be its turn, and it, too, if there is no wake list; "" means nowhere
	places       queue.Queue[*place]
	subscription *pubsub.Subscription // made by the first refusal
	failed       *place               // whose error has ended it
	news
	standing

	// While the head rests, the alarm is set.
	rests bool        // the head does not ask: somebody of the queue has just got the lock, or others are to get it
	alarm *time.Timer // has the head ask
}

// news is what the waiters of a queue know of the lock.
type news struct {
	heard     bool      // Redis has answered the head
	busyUntil time.Time // as far as the head has heard
	silent    time.Time // when the first question without an answer was sent; zero after an answer
}

// pollInterval is the pause between two tries while no message can arrive.
const pollInterval = 250 * time.Millisecond

// yieldTime bounds the time that a lock is left to others after a streak: that is as long as a turn was, or as the release took.
const yieldTime = 2 * time.Millisecond

// place is one waiter's place in a queue.
type place struct {
	queue *localQueue
	hold  *hold         // that the lock can be passed to; may be nil
	lease time.Duration // with which it asks for the lock

	// The mutex of localQueues guards the rest.
	at      queue.Place[*place]  // in no queue once it was left, or the queue has failed
	look    chan struct{}        // receives when next may answer something else
	busy    bool                 // nothing is offered: it asks Redis, looks at what it was granted, or has what it has waited for
	offered bool                 // the lock may pass to the hold
	granted *grant               // what came of that
	ear     *pubsub.Subscription // hears that the latch is opened, once the waiter has to wait; nil for others
	err     error                // why the queue has failed
}

// grant is the outcome of an offer: the answer of Redis to a question about this version of the holder. Without one,
// the lock has not passed.
type grant struct {
	answer  *answer
	version int32
}

// step is a waiter's next step. The zero value is to sleep until something changes.
type step struct {
	err     error  // return it
	granted *grant // see whether it brings the lock
	opened  bool   // the wait for a latch is over
	ask     bool   // ask Redis

	// To ask: the state of the channel, as of changed, and what is known in the queue.
	changed <-chan struct{}
	live    bool
	news    news
	stands  bool // in the wake list, or is about to
	standing
}

// join makes p the last place of a queue, or the first, of a call that has asked already. Leave must be called once for it. A lock can pass to h, unless
// that is nil.
func (l *localQueues) join(p *place, id queueID, h *hold, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[id]
	if ln == nil {
		ln = &localQueue{id: id, channel: id.channel(), rests: l.asking[id] && !first}
		l.byID[id] = ln
		if aloof := time.Until(l.aloof[id]); aloof > 0 {
			l.restLocked(ln, aloof)
		}
	}
	if p.queue, p.hold, p.look = ln, h, make(chan struct{}, 1); !first {
		ln.places.Join(&p.at, p)
		return
	}
	delete(l.asking, id)
	ln.places.Lead(&p.at, p)
	ln.rests = false
}

// waits reports whether the queue of that id has a waiter.
func (l *localQueues) waits(id queueID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id] != nil
}

// next returns the next step of the waiter at a place.
func (l *localQueues) next(p *place) (s step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.err != nil || p.opened() {
		return step{err: p.err, opened: p.err == nil}
	}
	s.granted, p.granted = p.granted, nil
	if s.granted == nil && !p.offered && !p.queue.rests && p.queue.places.First() == p {
		s.ask, s.news = true, p.queue.news
		s.changed, s.live = l.changedLocked(p.queue)
		if s.live && keepsList(p.queue.id.kind) {
			s.stands, s.standing = true, l.standLocked(p.queue)
		}
	}
	if p.busy = s.ask || s.granted != nil; !p.busy {
		l.hearLocked(p)
	}
	return s
}

// leave gives up a place; the next one becomes the head if this was it. Whether the waiter got what it wanted matters to those
// behind. Leave reports whether a lock was passed to the waiter, who leaves it behind, and which member of a wake list nobody stands for any more.
func (l *localQueues) leave(p *place, got bool) (behind bool, over string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind = p.granted != nil && p.granted.answer != nil
	if p.ear != nil {
		p.ear.Close()
	}
	head := p.queue.places.First()
	if !p.at.Leave() {
		if p == p.queue.failed && p.queue.listed {
			over = p.queue.member
		}
		return behind, over
	}
	switch {
	case p.queue.places.First() == nil:
		if l.dropLocked(p.queue) {
			over = p.queue.member
		}
	case head != p:
	case got && p.hold != nil:
		l.restLocked(p.queue, pollInterval)
	default:
		p.queue.resumeLocked()
	}
	return behind, over
}

// fail ends the wait of all behind p, the head, with its error, because Redis would give them no better answer. Later waiters start a
// new queue.
func (l *localQueues) fail(p *place, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropLocked(p.queue)
	p.queue.failed = p
	for other := p; other != nil; other = p.queue.places.First() {
		other.at.Leave()
		other.err = err
		other.wakeLocked()
	}
}

// dropLocked ends a queue. It reports whether a wake list may have its member.
func (l *localQueues) dropLocked(ln *localQueue) bool {
	delete(l.byID, ln.id)
	if ln.alarm != nil {
		ln.alarm.Stop()
	}
	if ln.subscription != nil {
		ln.subscription.Close()
	}
	return ln.endLocked()
}

// rest makes the head of the queue for h's lock rest until released: it would be there before others.
func (l *localQueues) rest(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.ofLocked(h); ln != nil {
		l.restLocked(ln, pollInterval)
	}
}

// restLocked makes the head of a queue rest for a while.
func (l *localQueues) restLocked(ln *localQueue, d time.Duration) {
	ln.rests = true
	if ln.alarm == nil {
		ln.alarm = time.AfterFunc(d, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			ln.resumeLocked()
		})
	}
	ln.alarm.Reset(d)
}

// resume makes the head of the queue for h's lock ask now, if it rests: no release will wake it.
func (l *localQueues) resume(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.ofLocked(h); ln != nil && ln.rests {
		ln.resumeLocked()
	}
}

// resumeLocked makes the head of a queue ask, if there is one.
func (ln *localQueue) resumeLocked() {
	ln.rests = false
	if head := ln.places.First(); head != nil {
		head.wakeLocked()
	}
}

// wakeLocked makes the waiter at p look at its place.
func (p *place) wakeLocked() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}

// offer chooses the place to whose hold the lock of h may pass: the head of its queue, unless there is none or it is busy. The method give
// or retract must follow. It reports whether there is a queue.
func (l *localQueues) offer(h *hold) (p *place, some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.ofLocked(h)
	if ln == nil {
		return nil, false
	}
	p = ln.places.First()
	if p.hold == nil || p.busy || p.offered || p.granted != nil {
		return nil, true
	}
	p.offered = true
	return p, true
}

// ofLocked returns the queue for the lock of h, or nil if there is none.
func (l *localQueues) ofLocked(h *hold) *localQueue {
	if len(l.byID) == 0 { // which is usual
		return nil
	}
	return l.byID[h.holder.queueID()]
}

// give passes the outcome of an offer to its place, and notes for all in line that the lock is busy. It reports whether
// the waiter is still there.
func (l *localQueues) give(p *place, g grant) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.offered, p.granted = false, &g
	p.wakeLocked()
	if !p.at.In() {
		return false
	}
	if g.answer != nil {
		p.queue.news = news{heard: true, busyUntil: g.answer.Sent.Add(p.lease)}
	} else {
		p.queue.resumeLocked() // no release will wake it
	}
	return true
}

// retract takes an offer back that has changed nothing.
func (l *localQueues) retract(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.offered = false
	if !p.queue.rests {
		p.wakeLocked()
	}
}

// released makes the queue of a released lock leave it to others for a moment, unless nobody else was notified. A
// negative number says that this is not known. A moment is as long as a turn of the streak, or longer: others need as
// long as the release took.
func (l *localQueues) released(h *hold, notified int64, moment time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := h.holder.queueID()
	ln := l.byID[id]
	others := notified
	switch {
	case notified <= 0:
	case keepsList(id.kind):
		if _, live := l.subscriber.Changed(id.channel()); live || ln != nil && ln.ear != nil {
			others-- // that is this client, whose channel may linger
		}
	case ln != nil:
		if _, live := l.changedLocked(ln); live || ln.subscription != nil {
			others--
		}
	}
	if ln == nil {
		if keepsList(id.kind) && others > 0 {
			if len(l.aloof) >= mostAloof {
				clear(l.aloof)
			}
			l.aloof[id] = time.Now().Add(min(moment, yieldTime))
		}
		return
	}
	if notified >= 0 && others <= 0 {
		ln.resumeLocked()
	} else {
		l.restLocked(ln, min(moment, yieldTime))
	}
}

// answered notes for all in line that Redis has answered, and for how long the lock is busy at least; not positive: not known. It also
// notes whether the waiter has what it wants, or can't get it, and is about to leave.
func (l *localQueues) answered(p *place, ttl time.Duration, done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.busy = done
	p.queue.news = news{heard: true, busyUntil: time.Now().Add(ttl)}
}

// unanswered notes that Redis has not answered a question from the given time, and returns the news.
func (l *localQueues) unanswered(p *place, asked time.Time) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.busy = false
	if p.queue.silent.IsZero() {
		p.queue.silent = asked
	}
	return p.queue.news
}

func (l *localQueues) news(p *place) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.queue.news
}
