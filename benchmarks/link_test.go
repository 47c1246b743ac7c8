package main

import (
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestTheLinkIsLate(t *testing.T) {
	s := redistest.Start(t)
	l, err := openLink(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	rdb := redis.NewClient(&redis.Options{Addr: l.Addr()})
	defer rdb.Close()
	var shortest time.Duration
	for range 20 {
		start := time.Now()
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); shortest == 0 || took < shortest {
			shortest = took
		}
	}
	if shortest < latency || shortest > 4*latency {
		t.Errorf("a round trip takes %v at least, want %v and not much more", shortest, latency)
	}
}
