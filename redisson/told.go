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
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson/internal/pubsub"
)

// ErrForced is why a hold is lost whose lock somebody has freed by hand, with [Lock.ForceUnlock] or [Client.ForceUnlock] in any process. The
// cause with which its context ends matches it, and lock.ErrLost.
var ErrForced = errors.New("freed by hand")

const (
	// listenAfter is how long a client holds a lock before it listens on its own channel. What it misses before, it asks for once it
	// hears. So locks that are held for a moment cost nothing.
	listenAfter = 50 * time.Millisecond
	// listenIdle is how often a client that listens looks whether it still has something to hear about.
	listenIdle = time.Second
	// hearInterval is how long a client gathers messages after those that it has just heard: a flood of them is few questions.
	hearInterval = 10 * time.Millisecond
)

// ears is when a client listens on its own channel, where it is told that a lock was freed by hand. The mutex of claims guards it.
type ears struct {
	entry    // when to see whether it is time to listen
	after    time.Duration
	open     bool    // it listens, or is about to
	starting bool    // and nobody has seen to that yet
	asked    instant // when it last asked about all holders since then
}

// attendLocked has the client listen soon if it goes on holding what it has just got.
func (s *claims) attendLocked(now instant) {
	if !s.ears.open && s.ears.index == 0 {
		s.schedule.set(&s.ears.entry, &s.ears, now.add(s.ears.after))
	}
}

// listenLocked decides, when that is due, whether to listen: there is a hold that has lasted for long enough, or somebody has stood in a queue.
func (s *claims) listenLocked(now instant) {
	var oldest instant
	for _, first := range s.byLock {
		for ho := first; ho != nil; ho = ho.next {
			if ho.kind != lock.Permit && (oldest == 0 || ho.admitted < oldest) { // nobody knows whose a permit is
				oldest = ho.admitted
			}
		}
	}
	if s.rememberedLocked() || oldest > 0 && oldest.add(s.ears.after) <= now {
		s.ears.open, s.ears.starting = true, true
		oldest = 0
	}
	if oldest > 0 {
		oldest = oldest.add(s.ears.after)
	}
	s.schedule.set(&s.ears.entry, &s.ears, oldest)
}

// listening reports whether somebody is to begin to listen, once.
func (s *claims) listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	begin := s.ears.starting
	s.ears.starting = false
	return begin
}

// quietDown ends the listening if there is nothing to hear of, and reports whether it has.
func (s *claims) quietDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byLock) > 0 || s.rememberedLocked() {
		return false
	}
	s.ears.open, s.ears.asked = false, 0
	return true
}

// told has Redis asked about a holder that is said to be gone. It is lost only if Redis does not have it.
func (s *claims) told(name, id string) {
	s.mu.Lock()
	defer s.unlock()
	for _, family := range []lock.Kind{lock.Exclusive, lock.Write} {
		for ho := s.byLock[lockID{name, family}]; ho != nil; ho = ho.next {
			switch {
			case ho.id != id:
			case ho.told: // one question at a time: many would overtake each other, and none would count
				ho.toldAgain = true
			default:
				ho.told = true
				ho.changed()
				s.placeLocked(ho)
			}
		}
	}
}

// doubtAll has Redis asked about all holders, unless that was done a moment ago, and reports whether it has. A connection that breaks again
// and again must not have all of them asked about as often.
func (s *claims) doubtAll() bool {
	s.mu.Lock()
	defer s.unlock()
	if now := present(); s.ears.asked > 0 && now.sub(s.ears.asked) < s.retryAfter() {
		return false
	}
	s.ears.asked = present()
	for _, id := range slices.SortedFunc(maps.Keys(s.byLock), func(a, b lockID) int { return cmp.Compare(a.name, b.name) }) {
		s.doubtLocked(s.byLock[id])
	}
	return true
}

