package setnxlock

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// sides make the locks of each library, and ours with each preset.
var sides = map[string]func(*redis.Client) locks{
	"redislock": func(rdb *redis.Client) locks { return obtained{redislock.New(rdb), map[string]*redislock.Lock{}} },
	"redsync": func(rdb *redis.Client) locks {
		return mutexes{redsync.New(goredis.NewPool(rdb)), map[string]*redsync.Mutex{}}
	},
	"setnxlock Redislock": func(rdb *redis.Client) locks { return ours(rdb, setnxlock.Redislock()) },
	"setnxlock Redsync":   func(rdb *redis.Client) locks { return ours(rdb, setnxlock.Redsync()) },
}

// obtained are those of bsm/redislock.
type obtained struct {
	client *redislock.Client
	held   map[string]*redislock.Lock
}

func (o obtained) take(key string, wait, lease time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(wait, time.Second))
	defer cancel()
	retry := redislock.NoRetry()
	if wait > 0 {
		retry = redislock.LinearBackoff(5 * time.Millisecond)
	}
	l, err := o.client.Obtain(ctx, key, lease, &redislock.Options{RetryStrategy: retry, Metadata: "of a test"})
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, context.DeadlineExceeded) {
		return errBusy
	}
	o.held[key] = l
	return err
}

func (o obtained) give(key string) error {
	err := o.held[key].Release(context.Background())
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return errLost
	}
	return err
}

func (o obtained) renew(key string, lease time.Duration) error {
	err := o.held[key].Refresh(context.Background(), lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return errLost
	}
	return err
}

// mutexes are those of redsync.
type mutexes struct {
	redsync *redsync.Redsync
	held    map[string]*redsync.Mutex
}

func (m mutexes) take(key string, wait, lease time.Duration) error {
	const pause = 5 * time.Millisecond
	mutex := m.redsync.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(1+int(wait/pause)), redsync.WithRetryDelay(pause),
		redsync.WithTimeoutFactor(1)) // a twentieth of a short lease is not enough on a busy machine
	err := mutex.Lock()
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || errors.Is(err, redsync.ErrFailed) {
		return errBusy
	}
	m.held[key] = mutex
	return err
}

func (m mutexes) give(key string) error { return lostUnless(m.held[key].Unlock()) }

func (m mutexes) renew(key string, lease time.Duration) error {
	redsync.WithExpiry(lease).Apply(m.held[key])
	return lostUnless(m.held[key].Extend())
}

func lostUnless(ok bool, err error) error {
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken || !ok && err == nil || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return errLost
	}
	return err
}

// holds are those of package setnxlock.
type holds struct {
	locker *setnxlock.Locker
	held   map[string]lock.Hold
}

func ours(rdb *redis.Client, preset setnxlock.Option) locks {
	l, err := setnxlock.New(rdb, preset, setnxlock.Poll(2*time.Millisecond, 3*time.Millisecond))
	if err != nil {
		panic(err) // the test's own options
	}
	return holds{l, map[string]lock.Hold{}}
}

func (h holds) take(key string, wait, lease time.Duration) error {
	hold, err := h.locker.Acquire(context.Background(), lock.Request{Key: key, Wait: wait, Lease: lease})
	if errors.Is(err, lock.ErrBusy) {
		return errBusy
	}
	h.held[key] = hold
	return err
}

func (h holds) give(key string) error {
	err := h.held[key].Release(context.Background())
	if errors.Is(err, lock.ErrLost) {
		return errLost
	}
	return err
}

func (h holds) renew(key string, lease time.Duration) error {
	err := h.held[key].(interface {
		Extend(context.Context, time.Duration) error
	}).Extend(context.Background(), lease)
	if errors.Is(err, lock.ErrLost) {
		return errLost
	}
	return err
}
