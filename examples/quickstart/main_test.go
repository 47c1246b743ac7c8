package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	m.Run()
}

// start runs a server on free ports, over a Redis at addr or, without one, an embedded one, until the test ends.
func start(t *testing.T, addr string) (*server, *redisson.Client) {
	t.Helper()
	if addr == "" {
		r, err := startEmbedded()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		addr = r.Addr()
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	locker, err := redisson.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	s, err := newServer(newBank(0), locker, "127.0.0.1:0", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve = %v", err)
		}
	})
	return s, locker
}

// hold keeps a key locked, as another service on the same Redis would, until the test ends.
func hold(t *testing.T, l lock.Locker, key string) {
	t.Helper()
	h, err := l.Acquire(t.Context(), lock.Request{Key: key, Lease: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Release(context.Background()); err != nil {
			t.Errorf("release %s: %v", key, err)
		}
	})
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string // in what the user is told
	}{
		{[]string{"-redis", "http://localhost"}, "invalid URL scheme: http"},
		{[]string{"-redis", "redis://localhost/one"}, "invalid database number"},
		{[]string{"-latency", "soon"}, `invalid value "soon" for flag -latency`},
		{[]string{"-loud"}, "not defined: -loud"},
		{[]string{"now"}, `unexpected argument "now"`},
	} {
		var told bytes.Buffer
		if _, err := parse(tt.args, &told); !errors.Is(err, errUsage) || !strings.Contains(told.String(), tt.want) {
			t.Errorf("parse(%q) = %v, and told %q, want %q", tt.args, err, told.String(), tt.want)
		}
	}
	if _, err := parse([]string{"-h"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("parse(-h) = %v, want ErrHelp", err)
	}
	c, err := parse([]string{"-grpc", ":9091", "-redis", "redis://:secret@redis.example:6380/2"}, io.Discard)
	if err != nil || c.httpAddr != ":8080" || c.grpcAddr != ":9091" || c.redisAddr != "redis.example:6380" || c.redis != "redis://:secret@redis.example:6380/2" {
		t.Errorf("parse = %+v, %v", c, err)
	}
	t.Setenv("LATCHKEY_REDIS_URL", "redis://other.example:6379")
	for want, args := range map[string][]string{"other.example:6379": nil, "redis.example:6380": {"--redis", "redis://redis.example:6380"}} {
		if c, err := parse(args, io.Discard); err != nil || c.redisAddr != want {
			t.Errorf("with the variable, parse(%q) = %+v, %v, want %s", args, c, err, want)
		}
	}
}

// An address that can't be used ends the program with a word on which it is.
func TestRunBadAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ http, grpc, want string }{
		{"nowhere", "127.0.0.1:0", "-http: "},
		{taken.Addr().String(), "127.0.0.1:0", "-http: "},
		{"127.0.0.1:0", taken.Addr().String(), "-grpc: "},
	} {
		err := run(t.Context(), []string{"-http", tt.http, "-grpc", tt.grpc}, io.Discard, t.Output())
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("run(-http %s -grpc %s) = %v, want %s…", tt.http, tt.grpc, err, tt.want)
		}
	}
}

func TestReachable(t *testing.T) {
	for _, tt := range []struct{ ip, want string }{
		{"0.0.0.0", "localhost:80"},
		{"::", "localhost:80"},
		{"127.0.0.1", "127.0.0.1:80"},
		{"::1", "[::1]:80"},
	} {
		if got := reachable(&net.TCPAddr{IP: net.ParseIP(tt.ip), Port: 80}); got != tt.want {
			t.Errorf("reachable(%s) = %s, want %s", tt.ip, got, tt.want)
		}
	}
}
