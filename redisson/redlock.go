package redisson

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
	"github.com/latchkey-go/latchkey/lock"
)

const (
	// mostSilence is how long a round of questions waits at most for servers that do not answer, if it depends on them: others can't have those
	// that did in the meantime.
	mostSilence = 250 * time.Millisecond
	// The next attempt at a RedLock comes after a random time around leastPause, which doubles each time up to
	// mostPause.
	leastPause = 8 * time.Millisecond
	mostPause  = 64 * time.Millisecond
)

// drift is the part of a lease that is given away for clocks of servers that run at different speeds.
func drift(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

// RedLock is Redisson's RedissonRedLock: one lock on several servers that know nothing of each other. Its holder is the
// one that holds it on the majority of them. It stays usable while a minority is down. Like a Lock it is free to make
// and safe for concurrent use, and has its owner in the context; in Redis it is nothing but the single locks.
//
// It needs independent masters, at least three and best an odd number, with a client each. A server that lost its data
// must stay down for longer than the longest lease, or the watchdog's timeout, before it takes part again: otherwise it
// gives to others what it has forgotten. A single server with replicas is simpler, and a fencing token safer than both.
//
// A call that does not get the majority gives back its locks and tries again after a random time of up to 96ms: waiting
// is polling, unlike for other locks, and contenders are served in no order. No call waits for servers that the outcome
// does not depend on, but each leaves a question with those that are silent, which costs memory until the client's
// Timeout is over: give these clients a short one. Servers that refuse, and clients that are closed, are not waited
// for: once the others are no majority, the call fails. Don't take one of its locks alone under a hold: the server may
// be about to answer, and the call would wait for itself.
type RedLock struct {
	locks  []*Lock // sorted
	key    redKey
	quorum int
	// patience is how long majorities may be out of reach before that is an error: the longest timeout of the clients.
	patience time.Duration
}

// redKey finds in a context the innermost hold of a RedLock.
type redKey string

// NewRedLock returns the lock that is held with a majority of the locks given. Fewer than three are refused, since one or
// two have no majority to spare, and so are two locks of one client, since they are not independent. That two clients ask
// the same server goes unnoticed.
func NewRedLock(locks ...Member) (*RedLock, error) {
	if len(locks) < 3 {
		return nil, fmt.Errorf("redisson: a RedLock of %d locks can't do without any of them: it needs at least 3", len(locks))
	}
	sorted, text, err := gather(locks)
	if err != nil {
		return nil, err
	}
	if len(sorted) != len(locks) {
		return nil, errors.New("redisson: a MultiLock can't be one lock of a RedLock")
	}
	r := &RedLock{locks: sorted, key: redKey(text), quorum: len(locks)/2 + 1}
	for i, l := range sorted {
		c := l.c
		if slices.ContainsFunc(sorted[:i], func(o *Lock) bool { return o.c == c }) {
			return nil, errors.New("redisson: two locks of a RedLock are of the same client, so that they are not independent")
		}
		r.patience = max(r.patience, c.timeout)
	}
	return r, nil
}

// Lock takes the lock, waiting as long as ctx, and has it renewed by each client until Unlock. The context that it
// returns derives from ctx and ends with a cause that matches lock.ErrLost when fewer than the majority of the servers
// are known to have the lock, before anybody else can have it. The error is the cause of ctx, or says why a majority of
// the servers did not answer for as long as the longest timeout of the clients.
//
// A failed Lock leaves nothing behind, on no server: a lock at a server that did not answer is undone as soon as it
// does. Unlock is needed after a loss, too: the minority that is left is still renewed.
func (r *RedLock) Lock(ctx context.Context) (held context.Context, err error) {
	return heldBy(r.acquire(ctx, forever, 0))
}

// TryLock takes the lock if it becomes free within wait; a wait of 0 or less tries once, which can fail for all of
// several contenders who come at the same time. A lease above 0 ends the hold by itself after that time less the time
// to get the majority and a drift of a hundredth and 2ms, besides the margin of every hold; one that this leaves
// nothing of is refused. Otherwise the lock is renewed until Unlock. ok reports whether the lock is held; where it is
// not, held is nil, and err too unless ctx ended, or the majority of the servers refused or did not answer. A reader
// that wants to write does not get the lock, either.
func (r *RedLock) TryLock(ctx context.Context, wait, lease time.Duration) (held context.Context, ok bool, err error) {
	return triedBy(r.acquire(ctx, max(wait, 0), max(lease, 0)))
}

// Unlock gives back the hold that returned the context held, or else the innermost one around it, on all servers. It
// returns as soon as the majority has confirmed that, and does not stay long for servers without which others can have the
// lock; these are seen to in the background, for as long as the lock could stand there. It works on a context that has
// ended, and takes no longer than the clients' timeouts. The error matches lock.ErrNotHeld when held is under no hold of
// these locks or that hold was given back before, and lock.ErrLost when the lock was no longer held by the majority.
func (r *RedLock) Unlock(held context.Context) error {
	h, ok := held.Value(r.key).(*redHold)
	if !ok {
		return errNoHold
	}
	return h.Release(held)
}

func (r *RedLock) acquire(ctx context.Context, wait, lease time.Duration) (*redHold, error) {
	if lease > 0 && goodFor(lease) <= drift(lease) {
		return nil, fmt.Errorf("redisson: a RedLock's lease of %v is not longer than the drift of clocks", lease)
	}
	for _, l := range r.locks {
		if err := l.c.checkName(l.name); err != nil {
			return nil, err
		}
	}
	c := &redCall{r: r, ctx: ctx, lease: lease, start: time.Now(), asked: map[*Lock]bool{}}
	answered := c.start // when there was a majority of answers last
	in := stay{waiters: &r.locks[0].c.waiters, name: r.locks[0].key}
	defer in.end()
	for pause := leastPause; ; pause = min(2*pause, mostPause) {
		h, err := c.round()
		if err == nil {
			return h, nil
		}
		now := time.Now()
		busy := errors.Is(err, lock.ErrBusy)
		if busy {
			answered = now
		}
		left := wait - now.Sub(c.start)
		if c.never || left <= 0 || !busy && now.Sub(answered) >= r.patience {
			return nil, err
		}
		if full := in.begin(); full != nil {
			return nil, fmt.Errorf("%w: %w: %w", full, lock.ErrBusy, err) // err may be about the servers for which it would have waited
		}
		if !clock.Sleep(ctx, min(pause/2+jitter(pause), left)) {
			return nil, context.Cause(ctx)
		}
	}
}

// redCall is one acquire, which asks the servers in rounds.
type redCall struct {
	r     *RedLock
	ctx   context.Context
	lease time.Duration
	start time.Time
	never bool // so many members refuse that the others are no majority

	mu    sync.Mutex     // of its rounds, too
	asked map[*Lock]bool // the members that have not answered yet
}

// round asks all servers at once for the lock and returns as soon as the outcome is certain. It leaves out members that
// have not answered an earlier round: another question would only queue up behind the first. If that leaves no
// majority, it asks nobody.
func (c *redCall) round() (*redHold, error) {
	if err := context.Cause(c.ctx); err != nil {
		return nil, err
	}
	h := &redHold{c: c, since: time.Now()}
	h.decided, h.settle = context.WithCancel(context.Background())
	h.questions, h.stop = context.WithCancel(context.WithoutCancel(c.ctx))
	for _, member := range h.begin() {
		go func() {
			defer c.answered(member)
			part, err := member.acquire(h.questions, lock.Request{Lease: c.lease})
			if !h.add(part, err) && err == nil {
				_ = part.Release(context.Background()) // by the watchdog where it fails
			}
		}()
	}
	select {
	case <-h.decided.Done():
	case <-time.After(mostSilence):
	case <-c.ctx.Done():
	}
	if err := h.conclude(); err != nil {
		parts, _, _ := h.finish()
		withdraw(c.ctx, parts)
		return nil, err
	}
	return h, nil
}

// answered notes that the next round may ask a member again.
func (c *redCall) answered(member *Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, member)
}

// jitter is a random time below d, which is 4 s at most.
func jitter(d time.Duration) time.Duration { return time.Duration(randomBits()) % d }
