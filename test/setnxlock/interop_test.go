package setnxlock

import (
	"fmt"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// pair is a server and a process on each side. Each scenario is played in both directions, with a key of its own.
type pair struct {
	t            *testing.T
	rdb          *redis.Client
	first, other *process
}

// scenarios are played with each library, first by its process and then by ours.
var scenarios = map[string]func(*pair){
	"excludes the other":        excludes,
	"hands over to a waiter":    handsOver,
	"renews":                    renews,
	"is killed":                 killed,
	"comes too late to release": tooLate,
}

func TestInterop(t *testing.T) {
	for peer, ours := range map[string]string{"redislock": "setnxlock Redislock", "redsync": "setnxlock Redsync"} {
		for name, play := range scenarios {
			for _, sides := range [][2]string{{peer, ours}, {ours, peer}} {
				t.Run(sides[0]+"/"+name, func(t *testing.T) {
					t.Parallel()
					s := redistest.Start(t)
					play(&pair{t, s.Client(t), start(t, s.Addr, sides[0]), start(t, s.Addr, sides[1])})
				})
			}
		}
		t.Run(peer+"/counts", func(t *testing.T) {
			t.Parallel()
			counts(t, []string{peer, ours, peer, ours})
		})
	}
}

func excludes(p *pair) {
	p.first.expect(p.t, "ok", "take", "k", "0s", "1m")
	p.other.expect(p.t, "busy", "take", "k", "0s", "1m")
	p.other.expect(p.t, "busy", "take", "k", "50ms", "1m")
	p.other.expect(p.t, "ok", "take", "k2", "0s", "1m")
	p.first.expect(p.t, "ok", "give", "k")
	p.other.expect(p.t, "ok", "take", "k", "0s", "1m")
	p.other.expect(p.t, "ok", "give", "k")
	p.other.expect(p.t, "ok", "give", "k2")
	if n := p.rdb.DBSize(p.t.Context()).Val(); n != 0 {
		p.t.Errorf("%d keys are left", n)
	}
}

func handsOver(p *pair) {
	p.first.expect(p.t, "ok", "take", "k", "0s", "1m")
	p.other.send("take", "k", "30s", "1m")
	<-time.After(100 * time.Millisecond)
	before := p.rdb.Get(p.t.Context(), "k").Val()
	p.first.expect(p.t, "ok", "give", "k")
	if got := p.other.answer(); got != "ok" {
		p.t.Fatalf("the waiter: %s", got)
	}
	if after := p.rdb.Get(p.t.Context(), "k").Val(); after == before || after == "" {
		p.t.Errorf("value %q, then %q, want another one", before, after)
	}
	p.first.expect(p.t, "busy", "take", "k", "0s", "1m")
	p.other.expect(p.t, "ok", "give", "k")
}

func renews(p *pair) {
	p.first.expect(p.t, "ok", "take", "k", "0s", "2s")
	p.first.expect(p.t, "ok", "renew", "k", "1m")
	if left := p.rdb.PTTL(p.t.Context(), "k").Val(); left < 50*time.Second {
		p.t.Errorf("%v are left of a minute", left)
	}
	<-time.After(2200 * time.Millisecond)
	p.other.expect(p.t, "busy", "take", "k", "0s", "1m")
	p.first.expect(p.t, "ok", "give", "k")
}

// A process that dies leaves its lock for as long as its lease.
func killed(p *pair) {
	p.first.expect(p.t, "ok", "take", "k", "0s", "1500ms")
	start := time.Now()
	p.first.kill()
	p.other.expect(p.t, "busy", "take", "k", "0s", "1m")
	p.other.expect(p.t, "ok", "take", "k", "30s", "1m")
	if took := time.Since(start); took < time.Second {
		p.t.Errorf("the lock of a dead process was free after %v", took)
	}
	p.other.expect(p.t, "ok", "give", "k")
}

// One who has lost the lock learns of it, and takes nothing away.
func tooLate(p *pair) {
	p.first.expect(p.t, "ok", "take", "k", "0s", "300ms")
	<-time.After(350 * time.Millisecond)
	p.other.expect(p.t, "ok", "take", "k", "0s", "1m")
	p.first.expect(p.t, "lost", "renew", "k", "1m")
	p.first.expect(p.t, "lost", "give", "k")
	p.first.expect(p.t, "busy", "take", "k", "0s", "1m")
	p.other.expect(p.t, "ok", "give", "k")
}

// Processes of both sides count up together. Two at a time would lose a number.
func counts(t *testing.T, all []string) {
	s := redistest.Start(t)
	rdb := s.Client(t)
	var processes []*process
	for _, side := range all {
		p := start(t, s.Addr, side)
		p.send("count", "k", "counter")
		processes = append(processes, p)
	}
	for i, p := range processes {
		if got := p.answer(); got != "ok" {
			t.Errorf("%s: %s", all[i], got)
		}
	}
	if n, want := rdb.Get(t.Context(), "counter").Val(), fmt.Sprint(len(all)*counters*rounds); n != want {
		t.Errorf("counted to %s, want %s", n, want)
	}
	if n := rdb.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys are left, want the counter", n)
	}
}
