package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/latchkey-go/latchkey/faults/wire"
)

// The kinds of fault on the way between workers and servers.
var linkKinds = []kind{
	{name: "latency", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(700, 1500), toxic{Type: "latency", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": 5 + s.rng.IntN(100)}})
	}},
	{name: "jitter", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(700, 1500), toxic{Type: "latency", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"latency": 60, "jitter": 60}},
			toxic{Type: "latency", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": 40, "jitter": 40}})
	}},
	{name: "slow bandwidth", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(700, 1500), toxic{Type: "bandwidth", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"rate": 8 + s.rng.IntN(20)}})
	}},
	{name: "sliced packets", strike: func(ctx context.Context, s *stage) error {
		slices := map[string]any{"average_size": 40, "size_variation": 30, "delay": 300}
		return s.toxics(ctx, s.between(700, 1500), toxic{Type: "slicer", Stream: "upstream", Toxicity: 1, Attributes: slices},
			toxic{Type: "slicer", Stream: "downstream", Toxicity: 1, Attributes: slices})
	}},
	{name: "cut connections", strike: times(4, func(ctx context.Context, s *stage) error {
		err := s.toxics(ctx, s.between(10, 60), toxic{Type: "reset_peer", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
		sleep(ctx, s.between(50, 200))
		return err
	})},
	{name: "half-open towards the server", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(300, 3000), toxic{Type: "timeout", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
	}},
	{name: "half-open towards the client", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(300, 3000), toxic{Type: "timeout", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
	}},
	{name: "partition of a worker", strike: cutOff},
}

// cutOff takes a worker that is inside off the network for a while.
func cutOff(ctx context.Context, s *stage) error {
	v := s.awaitInside(ctx, s.ways...)
	if v == nil {
		return errNobody
	}
	s.only(v)
	for _, l := range v.links {
		l.cut()
	}
	sleep(ctx, s.between(500, 3000))
	for _, l := range v.links {
		if err := l.mend(); err != nil {
			return err
		}
	}
	return nil
}

// errNobody says that a fault had nobody to strike.
var errNobody = errors.New("nobody was inside for a long time")

// The kinds of fault that strike single requests and replies.
var wireKinds = []kind{
	wired("request lost", wire.LoseRequest, 15),
	wired("request swallowed", wire.SwallowRequest, 60),
	wired("reply lost", wire.LoseReply, 15),
	wired("reply swallowed", wire.SwallowReply, 60),
	wired("request late", wire.Late, 20),
	noQueue(wired("copy late", wire.LateCopy, 5)),
	// A caller that gets such a copy waits for a dead waiter's deadline, and these add up; so there are
	// only two.
	{name: "copy late, with a queue", mix: []string{"fair"}, strike: func(ctx context.Context, s *stage) error {
		err := s.wired(ctx, s.between(700, 1500), wire.Strike{Action: wire.LateCopy, Every: 25, Most: 2, Delay: late})
		s.late(ctx)
		return err
	}},
	wired("copy late, reply lost", wire.LateReplyLost, 20),
	wired("request twice", wire.Twice, 2),
}

// noQueue keeps fair locks from the rounds of a kind.
func noQueue(k kind) kind {
	k.without = "fair"
	return k
}

// late is how late a request is: up to twice the longest lease.
func late() time.Duration { return rand.N(2 * longest) }

// wired is a fault of one of so many requests. A late one is so by up to twice the longest lease.
func wired(name string, a wire.Action, every int) kind {
	return kind{name: name, strike: func(ctx context.Context, s *stage) error {
		err := s.wired(ctx, s.between(700, 1500), wire.Strike{Action: a, Every: every, Delay: late})
		s.late(ctx)
		return err
	}}
}
