package main

import (
	"context"
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
	rdb              *redis.Client
	acquire, release []argument
	holders          atomic.Int64
}

// argument is one of a command: a text, perhaps around the name of the lock, or the id of the holder.
type argument struct {
	before, after string
	named, holder bool
}

type bareHeld struct {
	b           *bare
	key, holder string
}

// openBare uses the options of redisson.Open, which are not those of go-redis.
func openBare(addr string) (peer, error) {
	return listen(addr, &redis.Options{Addr: addr, ContextTimeoutEnabled: true, MaxRetries: -1})
}

func openBareDefault(addr string) (peer, error) { return listen(addr, &redis.Options{Addr: addr}) }

func listen(addr string, o *redis.Options) (*bare, error) {
	const key = "benchmark-of-the-bare-pair"
	scripts, id, err := overhear(addr, key)
	if err != nil {
		return nil, fmt.Errorf("the scripts of a pair: %w", err)
	}
	if len(scripts) != 2 {
		return nil, fmt.Errorf("a pair is %d scripts, want 2", len(scripts))
	}
	return &bare{rdb: redis.NewClient(o), acquire: arguments(scripts[0], key, id), release: arguments(scripts[1], key, id)}, nil
}

// overhear returns the EVALSHA commands that Latchkey sends to lock and unlock key, and the id of the client that did.
func overhear(addr, key string) (scripts [][]string, id string, err error) {
	p, err := listenAndCount(addr)
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	c, err := redisson.Open("redis://" + p.Addr())
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	for range 2 { // the first pair loads the scripts
		p.Record()
		if err := pair(context.Background(), latchkey{c, nil}, key); err != nil {
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
	for _, text := range command {
		before, after, named := strings.Cut(text, key)
		all = append(all, argument{before, after, named, strings.HasPrefix(text, id+":")})
	}
	return all
}

func (b *bare) send(ctx context.Context, command []argument, h *bareHeld) error {
	args := make([]any, len(command))
	for i, a := range command {
		switch {
		case a.named:
			args[i] = a.before + h.key + a.after
		case a.holder:
			args[i] = h.holder
		default:
			args[i] = a.before
		}
	}
	answer, err := b.rdb.Do(ctx, args...).Int64Slice()
	if err == nil && (len(answer) == 0 || answer[0] != 1) {
		err = errBusy
	}
	return err
}

func (b *bare) Lock(ctx context.Context, key string) (held, error) {
	h := &bareHeld{b, key, "benchmark:" + strconv.FormatInt(b.holders.Add(1), 10)}
	return h, b.send(ctx, b.acquire, h)
}

func (h *bareHeld) Release(ctx context.Context) error { return h.b.send(ctx, h.b.release, h) }

func (b *bare) Close() error { return b.rdb.Close() }
