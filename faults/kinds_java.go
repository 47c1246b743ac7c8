package main

import (
	"context"
)

// The kinds of fault where half of the workers are Redisson's, which notice no loss: they are mild for the length of a lease.
var javaKinds = []kind{
	{name: "beside Redisson: latency", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(700, 1500), toxic{Type: "latency", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"latency": 5 + s.rng.IntN(60)}})
	}},
	{name: "beside Redisson: connections killed", strike: func(ctx context.Context, s *stage) error {
		for range 4 {
			if err := admin(ctx, s.one(), "client", "kill", "type", "normal", "skipme", "yes"); err != nil {
				return err
			}
			sleep(ctx, s.between(50, 300))
		}
		return nil
	}},
	{name: "beside Redisson: subscriptions killed", strike: func(ctx context.Context, s *stage) error {
		for range 4 {
			if err := admin(ctx, s.one(), "client", "kill", "type", "pubsub"); err != nil {
				return err
			}
			sleep(ctx, s.between(50, 300))
		}
		return nil
	}},
	{name: "beside Redisson: holder in Go stopped", strike: func(ctx context.Context, s *stage) error {
		return s.freeze(ctx, s.awaitInside(ctx, s.ways[s.plan.java:]...), watchdog+s.between(100, 1000))
	}},
	{name: "beside Redisson: holder in Go killed", kills: true, strike: func(ctx context.Context, s *stage) error {
		return s.replace(ctx, s.awaitInside(ctx, s.ways[s.plan.java:]...))
	}},
}
