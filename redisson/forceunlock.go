package redisson

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// tell notifies the clients of holders that a lock was freed by hand: each of its holder, or all of the same word. It
// notifies this client, too, as a clone of its process has its id. The message is a hint, without which they learn of
// it when they next renew: so a failure to send it is no error.
func (c *Client) tell(ctx context.Context, key string, holders []any, word string) {
	local, err := c.topology.Local(ctx)
	if err != nil {
		return
	}
	var calls []call
	for _, h := range holders {
		field, _ := h.(string)
		id := strings.TrimSuffix(field, writes)
		client := clientOf(id)
		if client == "" {
			continue
		}
		way, channel := key, clientName(client)
		if local { // to where the channel is
			way = channel
		}
		calls = append(calls, call{Script: tell, Keys: []string{way}, Args: []any{channel, cmp.Or(word, id) + " " + key}})
	}
	c.askEach(ctx, time.Now().Add(c.timeout), calls)
}

// askEach asks all masters at once, as askAll asks one, and returns the answers in the order of calls.
func (c *Client) askEach(ctx context.Context, by time.Time, calls []call) []answer {
	answers := make([]answer, len(calls))
	order := make([]int, len(calls))
	for i := range order {
		order[i] = i
	}
	var masters sync.WaitGroup
	for _, part := range pubsub.ByMaster(c.topology, order, func(i int) string { return calls[i].Keys[0] }) {
		masters.Go(func() {
			own := make([]call, len(part))
			for i, at := range part {
				own[i] = calls[at]
			}
			for i, a := range c.askAll(ctx, by, own) {
				answers[part[i]] = a
			}
		})
	}
	masters.Wait()
	return answers
}

// askAll asks one master many questions in few round trips. It asks a question without an answer once more by itself,
// which repeats it for as long as there is time.
func (c *Client) askAll(ctx context.Context, by time.Time, calls []call) []answer {
	answers := c.road.AskTogether(ctx, by, calls)
	var again sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		switch {
		case a.Err == nil || lasting(a.Err):
			continue
		case ctx.Err() != nil:
			a.Err = context.Cause(ctx)
			continue
		}
		c.metrics.Repeated(calls[i])
		again.Go(func() {
			doubts := a.Doubts
			*a = c.road.Ask(ctx, by, calls[i])
			a.Doubts += doubts
		})
	}
	again.Wait()
	return answers
}

// ForceUnlock frees a lock by its key in Redis, of whatever kind it is and whoever holds it, Redisson too, and wakes
// its waiters. It reports whether there was anything to free; a read/write lock is freed of all who read or write. The
// name mapper does not apply.
//
// Clients of this package that held it are notified at once, and the contexts of their holds end with [ErrForced];
// those of Redisson find out when they renew. A key that is no lock stays as it is, with an error that matches
// lock.ErrUnsupported: a permit has an id with which [PermitExpirableSemaphore.Release] gives it back.
//
// One call frees once, however often its question reaches Redis: it never frees the lock of somebody who takes it after
// that. If Redis does not answer at all, the error is that of an outage, and the lock may have been freed, or may yet
// be.
func (c *Client) ForceUnlock(ctx context.Context, key string) (bool, error) {
	return c.Free(ctx, Freed{Key: key})
}

// ForceUnlockFrom is ForceUnlock if nobody has the lock but those holders, by [Holder.ID]: the caller has seen them and
// wants them to end, and nobody who comes after them. If anybody else has it, it stays as it is, and the error matches
// lock.ErrBusy. A lock that passes on within a process, for 50ms at most, keeps its holder, so the last of those calls
// may be the one whose lock is freed.
func (c *Client) ForceUnlockFrom(ctx context.Context, key string, holders []string) (bool, error) {
	if len(holders) == 0 {
		return false, errors.New("redisson: ForceUnlockFrom of no holders")
	}
	return c.Free(ctx, Freed{Key: key, Holders: holders})
}

