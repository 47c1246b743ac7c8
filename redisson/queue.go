package redisson

import (
	"container/list"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// lines are the queues of this process' waiters, one for each lock that is waited for, and for each side of a read/write
// lock. Only the head of a line asks Redis, so that a process is one contender however many of its goroutines wait.
type lines struct {
	channels *pubsub.Subscriber
	mu       sync.Mutex
	byKey    map[lineKey]*line
}

type lineKey struct {
	name   string
	family family
	kind   lock.Kind
}

type line struct {
	channel   string               // where its lock's releases are told; "" for a lock that is polled
	places    list.List            // of *place
	listening *pubsub.Subscription // to the lock's channel, until the line is empty; nil before
	busyUntil time.Time            // as far as the head has heard

	heard  chan struct{} // closed when Redis has answered the head of the line
	failed chan struct{} // closed when err has been set: the end of the line
	err    error
}

// place is one waiter's place in a line.
type place struct {
	l    *lines
	line *line
	key  lineKey
	at   *list.Element
	turn chan struct{} // closed when this is the head
}

// join adds a place at the end of the line. Leave must be called once for it.
func (l *lines) join(key lineKey, channel string) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byKey[key]
	if ln == nil {
		ln = &line{channel: channel, heard: make(chan struct{}), failed: make(chan struct{})}
		l.byKey[key] = ln
	}
	p := &place{l: l, line: ln, key: key, turn: make(chan struct{})}
	p.at = ln.places.PushBack(p)
	if ln.places.Front() == p.at {
		close(p.turn)
	}
	return p
}

// leave gives up a place; the next one becomes the head if this was it.
func (l *lines) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := p.line
	wasHead := ln.places.Front() == p.at
	ln.places.Remove(p.at)
	next := ln.places.Front()
	switch {
	case next == nil:
		if l.byKey[p.key] == ln {
			delete(l.byKey, p.key)
		}
		if ln.listening != nil {
			ln.listening.Close()
		}
	case wasHead:
		close(next.Value.(*place).turn)
	}
}

// fail sends all in line home with the error that the head was given. Who comes later starts a new line.
func (p *place) fail(err error) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.line.err = err
	close(p.line.failed)
	delete(p.l.byKey, p.key)
}

// listen has the line follow the lock's channel, if it has one.
func (p *place) listen() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.line.listening == nil && p.line.channel != "" {
		p.line.listening = p.l.channels.Subscribe(p.line.channel)
	}
}

// hint returns what is closed when the lock may have become free, and whether messages get through at present. It is nil
// if the line does not listen.
func (p *place) hint() (changed <-chan struct{}, live bool) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if p.line.listening == nil {
		return nil, false
	}
	return p.line.listening.Changed()
}

// expect notes for all in line that Redis has answered, and how long the lock is held at least; ttl is not positive where
// that is not known.
func (p *place) expect(ttl time.Duration) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.line.busyUntil = time.Now().Add(ttl)
	select {
	case <-p.line.heard:
	default:
		close(p.line.heard)
	}
}

// answered tells whether Redis has answered anybody in this line.
func (p *place) answered() bool {
	select {
	case <-p.line.heard:
		return true
	default:
		return false
	}
}

// remaining is how long the lock is held at least, as far as is known in this line; it is not positive if nothing is.
func (p *place) remaining() time.Duration {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	return time.Until(p.line.busyUntil)
}
