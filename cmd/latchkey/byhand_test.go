package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/redisson"
)

// A lock is held by hand, programs say why, and free ends it with a name and a reason that stay to be read.
func TestHoldFreeFrees(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	said := func(want int, parts []string, args ...string) {
		t.Helper()
		status, out, err := result(t, at(s), args...)
		for _, part := range parts {
			if !strings.Contains(out+err, part) {
				t.Errorf("%q says %q, want %q", args, out+err, part)
			}
		}
		if status != want {
			t.Errorf("%q = %d, want %d: %s", args, status, want, err)
		}
	}
	said(0, []string{"BY"}, "frees")
	said(0, []string{"order:42 is held until 2", "latchkey free"}, "hold", "order:42", "--for", "1h", "--by", "ann", "--reason", "new disks")
	for _, busy := range [][]string{{"run", "order:42", "--", "true"}, {"hold", "order:42", "--for", "1h", "--by", "bob"}} {
		eventually(t, busy[0]+" says by whom it is held", func() bool { // a busy machine may not answer in time
			status, _, err := result(t, at(s), busy...)
			return status == 75 && strings.Contains(err, "held by others, for up to ") && strings.Contains(err, "by hand, ann: new disks")
		})
	}
	said(0, []string{", by ann: new disks, for 1h0m0s"}, "show", "order:42")
	said(0, []string{"by hand, ann: new disks"}, "ls")
	said(0, []string{`"for":"ann: new disks"`}, "show", "order:42", "-o", "json")
	said(0, []string{"order:42 is freed; it was held by hand, ann: new disks"}, "free", "--yes", "order:42", "--by", "bob", "--reason", "disks are in, № 7")
	said(0, []string{"bob", "order:42", "disks are in, № 7"}, "frees")
	said(0, []string{`"by":"bob"`, `"key":"order:42"`, `"holders":["`}, "frees", "-o", "json")
	for _, wrong := range [][]string{{"hold", "k"}, {"hold", "k", "--for", "-1s"}, {"hold", "", "--for", "1h"}, {"hold", "k", "--for", "1h", "--reason", strings.Repeat("x", 300)},
		{"hold", "k", "--for", "1h", "--by", "a\nb"}, {"frees", "--limit", "0"}, {"frees", "more"}} {
		said(64, nil, wrong...)
	}
	said(0, nil, "hold", "k", "--for", "1h")
	said(64, []string{"--by and --reason"}, "free", "--yes", "k", "--reason", "a\nb")
	said(0, []string{"k is freed"}, "free", "--yes", "k")
}

// The command that runs under a lock is told who has freed it.
func TestRunSaysWhoFreedItsLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, at(s), "run", "k", "--", "sh", "-c", "echo in; exec sleep 60")
	p.out.await(t, "in")
	eventually(t, "it listens, and says since when it has the lock", func() bool {
		channels, _ := s.Client(t).PubSubChannels(t.Context(), "latchkey_client:*").Result()
		_, out, _ := result(t, at(s), "show", "k")
		return len(channels) == 1 && strings.Contains(out, ", has it since 2") && strings.Contains(out, ", renewed ")
	})
	if status, _, err := result(t, at(s), "free", "--yes", "k", "--by", "ann", "--reason", "it hangs, ticket 7"); status != 0 {
		t.Fatalf("free: %d, %s", status, err)
	}
	p.err.await(t, "freed by hand (ann: it hangs, ticket 7)")
	if status := p.status(); status != 76 {
		t.Errorf("status %d, want 76", status)
	}
}

// Two calls that take two locks in both orders are found, and two that do so one after the other are not.
func TestDoctorFindsDeadlocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	a, b := describing(t, s), describing(t, s)
	x, y := take(t, a, "x"), take(t, b, "y")
	other := func(c *redisson.Client, ctx context.Context, key string) {
		go func() { _, _ = c.Acquire(ctx, lock.Request{Key: key, Wait: -1}) }()
	}
	other(a, t.Context(), "y") // another call of the process that holds x
	other(b, t.Context(), "x")
	time.Sleep(2 * time.Second)
	if status, out, _ := result(t, at(s), "doctor", "--deadlocks"); status != 0 || !strings.HasPrefix(out, "ok    deadlock") {
		t.Errorf("without a deadlock: %d, %q", status, out)
	}
	other(a, x.Context(), "y")
	other(b, y.Context(), "x")
	eventually(t, "the deadlock is found", func() bool {
		status, out, _ := result(t, at(s), "doctor", "--deadlocks")
		return status == 1 && strings.Count(out, "fail") == 1 && strings.Contains(out, "x -> y -> x") && strings.Contains(out, "latchkey free x")
	})
	if _, out, _ := result(t, at(s), "show", "x"); !strings.Contains(out, "waits for y") {
		t.Errorf("show says %q", out)
	}
}

func describing(t *testing.T, s *redistest.Server) *redisson.Client {
	c, err := redisson.New(s.Client(t), redisson.Name("n"), redisson.Describe())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func take(t *testing.T, c *redisson.Client, key string) lock.Hold {
	t.Helper()
	h, err := c.Acquire(t.Context(), lock.Request{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
