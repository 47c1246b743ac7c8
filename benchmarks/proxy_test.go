package main

import (
	"bufio"
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
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
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr()})
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

func TestCommandsAreReadAndWritten(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // nil for an error
	}{
		{"*1\r\n$4\r\nPING\r\n", []string{"PING"}},
		{"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n\r\n\r\n", []string{"SET", "k", "\r\n\r\n"}},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\n", []string{"GET", ""}},
		{"PING\r\n", nil},
		{"*0\r\n", nil},
		{"*1\r\n$-1\r\n", nil},
		{"*1\r\n$999999999999\r\n", nil},
		{"*2\r\n$3\r\nGET\r\n", nil},
		{"*x\r\n", nil},
		{"", nil},
	} {
		got, err := readCommand(bufio.NewReader(strings.NewReader(tt.text)))
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("readCommand(%q) = %q, %v, want %q", tt.text, got, err, tt.want)
			continue
		}
		var back bytes.Buffer
		w := bufio.NewWriter(&back)
		if writeCommand(w, got); err == nil && (w.Flush() != nil || back.String() != tt.text) {
			t.Errorf("%q comes back as %q", tt.text, back.String())
		}
	}
}
