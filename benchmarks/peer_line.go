package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// bareLine hands a lock over as Latchkey does, and does nothing else: the callers of a process stand in line, the one in front asks,
// and a release with somebody in line asks whether Redis still has the lock, until a streak is over as long as Latchkey allows one process before it
// releases the lock to all. It renews nothing.
type bareLine struct {
	*bare

	mu    sync.Mutex
	lines map[string]*queue
}

// These are those of package redisson.
const (
	streakTurns = 16
	streakTime  = 50 * time.Millisecond
)

// queue is those who want one lock.
type queue struct {
	busy    bool          // somebody of the process holds the lock, or asks for it
	streak  *streak       // of who holds the lock
	waiters []chan string // each gets the id under which it holds the lock, or none if it is to ask
	freed   chan struct{} // something was published; nil before anybody has subscribed
	stop    func() error
}

// streak is those who have the lock one after the other while it stays in Redis.
type streak struct {
	since time.Time
	turns int // how often the lock was handed over
}

func (s *streak) lasts() bool {
	return s.turns < streakTurns && time.Since(s.since) < streakTime
}

type lineHeld struct {
	b           *bareLine
	key, holder string
}

func openBareLine(addr string) (peer, error) {
	b, err := openBare(addr)
	if err != nil {
		return nil, err
	}
	return &bareLine{bare: b.(*bare), lines: map[string]*queue{}}, nil
}

func (b *bareLine) Lock(ctx context.Context, key string) (held, error) {
	b.mu.Lock()
	q := b.lines[key]
	if q == nil {
		q = &queue{}
		b.lines[key] = q
	}
	if !q.busy {
		q.busy = true
		b.mu.Unlock()
		return b.contend(ctx, q, key)
	}
	turn := make(chan string, 1)
	q.waiters = append(q.waiters, turn)
	b.mu.Unlock()
	select {
	case holder := <-turn:
		return b.take(ctx, q, key, holder)
	case <-ctx.Done():
	}
	b.mu.Lock()
	i := slices.Index(q.waiters, turn)
	if i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	b.mu.Unlock()
	if i < 0 { // it is this caller's turn
		return b.take(ctx, q, key, <-turn)
	}
	return nil, ctx.Err()
}

func (b *bareLine) take(ctx context.Context, q *queue, key, holder string) (held, error) {
	if holder == "" {
		return b.contend(ctx, q, key)
	}
	return &lineHeld{b, key, holder}, nil
}

// contend asks until the lock is free, at first and after each message.
func (b *bareLine) contend(ctx context.Context, q *queue, key string) (held, error) {
	for {
		select {
		case <-q.freed: // before this question, which may be a release of our own
		default:
		}
		holder := b.nextHolder()
		err := b.send(ctx, b.acquire, key, holder)
		if err == nil {
			q.streak = &streak{since: time.Now()}
			return &lineHeld{b, key, holder}, nil
		}
		if errors.Is(err, errBusy) {
			err = b.await(ctx, q, key)
		}
		if err != nil {
			b.leave(q)
			return nil, err
		}
	}
}

// await returns after a message, or once the line is subscribed: the lock may have been freed before that.
func (b *bareLine) await(ctx context.Context, q *queue, key string) error {
	if q.freed == nil {
		s := b.rdb.Subscribe(ctx, "redisson_lock__channel:{"+key+"}")
		if _, err := s.Receive(ctx); err != nil {
			return errors.Join(err, s.Close())
		}
		q.freed, q.stop = make(chan struct{}, 1), s.Close
		go listenTo(s, q.freed)
		return nil
	}
	select {
	case <-q.freed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func listenTo(s *redis.PubSub, freed chan<- struct{}) {
	for {
		if _, err := s.ReceiveMessage(context.Background()); err != nil {
			return
		}
		select {
		case freed <- struct{}{}:
		default:
		}
	}
}

// leave has the next in line ask, if there is one.
func (b *bareLine) leave(q *queue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q.busy = len(q.waiters) > 0; q.busy {
		q.waiters[0] <- ""
		q.waiters = q.waiters[1:]
	}
}

func (h *lineHeld) Release(ctx context.Context) error {
	b := h.b
	b.mu.Lock()
	q := b.lines[h.key]
	s := q.streak
	if len(q.waiters) == 0 || !s.lasts() {
		b.mu.Unlock()
		defer b.leave(q)
		return b.send(ctx, b.release, h.key, h.holder)
	}
	s.turns++
	next := q.waiters[0]
	q.waiters = q.waiters[1:]
	b.mu.Unlock()
	if err := b.send(ctx, b.acquire, h.key, h.holder); err != nil { // to repeat it says whether Redis still has the lock
		next <- "" // it asks for itself
		return err
	}
	next <- h.holder
	return nil
}

func (b *bareLine) Close() error {
	for _, q := range b.lines {
		if q.stop != nil {
			_ = q.stop() // the process ends
		}
	}
	return b.bare.Close()
}
