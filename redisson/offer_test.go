package redisson

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
	"github.com/redis/go-redis/v9"
)

// A lock is offered to a waiter that has none. The one that has just got a lock stands in line for a moment longer. Another lock
// would take its place then.
func TestOnlyWhoHasNoLockIsOfferedOne(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:1"})
	defer func() { _ = rdb.Close() }()
	subscriber := pubsub.NewSubscriber(pubsub.NewTopology(rdb, pubsub.Auto))
	defer subscriber.Close()
	for _, tt := range []struct {
		name string
		do   func(l *localQueues, p *place)
		want bool
	}{
		{"asleep", func(*localQueues, *place) {}, true},
		{"asks", func(l *localQueues, p *place) { l.next(p) }, false},
		{"was refused", func(l *localQueues, p *place) { l.next(p); l.answered(p, 0, false) }, true},
		{"was not answered", func(l *localQueues, p *place) { l.next(p); l.unanswered(p, l.news(p).silent) }, true},
		{"has the lock", func(l *localQueues, p *place) { l.next(p); l.answered(p, 0, true) }, false},
		{"was offered one", func(l *localQueues, p *place) { p.offered = true }, false},
		{"was given one", func(l *localQueues, p *place) { l.give(p, grant{}) }, false},
		{"looks at one", func(l *localQueues, p *place) { l.give(p, grant{}); l.next(p) }, false},
		{"has one", func(l *localQueues, p *place) { l.give(p, grant{}); l.next(p); l.answered(p, 0, true) }, false},
		{"could not have one", func(l *localQueues, p *place) {
			l.give(p, grant{})
			l.next(p)
			p.queue.rests = true
			l.next(p)
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &localQueues{subscriber: subscriber, byID: map[queueID]*localQueue{}}
			h := &hold{holder: &holder{keys: [1]string{"k"}, kind: lock.Exclusive}}
			p := new(place)
			l.join(p, h.holder.queueID(), new(hold), false)
			tt.do(l, p)
			if p, _ := l.offer(h); (p != nil) != tt.want {
				got := !tt.want
				t.Errorf("offered: %v, want %v", got, tt.want)
			}
		})
	}
}

// All in line hear of a lock that passes to one of them: it is busy, and Redis is there. Who has left hears nothing, and a line that is used
// again has no news of an earlier one.
func TestLineHearsOfALockThatPasses(t *testing.T) {
	l := &localQueues{byID: map[queueID]*localQueue{}}
	h := &hold{holder: &holder{keys: [1]string{"k"}, kind: lock.Exclusive}}
	first, second := &place{lease: time.Minute}, new(place)
	for _, p := range []*place{first, second} {
		l.join(p, h.holder.queueID(), new(hold), false)
	}
	passes := grant{answer: &answer{Sent: time.Now()}}
	for _, tt := range []struct {
		name string
		g    grant
		want news
	}{
		{"nothing", grant{}, news{}},
		{"the lock", passes, news{heard: true, busyUntil: passes.answer.Sent.Add(time.Minute)}},
	} {
		if p, some := l.offer(h); p != first || !some || !l.give(first, tt.g) {
			t.Fatal("the first in line is not offered the lock")
		}
		if got := l.news(second); got != tt.want {
			t.Errorf("given %s: the second one has heard %+v, want %+v", tt.name, got, tt.want)
		}
		first.granted = nil
	}
	l.offer(h)
	l.leave(first, false)
	l.leave(second, false)
	later := new(place)
	l.join(later, queueID{name: "other"}, new(hold), false)
	if l.give(first, passes) || l.news(later) != (news{}) {
		t.Errorf("a lock that passes to who has left is heard of: %+v", l.news(later))
	}
}

// The release at the end of a streak is for others: the head of the line, which may never have been refused, does not ask beside it. If nothing
// comes of the release, it asks after a while.
func TestLineRestsWhileItsLockIsReleased(t *testing.T) {
	watch30(t, answers30, func(t *testing.T, w *watched) {
		w.c.queues.byID = map[queueID]*localQueue{}
		h, p := w.hold(t, lock.Request{}), new(place)
		w.c.queues.join(p, h.holder.queueID(), w.next(t, lock.Request{}), false)
		time.Sleep(handoffTime)
		if release, err := h.depart(0); !release.free || err != nil {
			t.Fatalf("the streak is not over: %+v, %v", release, err)
		}
		select {
		case <-p.look:
			t.Error("the head of the line asks before the release is answered")
		case <-time.After(pollInterval - 1):
		}
		select {
		case <-p.look:
		case <-time.After(time.Millisecond):
			t.Error("the head of the line rests although nobody tells it to go on")
		}
	})
}