// Free is [Client.ForceUnlock], or ForceUnlockFrom if f names holders, by somebody with a name and for a reason. Redis
// records these for [Client.Frees], and the errors of the holders quote them. True with an error says that the lock was
// freed, but not recorded.
func (c *Client) Free(ctx context.Context, f Freed) (bool, error) {
	if err := cmp.Or(c.checkKey(f.Key), checkAccount(account(f.Who, f.Reason), mostAccount)); err != nil {
		return false, err
	}
	const other, others = -1, -2
	a, unnoted := c.force(ctx, "any", append(fairKeys(f.Key), wakeName(f.Key)), f, lock.Exclusive, lock.Write)
	switch {
	case a.Err != nil:
		return false, a.Err
	case a.Values[0] == other:
		return false, fmt.Errorf("redisson: %w: what the key holds is no lock", lock.ErrUnsupported)
	case a.Values[0] == others:
		return false, fmt.Errorf("redisson: not freed: %w", lock.ErrBusy)
	}
	return a.Yes(), unnoted
}

// force frees a lock, records by whom and why if that is given, and notifies its holders. The last of its keys may be a
// wake list.
func (c *Client) force(ctx context.Context, kind string, keys []string, f Freed, families ...lock.Kind) (a answer, unnoted error) {
	key, asked, by := keys[0], present(), time.Now().Add(c.timeout)
	args := []any{lockChannel(key), rwChannel(key), kind}
	for _, id := range f.Holders {
		args = append(args, id)
	}
	r := c.request(key)
	args = append(args, c.noted(r)...) // the receipt is no key here: who may not write one frees the lock all the same
	a = c.road.Ask(ctx, by, call{Script: force, Keys: keys, Args: args, Spare: map[bool]int{true: 1}[keys[len(keys)-1] == wakeName(key)]})
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	if a.Yes() {
		for _, family := range families {
			c.registry.forced(lockID{key, family}, asked, f.cause())
		}
		unnoted = c.note(ctx, f, a.List)
		bound, told := context.WithDeadline(ctx, by)
		go c.background(func() {
			defer told()
			c.tell(context.WithoutCancel(ctx), key, a.List, "")
		})
		<-bound.Done() // as a program may end after this
	}
	return a, unnoted
}

const (
	// listenAfter is how long a client holds a lock before it listens on its own channel. Once it listens, it asks for
	// the messages that it has missed. So locks that are held for a moment cost nothing.
	listenAfter = 50 * time.Millisecond
	// listenIdle is how often a client that listens looks whether it still has something to hear about.
	listenIdle = time.Second
	// hearInterval is how long a client gathers messages after those that it has just heard: a flood of them is few questions.
	hearInterval = 10 * time.Millisecond
	// queueMemory is how long a client remembers that it has stood in a queue.
	queueMemory = time.Hour
	// mostQueues bounds the names to remember: the client looks at each when the connection has broken.
	mostQueues = 100
)

// forceListener subscribes to this client's channel while it holds locks, to learn of ForceUnlock, and for an hour
// after it has waited for a fair lock. The registry calls it with the registry's mutex held when a lock is acquired, so
// the listener calls the registry without its own.
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

// stood records that a call has got in line for a fair lock.
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

// idle ends the listening if there is nothing to listen for, and reports whether it has.
func (l *forceListener) idle() bool {
	asked := l.asked.Swap(0) // first: for a lock that is taken from now on, nobody listens yet
	if l.c.registry.oldest() > 0 || len(l.remembered()) > 0 {
		l.asked.Store(asked)
		return false
	}
	l.open.Store(false)
	l.alarm.set(l.after) // for what has come up since
	return true
}

// remembered returns the fair locks in whose queue a call of this client may have stood.
func (l *forceListener) remembered() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.queues, func(_ string, last instant) bool { return present().sub(last) > queueMemory })
	return slices.Sorted(maps.Keys(l.queues))
}

// listen reads the messages on this client's own channel, until it holds nothing any more. It takes the state of the
// channel before it reads the messages, so that it misses none. It begins with a question about all holders: when the
// subscription is confirmed, or now if the channel has lingered. A connection that breaks again and again must not
// repeat that as often.
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

// sweeping is the message, in place of a holder's id, to a client that has a waiter at the head of a free lock's queue.
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
