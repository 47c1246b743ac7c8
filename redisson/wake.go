package redisson

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// The wake list wakes a client that waits for a plain or fenced lock, or for a permit. Beside the lock stands a wake
// list, of the clients whose local queue has to wait, in the order in which they came; see lua/wake.lua. A release
// notifies the first that it is its turn and the second that it must look after secondTime; the others get no message,
// and look by themselves once in a while. The list is a hint: lost, late, doubled or wrong it costs time.
//
//	first question ── refused ──► subscribes its own channel ── confirmed ──► asks again, which puts it into the list
//	told, or due to look ──► asks ── taken ──► out of the list        refused ──► stays there
//	leaves without the lock ──► lockPass takes it out of the list, and wakes the next one if the lock is free
//
// Others' holders notify nobody of the list. So a client that waits for one of them, and stands in front, hears
// Redisson's channel, too.

const (
	// secondTime is how long after a release the second in line looks whether the first has come.
	secondTime = 25 * time.Millisecond
	// placeTime bounds how often those in line ask for a key: each looks once a round, which lasts this time for each
	// of them.
	placeTime = 50 * time.Millisecond
	// earTime is how long a local queue goes on hearing Redisson's channel after it last had to.
	earTime = time.Second
	// mostAloof bounds the locks that are left alone.
	mostAloof = 64
)

// The messages to a client on its own channel, and on Redisson's where somebody of the list got one.
const (
	turnWord   = "1"
	secondWord = "2"
	toldWord   = "00" // a 0 and how many permits are free, for those
)

// keepsList reports whether those who wait for a lock of that kind stand in a wake list.
func keepsList(k lock.Kind) bool { return k == lock.Exclusive || k == lock.Fenced || k == lock.Permit }

// standing is a local queue's knowledge of its place in the wake list. The mutex of localQueues guards it.
type standing struct {
	member         string               // of the list; "" before it stands there
	since          int64                // when it came, by the server's clock in µs; 0: not yet
	place, waiting int64                // as of the last refusal; place is -1 without a list
	listed         bool                 // the list may have the member
	told           bool                 // it is its turn, and it has not asked since
	look           time.Time            // when to ask without a message
	second         *time.Timer          // has it look after a release that notified another first
	ear            *pubsub.Subscription // Redisson's channel
	needed         time.Time            // when it last had to hear that
}

// waitCall is the call of a waiter in a local queue that hears its channel, in place of cl, which takes the lock.
func (c *Client) waitCall(w *waiter, cl call) call {
	s, id, holders := w.standing, w.place.queue.id, 1
	cl.Script = lockWait
	if id.kind == lock.Permit {
		cl.Script, holders = permitWait, 3*w.at+2
	}
	cl.Keys = append(slices.Clip(cl.Keys), wakeName(id.name))
	longest := max(c.registry.timeout/3, time.Duration(s.waiting)*placeTime)
	cl.Args = append(slices.Clip(cl.Args), len(cl.Keys), holders, s.member, s.since, s.told, millis(max(c.registry.timeout, 2*longest)), id.channel())
	cl.Spare = 1
	return cl
}

// passOn takes the member of a local queue without waiters out of the wake list.
func (c *Client) passOn(id queueID, member string) {
	cl := call{Script: lockPass, Keys: []string{id.name}, Args: []any{member, id.channel()}}
	if id.kind == lock.Permit {
		cl = onlyPermit.call(permitPass, &holder{id: member, keys: [1]string{id.name}, limit: int32(id.permits)}, 0, 0, 0)
	}
	cl.Keys, cl.Spare = append(cl.Keys, wakeName(id.name)), 1
	c.registry.retry(cl, present().add(c.registry.timeout))
}

// listen subscribes the local queue to its channel, if it has one and is not subscribed yet. Then it returns the state
// of the channel.
func (l *localQueues) listen(p *place) (changed <-chan struct{}, live, listens bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.queue.subscription != nil || p.queue.channel == "" {
		return nil, false, false
	}
	l.hearLocked(p)
	if id := p.queue.id; keepsList(id.kind) {
		p.queue.subscription = l.subscriber.Hear(l.hears(id), func(message string) { l.hear(id, message) })
	} else {
		p.queue.subscription = l.subscriber.Subscribe(p.queue.channel)
	}
	changed, live = p.queue.subscription.Changed()
	return changed, live, true
}

