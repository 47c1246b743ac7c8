package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// far is how long a question and its answer are on their way where round trips are counted by the clock.
const far = 20 * time.Millisecond

// items is a request for several locks.
type items struct {
	ID  string
	IDs []string
}

// takings are what takes several locks, and gives them back, by a caller or several. Each is made once.
var takings = map[string]func(c *redisson.Client, n int) (func(ctx context.Context) error, error){
	"list": func(c *redisson.Client, n int) (func(ctx context.Context) error, error) {
		g, err := guard.New(c, guard.Name("list"), guard.Key("#{req.IDs}"), guard.Wait(time.Minute))
		return wanting(g, err, n)
	},
	"stack": func(c *redisson.Client, n int) (func(ctx context.Context) error, error) {
		var guards []*guard.Guard
		for i := range n {
			g, err := guard.New(c, guard.Name(fmt.Sprint("g", i)), guard.Key(fmt.Sprint("k", i, ":#{req.ID}")), guard.Wait(time.Minute))
			if err != nil {
				return nil, err
			}
			guards = append(guards, g)
		}
		g, err := guard.Stack(guards...)
		return wanting(g, err, n)
	},
	"multilock": func(c *redisson.Client, n int) (func(ctx context.Context) error, error) {
		var locks []redisson.Member
		for i := range n {
			locks = append(locks, c.Lock(fmt.Sprint("k", i)))
		}
		l, err := redisson.NewMultiLock(locks...)
		return func(ctx context.Context) error {
			held, err := l.Lock(ctx)
			if err != nil {
				return err
			}
			return l.Unlock(held)
		}, err
	},
	"readers": func(c *redisson.Client, n int) (func(ctx context.Context) error, error) {
		return func(ctx context.Context) error {
			var taken, given sync.WaitGroup
			errs := make([]error, n)
			taken.Add(n)
			for i := range n {
				given.Go(func() {
					h, err := c.Acquire(ctx, lock.Request{Key: "k", Kind: lock.Read, Wait: time.Minute})
					taken.Done()
					if err == nil {
						taken.Wait()
						err = h.Release(ctx)
					}
					errs[i] = err
				})
			}
			given.Wait()
			return errors.Join(errs...)
		}, nil
	},
}

// wanting calls a function behind g that wants n locks.
func wanting(g *guard.Guard, err error, n int) (func(ctx context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	f, err := guard.Action(g, func(context.Context, items) error { return nil })
	want := items{ID: "7"}
	for i := range n {
		want.IDs = append(want.IDs, fmt.Sprint("k", i))
	}
	return func(ctx context.Context) error { return f(ctx, want) }, err
}

// together takes several locks again and again, one time after the other. It measures the least time that this takes.
func (w *worker) together(ctx context.Context, j job) (r result, err error) {
	p, err := w.peer(j.Addr)
	if err != nil {
		return r, err
	}
	f, err := takings[j.What](p.(latchkey).Client, j.Count)
	if err != nil {
		return r, err
	}
	start, least := time.Now(), time.Hour
	for end := start.Add(time.Duration(j.Millis) * time.Millisecond); time.Now().Before(end); {
		began := time.Now()
		if err := f(ctx); err != nil {
			return r, err
		}
		if began.Sub(start) >= time.Duration(j.Skip)*time.Millisecond {
			r.Done++
			least = min(least, time.Since(began))
		}
	}
	r.Named = []measure{{"least", least.Seconds()}}
	return r, nil
}