// listen hears what this client is told on its own channel, until it holds nothing any more. The state of the channel is noted before
// the messages are read, so that none is missed. It begins with a question about all holders: when the subscription is confirmed, or now if
// the channel has lingered.
func (c *Client) listen(told *pubsub.Subscription) {
	defer told.Close()
	idle := time.NewTicker(listenIdle)
	defer idle.Stop()
	for _, owed := told.Changed(); ; {
		changed, _ := told.Changed()
		messages, missed := told.Read()
		for _, m := range messages {
			switch id, name, ok := strings.Cut(m, " "); {
			case !ok:
			case id == sweeping:
				c.sweep(c.ctx, time.Now().Add(c.timeout), name)
			default:
				c.claims.told(name, id)
			}
		}
		if missed {
			go c.background(c.sweepAll)
		}
		owed = (owed || missed) && !c.claims.doubtAll()
		if len(messages) > 0 && !clock.Sleep(c.ctx, hearInterval) {
			return
		}
		select {
		case <-changed:
		case <-idle.C:
			if c.claims.quietDown() {
				return
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// sweeping is what a client is told, in place of a holder's id, that has a waiter at the head of a free lock's queue.
const sweeping = "queue"

// toldOf is a client that is to be told something.
type toldOf struct{ client, message string }

// tellOf lists the holders of a lock, whose clients are to be told: this one, too, as a clone of its process has its id.
func tellOf(key string, fields []any) (all []toldOf) {
	for _, f := range fields {
		field, _ := f.(string)
		id := strings.TrimSuffix(field, writes)
		if client := clientOf(id); client != "" {
			all = append(all, toldOf{client, id + " " + key})
		}
	}
	return all
}

// tell has clients told that a lock was freed by hand. It is a hint, without which they learn of it when they next renew: so what can't be
// sent is no error.
func (c *Client) tell(ctx context.Context, key string, holders []toldOf) {
	local, err := c.topology.Local(ctx)
	if err != nil {
		return
	}
	calls := make([]call, len(holders))
	for i, o := range holders {
		way := key
		if local { // to where the channel is
			way = clientName(o.client)
		}
		calls[i] = call{Script: tell, Keys: []string{way}, Args: []any{clientName(o.client), o.message}}
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

// askAll asks one master many questions in few round trips. What was not answered is asked once more by itself, which repeats it for as long as
// there is time.
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

// ForceUnlock frees a lock by its key in Redis, of whatever kind it is and whoever holds it, Redisson too, and wakes who waits for it. It
// reports whether there was anything to free; a read/write lock is freed of all who read or write. The name mapper does not apply.
//
// Clients of this package that held it are told at once, and the contexts of their holds end with [ErrForced]; those of Redisson find
// out when they renew. What is no lock stays as it is, with an error that matches lock.ErrUnsupported: a permit has an id with which
// [PermitExpirableSemaphore.Release] gives it back.
//
// One call frees once, however often its question reaches Redis: not whoever takes the lock after that. If Redis does not answer at
// all, the error is that of an outage, and the lock may have been freed, or may yet be.
func (c *Client) ForceUnlock(ctx context.Context, key string) (bool, error) {
	return c.forceKey(ctx, key, nil)
}

// ForceUnlockFrom is ForceUnlock if nobody has the lock but those holders, by [Holder.ID]: somebody has seen them and wants them to
// end, and not who comes after them. If anybody else has it, it stays as it is, and the error matches lock.ErrBusy. A lock that passes on
// within a process, for 50ms at most, keeps its holder, so the last of those calls may be the one whose lock is freed.
func (c *Client) ForceUnlockFrom(ctx context.Context, key string, holders []string) (bool, error) {
	if len(holders) == 0 {
		return false, errors.New("redisson: ForceUnlockFrom of no holders")
	}
	return c.forceKey(ctx, key, holders)
}

// forceKey frees a lock from these holders, or from all if there are none.
func (c *Client) forceKey(ctx context.Context, key string, holders []string) (bool, error) {
	if err := (lock.Request{Key: key}).Validate(); err != nil {
		return false, err
	}
	if err := c.checkSlot(key); err != nil {
		return false, err
	}
	args := []any{lockChannel(key), rwChannel(key)}
	for _, id := range holders {
		args = append(args, id)
	}
	a, err := c.force(ctx, key, call{Script: anyForce, Keys: []string{key, fairQueue(key), fairDeadlines(key), wakeName(key)}, Args: args, Spare: true}, lock.Exclusive, lock.Write)
	const other, others = -1, -2
	switch {
	case err != nil:
	case a.Values[0] == other:
		err = fmt.Errorf("redisson: %w: what the key holds is no lock", lock.ErrUnsupported)
	case a.Values[0] == others:
		err = fmt.Errorf("redisson: not freed: %w", lock.ErrBusy)
	}
	return a.Yes(), err
}

// force frees a lock, and has those who held it told.
func (c *Client) force(ctx context.Context, key string, cl call, families ...lock.Kind) (answer, error) {
	asked, r := present(), c.request(key)
	cl.Args = append(cl.Args, c.noted(r)...) // the receipt is no key here: who may not write one frees the lock all the same
	a := c.road.AskSoon(ctx, cl)
	c.conclude(r, a.Doubts > 0 || a.Err != nil)
	if !a.Yes() {
		return a, a.Err
	}
	for _, family := range families {
		c.claims.forced(lockID{key, family}, asked)
	}
	holders := tellOf(key, a.List)
	if len(holders) == 0 {
		return a, nil
	}
	told := make(chan struct{})
	go c.background(func() {
		defer close(told)
		c.tell(context.WithoutCancel(ctx), key, holders)
	})
	select { // a program may end after this
	case <-told:
	case <-ctx.Done():
	case <-time.After(asked.add(c.timeout).sub(present())):
	}
	return a, nil
}
