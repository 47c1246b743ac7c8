package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/worker"
	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// objects sets the synchronizers of a round on the first server, before anybody plays.
func (s *stage) objects(ctx context.Context) error {
	if !synchronized(s.order.Mix) {
		return nil
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.servers[0].Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer rdb.Close()
	c, err := redisson.New(rdb)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range s.order.Keys {
		name := func(kind string) string { return fmt.Sprintf("r%d:%s:%d", s.order.Round, kind, i) }
		err = errors.Join(err, s.set("semaphore", name("sem"), s.order.Limit, func(n int) (bool, error) { return c.Semaphore(name("sem")).TrySetPermits(ctx, n) }),
			s.set("permit", name("psem"), s.order.Limit, func(n int) (bool, error) { return c.PermitExpirableSemaphore(name("psem")).TrySetPermits(ctx, n) }),
			s.set("latch", name("latch"), workers*callers, func(n int) (bool, error) { return c.CountDownLatch(name("latch")).TrySetCount(ctx, int64(n)) }),
			s.set("limiter", name("rate"), worker.RatePermits, func(n int) (bool, error) {
				return c.RateLimiter(name("rate")).TrySetRate(ctx, redisson.Rate{Permits: int64(n), Interval: worker.RateInterval, KeepAlive: time.Minute})
			}))
	}
	return err
}

// synchronizers are those of the kinds of a mix that must be set before they are used.
var synchronizers = []string{"semaphore", "expirable", "latch", "limiter"}

// synchronized reports whether one of them is in a mix.
func synchronized(mix []string) bool {
	return slices.ContainsFunc(mix, func(kind string) bool { return slices.Contains(synchronizers, kind) })
}

func (s *stage) set(kind, name string, n int, try func(n int) (bool, error)) error {
	since := history.Now()
	ok, err := try(n)
	if err == nil && !ok {
		err = fmt.Errorf("%s %s was there already", kind, name)
	}
	s.log.Note(history.Event{Op: history.Set, Kind: kind, Keys: []string{name}, Limit: n, Since: since})
	return err
}

// clear removes the synchronizers of a round. Nothing else removes them, as their programs do not.
func (s *stage) clear(ctx context.Context) error {
	if !synchronized(s.order.Mix) {
		return nil
	}
	for _, kind := range []string{"sem", "psem", "latch", "rate"} {
		for i := range s.order.Keys {
			name := fmt.Sprintf("r%d:%s:%d", s.order.Round, kind, i)
			keys := []string{name, "{" + name + "}:timeout", "{" + name + "}:value", "{" + name + "}:permits"}
			if err := s.servers[0].Admin.Del(ctx, keys...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
