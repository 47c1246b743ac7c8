package redisson

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
)

const (
	// listenAfter is how long a client holds a lock before it listens on its own channel. What it misses before, it asks for once it
	// hears. So locks that are held for a moment cost nothing.
	listenAfter = 50 * time.Millisecond
	// listenIdle is how often a client that listens looks whether it still has something to hear about.
	listenIdle = time.Second
	// hearInterval is how long a client gathers messages after those that it has just heard: a flood of them is few questions.
	hearInterval = 10 * time.Millisecond
	// queueMemory is how long a client remembers that it has stood in a queue.
	queueMemory = time.Hour
	// mostQueues bounds the names that are remembered: each is looked at when the connection has broken.
	mostQueues = 100
)

// forceListener subscribes to this client's channel while it holds locks, to learn of ForceUnlock, and for an hour after it has waited for a fair
// lock. It observes the registry, which says with its mutex when a lock is held: so it is asked without the listener's.
type forceListener struct {
	c     *Client
	after time.Duration
	alarm alarm        // when to see whether it is time to listen
	open  atomic.Bool  // it listens, or is about to
	asked atomic.Int64 // the instant at which it last asked about all holders since then; 0: it has not

	mu     sync.Mutex
	queues map[string]instant // fair locks in whose queue somebody may have stood, and when last
}

func newForceListener(c *Client) *forceListener {
	l := &forceListener{c: c, after: min(listenAfter, c.registry.timeout/61), queues: map[string]instant{}}
	l.alarm.f = l.look
	return l
}

// held notes that the client has got a lock.
func (l *forceListener) held() { l.alarm.set(l.after) }

// stood notes that somebody has got in line for a fair lock.
func (l *forceListener) stood(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queues[name] = present()
	maps.DeleteFunc(l.queues, func(string, instant) bool { return len(l.queues) > mostQueues }) // any of them
	l.alarm.set(l.after)
}

// look decides whether to listen: there is a hold that has lasted for long enough, or somebody has stood in a queue.
func (l *forceListener) look() {
	if l.open.Load() || l.c.ctx.Err() != nil {
		return
	}
	oldest, now := l.c.registry.oldest(), present()
	switch {
	case oldest > 0 && oldest.add(l.after) <= now, len(l.remembered()) > 0:
		if !l.open.Swap(true) {
			go l.c.background(l.listen)
		}
	case oldest > 0:
		l.alarm.set(oldest.add(l.after).sub(now))
	}
}

// idle ends the listening if there is nothing to hear of, and reports whether it has.
func (l *forceListener) idle() bool {
	if l.c.registry.oldest() > 0 || len(l.remembered()) > 0 {
		return false
	}
	l.asked.Store(0)
	l.open.Store(false)
	l.alarm.set(l.after) // for what has come up since
	return true
}

// remembered are the fair locks in whose queue somebody of this client may have stood.
func (l *forceListener) remembered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := present()
	maps.DeleteFunc(l.queues, func(_ string, last instant) bool { return now.sub(last) > queueMemory })
	return slices.Sorted(maps.Keys(l.queues))
}

// listen hears what this client is told on its own channel, until it holds nothing any more. The state of the channel is noted before
// the messages are read, so that none is missed. It begins with a question about all holders: when the subscription is confirmed, or now if
// the channel has lingered. A connection that breaks again and again must not have all of them asked about as often.
func (l *forceListener) listen() {
	c := l.c
	told := c.subscriber.Receive(clientName(c.id))
	defer told.Close()
	idle := time.NewTicker(listenIdle)
	defer idle.Stop()
	for _, owed := told.Changed(); ; {
		changed, _ := told.Changed()
		messages, missed := told.Read()
		l.hear(messages)
		if missed {
			go c.background(c.sweepAll)
		}
		owed = owed || missed
		if now, before := present(), instant(l.asked.Load()); owed && (before == 0 || now.sub(before) >= c.registry.retryAfter()) {
			c.registry.doubtAll()
			l.asked.Store(int64(now))
			owed = false
		}
		if len(messages) > 0 && !clock.Sleep(c.ctx, hearInterval) {
			return
		}
		select {
		case <-changed:
		case <-idle.C:
			if l.idle() {
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// sweeping is what a client is told, in place of a holder's id, that has a waiter at the head of a free lock's queue.
const sweeping = "queue"

func (l *forceListener) hear(messages []string) {
	reasons := sync.OnceValue(l.c.reasons)
	for _, m := range messages {
		if id, name, _ := strings.Cut(m, " "); id == sweeping && name != "" {
			l.c.sweep(l.c.ctx, time.Now().Add(l.c.timeout), name)
		} else {
			l.c.registry.told(name, id, reasons()[id])
		}
	}
}
