package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/redisson"
	"github.com/redis/go-redis/v9"
)

// bare sends the two scripts of Latchkey's pair and does nothing else. It learns them from a pair of Latchkey's that it
// listens to, so they are those of today.
type bare struct {
	id               string
	rdb              *redis.Client
	do               func(ctx context.Context, args []any) *redis.Cmd
	acquire, release []argument
	holders          atomic.Int64
}

// argument is one of a command: a text, perhaps around the name of the lock, or the id of a holder.
type argument struct {
	before, after string
	named         bool
	holder        int // the first one in the command, or the second; 0: none
}

type bareHeld struct {
	b           *bare
	key, holder string
}

// openBare uses the options of redisson.Open, which are not those of go-redis.
func openBare(addr string) (peer, error) {
	return listen(addr, &redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
}

// openBareDefault uses those of go-redis. Such a client does not give up at the deadline of a caller, who could not leave in time if it
// waited for the answer itself: goroutines that are kept for that do.
func openBareDefault(addr string) (peer, error) {
	b, err := listen(addr, &redis.Options{Addr: addr})
	if err != nil {
		return nil, err
	}
	ask, questions := b.do, make(chan question)
	b.do = func(ctx context.Context, args []any) *redis.Cmd {
		q := question{args, make(chan *redis.Cmd, 1)}
		select {
		case questions <- q:
		default: // nobody is idle
			go func() {
				for ; ; q = <-questions {
					q.answer <- ask(context.Background(), q.args)
				}
			}()
		}
		select {
		case cmd := <-q.answer:
			return cmd
		case <-ctx.Done():
			cmd := redis.NewCmd(ctx)
			cmd.SetErr(ctx.Err())
			return cmd
		}
	}
	return b, nil
}

func listen(addr string, o *redis.Options) (*bare, error) {
	key := "benchmark-of-the-bare-pair:" + rand.Text() // several processes can do this at the same time
	scripts, id, err := overhear(addr, func(l latchkey) error { return pair(context.Background(), l, key) })
	if err != nil {
		return nil, fmt.Errorf("the scripts of a pair: %w", err)
	}
	if len(scripts) != 2 {
		return nil, fmt.Errorf("a pair is %d scripts, want 2", len(scripts))
	}
	rdb := redis.NewClient(o)
	do := func(ctx context.Context, args []any) *redis.Cmd { return rdb.Do(ctx, args...) }
	return &bare{id: rand.Text(), rdb: rdb, do: do, acquire: arguments(scripts[0], key, id), release: arguments(scripts[1], key, id)}, nil
}

// overhear returns the EVALSHA commands that Latchkey sends, and the id of the client that did.
func overhear(addr string, do func(latchkey) error) (scripts [][]string, id string, err error) {
	p, err := listenAndCount(addr)
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	c, err := redisson.Open("redis://" + p.Addr)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	for range 2 { // the first time loads the scripts
		p.Record()
		if err := do(latchkey{Client: c}); err != nil {
			return nil, "", err
		}
	}
	for _, command := range p.Recorded() {
		if strings.EqualFold(command[0], "evalsha") {
			scripts = append(scripts, command)
		}
	}
	return scripts, c.ID(), nil
}

func arguments(command []string, key, id string) []argument {
	var all []argument
	holders := 0
	for _, text := range command {
		a := argument{}
		a.before, a.after, a.named = strings.Cut(text, key)
		if strings.HasPrefix(text, id+":") {
			holders++
			a.holder = holders
		}
		all = append(all, a)
	}
	return all
}

func (b *bare) send(ctx context.Context, command []argument, key string, holders ...string) error {
	args := make([]any, len(command))
	for i, a := range command {
		switch {
		case a.named:
			args[i] = a.before + key + a.after
		case a.holder > 0:
			args[i] = holders[a.holder-1]
		default:
			args[i] = a.before
		}
	}
	cmd := b.do(ctx, args)
	if _, taken := cmd.Val().(int64); !taken && cmd.Err() == nil { // a list is a refusal
		return errBusy
	}
	return cmd.Err()
}

func (b *bare) Lock(ctx context.Context, key string) (held, error) {
	h := &bareHeld{b, key, b.nextHolder()}
	return h, b.send(ctx, b.acquire, key, h.holder)
}

// nextHolder returns an id that nobody else has: under an equal one, a lock would be re-entered.
func (b *bare) nextHolder() string { return b.id + ":" + strconv.FormatInt(b.holders.Add(1), 10) }

func (h *bareHeld) Release(ctx context.Context) error {
	return h.b.send(ctx, h.b.release, h.key, h.holder)
}

func (b *bare) Close() error { return b.rdb.Close() }
