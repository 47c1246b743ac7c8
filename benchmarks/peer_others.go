package main

import (
	"context"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// bsm is redislock, which waits by polling.
type bsm struct {
	rdb     *redis.Client
	client  *redislock.Client
	options *redislock.Options
}

func openRedislock(addr string) (peer, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	return &bsm{rdb, redislock.New(rdb), &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}}, nil
}

func (b *bsm) Lock(ctx context.Context, key string) (held, error) {
	return b.client.Obtain(ctx, key, lease, b.options)
}

func (b *bsm) Close() error { return b.rdb.Close() }

// red is redsync, which waits by polling.
type red struct {
	rdb *redis.Client
	rs  *redsync.Redsync
}

func openRedsync(addr string) (peer, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	return &red{rdb, redsync.New(goredis.NewPool(rdb))}, nil
}

func (s *red) Lock(ctx context.Context, key string) (held, error) {
	m := s.rs.NewMutex(key, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt))
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return (*mutex)(m), nil
}

func (s *red) Close() error { return s.rdb.Close() }

type mutex redsync.Mutex

// Release unlocks the mutex.
func (m *mutex) Release(ctx context.Context) error {
	ok, err := (*redsync.Mutex)(m).UnlockContext(ctx)
	if err == nil && !ok {
		err = errNotHeld
	}
	return err
}

// cached is rueidislock, which waits for the invalidations of client-side caching.
type cached struct{ rueidislock.Locker }

func openRueidislock(addr string) (peer, error) {
	return openCached(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}, KeyMajority: 1, NoLoopTracking: true})
}

func openRueidislock3(addr string) (peer, error) {
	return openCached(rueidislock.LockerOption{ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}, NoLoopTracking: true})
}

func openCached(o rueidislock.LockerOption) (peer, error) {
	l, err := rueidislock.NewLocker(o)
	return cached{l}, err
}

func (c cached) Lock(ctx context.Context, key string) (held, error) {
	ctx, cancel, err := c.WithContext(ctx, key)
	if err != nil {
		return nil, err
	}
	return &cachedHeld{ctx, cancel}, nil
}

func (c cached) Close() error {
	c.Locker.Close()
	return nil
}

type cachedHeld struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// Release ends the context of the lock, and waits until Redis has deleted it.
func (h *cachedHeld) Release(context.Context) error {
	lost := h.ctx.Err()
	h.cancel()
	return lost
}
