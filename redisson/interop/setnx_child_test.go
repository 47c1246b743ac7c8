package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/lock/setnxlock"
	"github.com/redis/go-redis/v9"
)

// setnxRounds is how often each counts.
const setnxRounds = 30

// obeySetnx is obey with package setnxlock in place of redisson.
func obeySetnx(o order) error {
	i := slices.IndexFunc(setnxLibraries, func(l setnxLibrary) bool { return l.name == o.Setnx })
	if i < 0 {
		return fmt.Errorf("no such library: %s", o.Setnx)
	}
	rdb := redis.NewClient(&redis.Options{Addr: o.Addrs[0]})
	l, err := setnxlock.New(rdb, setnxlock.Watchdog(o.Watchdog), setnxlock.Poll(5*time.Millisecond, 5*time.Millisecond), setnxLibraries[i].preset())
	if err != nil {
		return err
	}
	if o.Counter == "" {
		_, err := l.Acquire(context.Background(), o.Request)
		return err
	}
	for range setnxRounds {
		if err := countSetnx(l, rdb, o); err != nil {
			return err
		}
	}
	return nil
}

// countSetnx reads a number and writes the next one, which only the lock makes one step.
func countSetnx(l *setnxlock.Locker, rdb *redis.Client, o order) error {
	ctx := context.Background()
	h, err := l.Acquire(ctx, o.Request)
	if err != nil {
		return err
	}
	n, err := rdb.Get(ctx, o.Counter).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	<-time.After(time.Millisecond)
	return errors.Join(rdb.Set(ctx, o.Counter, n+1, 0).Err(), h.Release(ctx))
}
