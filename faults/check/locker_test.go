package check_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A lock is a hash of its mode and of how often each owner holds it. The scripts are right, and safe to repeat; each flaw is an edit
// of them.
const (
	acquireScript = `
local who = ARGV[1]
local mode = redis.call('hget', KEYS[1], 'mode')
local mine = redis.call('hexists', KEYS[1], who) == 1
local permits = redis.call('hlen', KEYS[1]) - 1
if mode and not mine and not (mode == 'read' and ARGV[2] == 'read') and not (mode == 'permit' and permits < tonumber(ARGV[3])) then
	return {0, redis.call('pttl', KEYS[1])}
end
redis.call('hset', KEYS[1], 'mode', mode or ARGV[2])
redis.call('hset', KEYS[1], who, ARGV[4])
redis.call('pexpire', KEYS[1], ARGV[5])
return {1, redis.call('incr', KEYS[1] .. ':token')}`

	releaseScript = `
local who = ARGV[1]
if redis.call('hexists', KEYS[1], who) == 0 then return -1 end
if tonumber(ARGV[4]) > 0 then redis.call('hset', KEYS[1], who, ARGV[4]) return tonumber(ARGV[4]) end
redis.call('hdel', KEYS[1], who)
if redis.call('hlen', KEYS[1]) <= 1 then redis.call('del', KEYS[1]) end
return 0`

	renewScript = `
local who = ARGV[1]
if redis.call('hexists', KEYS[1], who) == 0 then return 0 end
redis.call('pexpire', KEYS[1], ARGV[5])
return 1`
)

// A flaw makes a broken locker.
type flaw struct {
	edits     []string // of the scripts: old and new by turns
	believes  bool     // holders are told of a loss by renewals alone, and not by their clock
	counts    bool     // a lock is renewed as long as Redis counts holds, and not as long as there are some
	takesNext bool     // who leaves the line takes out the one before it, instead of itself
}

const (
	lease  = 600 * time.Millisecond
	margin = 200 * time.Millisecond
)

var errBusy, errNotHeld = errors.New("busy"), errors.New("not held")

// locker is a client for all the processes of a test.
type locker struct {
	flaw
	rdb                     *redis.Client
	acquire, release, renew string

	mu   sync.Mutex
	line []*waiter      // who waits, for whatever
	held map[string]int // by owner and key
}

type waiter struct {
	wake chan struct{}
}

func newLocker(rdb *redis.Client, f flaw) *locker {
	for i := 0; i < len(f.edits); i += 2 {
		if !strings.Contains(acquireScript+releaseScript+renewScript, f.edits[i]) {
			panic("a flaw edits what is not there: " + f.edits[i])
		}
	}
	edit := strings.NewReplacer(f.edits...).Replace
	return &locker{flaw: f, rdb: rdb, acquire: edit(acquireScript), release: edit(releaseScript), renew: edit(renewScript), held: map[string]int{}}
}

// A holding is what Lock gives.
type holding struct {
	l        *locker
	p        *proc
	key      string
	owner    string
	kind     string
	token    int64
	ctx      context.Context
	end      context.CancelCauseFunc
	timer    *time.Timer
	released chan struct{}
	watchdog sync.WaitGroup
}

// eval runs a script, and once more if its answer was lost.
func (l *locker) eval(ctx context.Context, script, key string, args ...any) (v any, repeated bool, err error) {
	if v, err = l.rdb.Eval(ctx, script, []string{key}, args...).Result(); err == nil || ctx.Err() != nil {
		return v, false, err
	}
	v, err = l.rdb.Eval(ctx, script, []string{key}, args...).Result()
	return v, true, err
}

// lock waits in line until it is first and the lock is free.
func (l *locker) lock(ctx context.Context, p *proc, key, owner, kind string, limit int) (*holding, error) {
	l.mu.Lock()
	l.held[owner+key]++
	count := l.held[owner+key]
	w := &waiter{make(chan struct{}, 1)}
	l.line = append(l.line, w)
	l.mu.Unlock()
	for {
		asked := time.Now()
		v, _, err := l.eval(ctx, l.acquire, key, owner, kind, limit, count, lease.Milliseconds())
		if err == nil && v.([]any)[0].(int64) == 1 {
			l.leave(w, false)
			return l.hold(ctx, p, key, owner, kind, v.([]any)[1].(int64), asked), nil
		}
		if err == nil {
			err = l.wait(ctx, w, time.Duration(v.([]any)[1].(int64)+1)*time.Millisecond)
		}
		if err != nil {
			l.leave(w, true)
			l.drop(owner + key)
			return nil, errors.Join(errBusy, err)
		}
	}
}

// wait waits to be woken. Only the first in line looks again by itself.
func (l *locker) wait(ctx context.Context, w *waiter, ttl time.Duration) error {
	l.mu.Lock()
	first := len(l.line) > 0 && l.line[0] == w
	l.mu.Unlock()
	var again <-chan time.Time
	if first {
		again = time.After(ttl)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.wake:
	case <-again:
	}
	return nil
}

// leave takes w out of the line, and wakes the first of those that stay.
func (l *locker) leave(w *waiter, gaveUp bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.line, w)
	if gaveUp && l.takesNext {
		i--
	}
	if i >= 0 {
		l.line = slices.Delete(l.line, i, i+1)
	}
	l.wakeLocked()
}

func (l *locker) wakeLocked() {
	if len(l.line) == 0 {
		return
	}
	select {
	case l.line[0].wake <- struct{}{}:
	default:
	}
}

func (l *locker) drop(stay string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[stay]--
	return l.held[stay]
}

func (l *locker) hold(ctx context.Context, p *proc, key, owner, kind string, token int64, asked time.Time) *holding {
	h := &holding{l: l, p: p, key: key, owner: owner, kind: kind, token: token, released: make(chan struct{})}
	h.ctx, h.end = context.WithCancelCause(context.WithoutCancel(ctx)) // the end of the wait is not that of the hold
	h.timer = time.AfterFunc(time.Until(asked.Add(lease-margin)), func() {
		if !l.believes {
			h.end(errNotHeld)
		}
	})
	h.watchdog.Go(h.watch)
	return h
}

// watch renews the lock until it is released. It stops while its process is stopped.
func (h *holding) watch() {
	for {
		select {
		case <-h.released:
			return
		case <-h.p.dead:
			return
		case <-time.After(lease / 3):
		}
		h.p.gate()
		asked := time.Now()
		v, _, err := h.l.eval(context.WithoutCancel(h.ctx), h.l.renew, h.key, h.owner, h.kind, 0, 0, lease.Milliseconds())
		switch {
		case err != nil:
		case v.(int64) == 0:
			h.end(errNotHeld)
			return
		default:
			h.timer.Reset(time.Until(asked.Add(lease - margin)))
		}
	}
}

func (h *holding) unlock() error {
	left := h.l.drop(h.owner + h.key)
	v, repeated, err := h.l.eval(context.WithoutCancel(h.ctx), h.l.release, h.key, h.owner, h.kind, 0, left)
	if err == nil && (!h.l.counts || v.(int64) <= 0) {
		close(h.released)
		h.watchdog.Wait()
	}
	h.timer.Stop()
	h.l.mu.Lock()
	h.l.wakeLocked()
	h.l.mu.Unlock()
	if err == nil && v.(int64) == -1 && !repeated {
		return errNotHeld
	}
	return err
}