// changedLocked returns a channel that is closed when the local queue's lock may have changed, and whether messages get
// through at present. Without a subscription, that is so if the one of an earlier local queue is still there; otherwise
// there is nothing to receive from.
func (l *localQueues) changedLocked(ln *localQueue) (changed <-chan struct{}, live bool) {
	if ln.subscription != nil {
		return ln.subscription.Changed()
	}
	return l.listenedLocked(ln.id)
}

// listenedLocked is changed for a local queue that does not listen, or is not there.
func (l *localQueues) listenedLocked(id queueID) (changed <-chan struct{}, live bool) {
	if l.subscriber.Channels() == 0 { // which is usual, and then nobody puts names together
		return nil, false
	}
	return l.subscriber.Changed(l.hears(id))
}

// hears is the channel of a local queue: its client's own, if there is a wake list.
func (l *localQueues) hears(id queueID) string {
	switch id.kind {
	case lock.Exclusive:
		return id.channel() + ":" + l.client + ":1"
	case lock.Fenced:
		return id.channel() + ":" + l.client + ":2"
	case lock.Permit:
		return id.channel() + ":" + l.client + ":" + strconv.FormatInt(id.permits, 10)
	}
	return id.channel()
}

// standLocked returns the standing with which the head of a local queue that hears its channel asks. Each time that the
// local queue stands in the list it is another member, so that the removal of one may be late.
func (l *localQueues) standLocked(ln *localQueue) standing {
	if ln.member == "" {
		l.joined++
		ln.member = l.hears(ln.id)[len(ln.channel)+1:] + ":" + strconv.FormatInt(l.joined, 10)
	}
	asks := ln.standing
	ln.listed, ln.told = true, false
	return asks
}

// stood applies the answer of Redis to a waiter that stands in the list.
func (l *localQueues) stood(p *place, a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, s := p.queue, &p.queue.standing
	switch {
	case a.Err != nil || a.Values[0] < 0:
		return
	case a.Values[0] > 0:
		s.listed, s.since, s.member = false, 0, ""
		return
	}
	now := time.Now()
	s.place, s.waiting, s.since = a.Values[2], a.Values[3], a.Values[4]
	s.look = s.nextLook(now, max(l.timeout/3, time.Duration(s.waiting)*placeTime))
	alone := s.place < 0 || s.place <= 1 && a.Values[5] == 0 // the release notifies nobody of the list
	if alone {
		s.needed = now
	}
	switch id := ln.id; {
	case alone && s.ear == nil:
		s.ear = l.subscriber.Hear(id.channel(), func(message string) {
			word := turnWord
			if len(message) >= len(toldWord) && message[0] == '0' {
				word = toldWord
			}
			l.hear(id, word)
		})
	case s.ear != nil && now.Sub(s.needed) > earTime:
		s.ear.Close()
		s.ear = nil
	}
}

// nextLook is when to look without a message: once a round. The waiter in front gets a message, and looks a round from
// now. The others look at times that are spread over the round, also those of any who came one after the other, as
// numbers times the golden ratio are: so if many of them stand still, one of the others soon finds out.
func (s *standing) nextLook(now time.Time, round time.Duration) time.Time {
	if s.place <= 1 {
		return now.Add(round)
	}
	_, part := math.Modf(float64(s.since%1000) * math.Phi)
	until := now.Truncate(round).Add(time.Duration(part * float64(round))).Sub(now)
	if until <= 0 {
		until += round
	}
	return now.Add(until)
}

// hear notes a message to the head of a local queue.
func (l *localQueues) hear(id queueID, word string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[id]
	if ln == nil {
		return
	}
	switch s := &ln.standing; {
	case word == turnWord, word == toldWord && s.place < 0: // without a list, it gets no other message
		s.told = true
		if s.second != nil {
			s.second.Stop()
		}
		ln.resumeLocked()
	case word == secondWord:
		if s.second == nil {
			s.second = time.AfterFunc(secondTime, func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				if head := ln.places.First(); head != nil {
					head.wakeLocked()
				}
			})
		}
		s.second.Reset(secondTime)
	}
}

// endLocked follows the last waiter of the local queue. It reports whether the list may have its member.
func (s *standing) endLocked() bool {
	if s.second != nil {
		s.second.Stop()
	}
	if s.ear != nil {
		s.ear.Close()
	}
	return s.listed
}

// looks returns when the head of a local queue that stands in the list looks without a message, and how much later than others it does when a lease ends: by a
// moment for each place, so that not all look then.
func (l *localQueues) looks(p *place) (in, later time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &p.queue.standing
	if s.place < 0 {
		return forever, 0
	}
	return time.Until(s.look), time.Duration(s.place) * secondTime
}
