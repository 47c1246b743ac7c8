package main

import (
	"context"
	"maps"
	"testing"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestProxyCountsWhatClientsSend(t *testing.T) {
	s := redistest.Start(t)
	p, err := listenAndCount(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer rdb.Close()
	ctx := context.Background()
	if err := rdb.Ping(ctx).Err(); err != nil { // opens the connection
		t.Fatal(err)
	}
	p.Reset()
	const script = "redis.call('set', KEYS[1], 'v') return redis.call('get', KEYS[1])"
	if got, err := rdb.Eval(ctx, script, []string{"k"}).Text(); got != "v" || err != nil {
		t.Errorf("Eval = %q, %v", got, err)
	}
	if _, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range 3 {
			pipe.Get(ctx, "k")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	got := p.Counts()
	delete(got, "hello") // of another connection, if the client opens one
	delete(got, "client")
	if want := (map[string]int64{"eval": 1, "get": 3}); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v: a script is one command, and so is each one in a pipeline", got, want)
	}
}
