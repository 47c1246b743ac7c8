package main

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// gathered sends the bare scripts by a few goroutines, each of which sends all that has gathered while it was away: the
// floor of what go-redis can do for many callers.
type gathered struct {
	*bare
	stop  context.CancelFunc
	queue chan question
	end   sync.WaitGroup
}

type question struct {
	args   []any
	answer chan *redis.Cmd
}

// senders is how many of these goroutines there are, and most is how much one of them sends at once.
const (
	senders = 3
	most    = 500
)

func openGathered(addr string) (peer, error) {
	b, err := openBare(addr)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	g := &gathered{bare: b.(*bare), stop: stop, queue: make(chan question, most)}
	g.do = func(_ context.Context, args []any) *redis.Cmd {
		q := question{args, make(chan *redis.Cmd, 1)}
		g.queue <- q
		return <-q.answer
	}
	for range senders {
		g.end.Go(func() { g.send(ctx) })
	}
	return g, nil
}

func (g *gathered) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-g.queue:
			g.exchange(ctx, q)
		}
	}
}

// exchange sends a question with all that are queued behind it.
func (g *gathered) exchange(ctx context.Context, q question) {
	pipe := g.rdb.Pipeline()
	answers := []chan *redis.Cmd{q.answer}
	cmds := []*redis.Cmd{pipe.Do(ctx, q.args...)}
	for len(cmds) < most {
		select {
		case q := <-g.queue:
			answers, cmds = append(answers, q.answer), append(cmds, pipe.Do(ctx, q.args...))
			continue
		default:
		}
		break
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, cmd := range cmds {
		answers[i] <- cmd
	}
}

func (g *gathered) Close() error {
	g.stop()
	g.end.Wait()
	return g.bare.Close()
}
