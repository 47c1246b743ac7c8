package wire_test

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/faults/server"
	"github.com/latchkey-go/latchkey/faults/wire"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// Each action has its effect at the server and at the client: a script counts how often it has run.
func TestActions(t *testing.T) {
	redistest.NeedServers(t)
	const delay = 300 * time.Millisecond
	for _, tt := range []struct {
		name        string
		action      wire.Action
		answered    bool
		soon, later string // how often the script has run
	}{
		{"lose request", wire.LoseRequest, false, "", ""},
		{"swallow request", wire.SwallowRequest, false, "", ""},
		{"lose reply", wire.LoseReply, false, "1", "1"},
		{"swallow reply", wire.SwallowReply, false, "1", "1"},
		{"late", wire.Late, false, "", "1"},
		{"late copy", wire.LateCopy, true, "1", "2"},
		{"late, reply lost", wire.LateReplyLost, false, "1", "2"},
		{"twice", wire.Twice, true, "2", "2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := server.Start(t.Context(), server.Config{Name: "s", Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			p, err := wire.Listen(s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			rdb := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
			defer rdb.Close()
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			p.Begin(wire.Strike{Action: tt.action, Every: 1, Delay: func() time.Duration { return delay }})
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err = rdb.Eval(ctx, "return redis.call('incr', KEYS[1])", []string{"n"}).Err()
			if struck := p.End(); struck != 1 || (err == nil) != tt.answered {
				t.Errorf("%d requests were struck, and the answer is %v", struck, err)
			}
			expect(t, s, tt.soon, start.Add(delay/2))
			expect(t, s, tt.later, start.Add(3*delay))
			if n := p.Pending(); n != 0 {
				t.Errorf("%d requests are still late", n)
			}
			if err := rdb.Ping(t.Context()).Err(); err != nil {
				t.Errorf("after the strike: %v", err)
			}
		})
	}
}

// expect looks at what the script has counted at a time.
func expect(t *testing.T, s *server.Server, want string, at time.Time) {
	t.Helper()
	<-time.After(time.Until(at))
	if got := s.Admin.Get(context.Background(), "n").Val(); got != want {
		t.Errorf("after %v the script has run %q times, want %q", time.Until(at).Abs(), got, want)
	}
}
