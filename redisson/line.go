package redisson

import (
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// lines are the queues of this process' waiters, one for each thing that is waited for. Only the head of a line asks Redis, so a
// process is one contender, however many of its goroutines wait.
type lines struct {
	subscriber *pubsub.Subscriber

	mu   sync.Mutex
	byID map[lineID]*line
}

// lineID is what those in a line have in common: each could go when the one ahead could.
type lineID struct {
	name    string
	channel string
	kind    lock.Kind
	permits int64
}

// line has one state for all who stand in it. The mutex of lines guards it.
type line struct {
	id           lineID
	places       []*place
	subscription *pubsub.Subscription // made by the first refusal
	news
}

// news is what is known in a line.
type news struct {
	heard     bool      // Redis has answered the head
	busyUntil time.Time // as far as the head has heard
	silent    time.Time // when the first question was asked that was not answered; zero after an answer
}

// place is one waiter's place in a line.
type place struct {
	line *line
	turn chan error // receives nil when this becomes the head, or why the line has failed
}

// join adds a place at the end of the line, and reports whether it is the head. Leave must be called once for it.
func (l *lines) join(id lineID) (p *place, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[id]
	if ln == nil {
		ln = &line{id: id}
		l.byID[id] = ln
	}
	p = &place{line: ln, turn: make(chan error, 1)}
	ln.places = append(ln.places, p)
	return p, len(ln.places) == 1
}

// leave gives up a place; the next one becomes the head if this was it.
func (l *lines) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(p.line.places, p)
	if i < 0 {
		return
	}
	p.line.places = slices.Delete(p.line.places, i, i+1)
	switch {
	case len(p.line.places) == 0:
		l.dropLocked(p.line)
	case i == 0:
		p.line.places[0].turn <- nil
	}
}

// fail ends the wait of all behind p, the head, with its error, because Redis would give them no better answer. Later waiters start a
// new line.
func (l *lines) fail(p *place, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, other := range p.line.places[1:] {
		other.turn <- err
	}
	p.line.places = nil
	l.dropLocked(p.line)
}

func (l *lines) dropLocked(ln *line) {
	delete(l.byID, ln.id)
	if ln.subscription != nil {
		ln.subscription.Close()
	}
}

// listen has the line hear about changes, if it does not yet and there is a channel. It reports whether that is new.
func (l *lines) listen(p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.line.subscription != nil || p.line.id.channel == "" {
		return false
	}
	p.line.subscription = l.subscriber.Subscribe(p.line.id.channel)
	return true
}

// changed returns what is closed when what the line waits for may have changed, and whether messages get through at present.
// Without a subscription there is nothing to receive from.
func (l *lines) changed(p *place) (changed <-chan struct{}, live bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.line.subscription == nil {
		return nil, false
	}
	return p.line.subscription.Changed()
}

// answered notes for all in line that Redis has answered, and for how long it is busy at least; not positive: not known.
func (l *lines) answered(p *place, ttl time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.line.news = news{heard: true, busyUntil: time.Now().Add(ttl)}
}

// unanswered notes that Redis has not answered a question from the given time, and returns the news.
func (l *lines) unanswered(p *place, asked time.Time) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.line.silent.IsZero() {
		p.line.silent = asked
	}
	return p.line.news
}

func (l *lines) news(p *place) news {
	l.mu.Lock()
	defer l.mu.Unlock()
	return p.line.news
}
