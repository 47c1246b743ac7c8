package main

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// latchkey is a client of package redisson, used as guards use it.
type latchkey struct {
	*redisson.Client
	rdb   *redis.Client // nil if the client has made its own
	limit int           // of a permit; 0 for a lock
}

func openLatchkey(addr string) (peer, error) {
	c, err := redisson.Open("redis://" + addr)
	return latchkey{Client: c}, err
}

func openLatchkeyDefault(addr string) (peer, error) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	c, err := redisson.New(rdb)
	return latchkey{Client: c, rdb: rdb}, err
}

func (l latchkey) Lock(ctx context.Context, key string) (held, error) {
	r := lock.Request{Key: key, Wait: -1, Limit: l.limit}
	if l.limit > 0 {
		r.Kind = lock.Permit
	}
	return l.Acquire(ctx, r)
}

func (l latchkey) Close() error {
	err := l.Client.Close()
	if l.rdb != nil {
		err = errors.Join(err, l.rdb.Close())
	}
	return err
}
