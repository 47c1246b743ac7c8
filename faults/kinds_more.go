package main

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// The kinds of fault of a minority of servers, which a RedLock bears.
var redKinds = []kind{
	{name: "minority killed, data lost", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		v.Kill()
		sleep(ctx, longest+s.between(200, 1000)) // then no lease is left that it has forgotten
		return v.Run(ctx)
	}},
	{name: "minority stopped", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		err := v.Signal(syscall.SIGSTOP)
		sleep(ctx, s.between(300, 4000))
		return errors.Join(err, v.Signal(syscall.SIGCONT))
	}},
	{name: "minority cut off", strike: func(ctx context.Context, s *stage) (err error) {
		i := s.rng.IntN(len(s.servers))
		for _, v := range s.ways {
			v.links[i].cut()
		}
		sleep(ctx, s.between(300, 3000))
		for _, v := range s.ways {
			err = errors.Join(err, v.links[i].mend())
		}
		return err
	}},
	{name: "majority stopped", strike: func(ctx context.Context, s *stage) (err error) {
		for _, v := range s.servers[:2] {
			err = errors.Join(err, v.Signal(syscall.SIGSTOP))
		}
		sleep(ctx, s.between(300, 3000))
		for _, v := range s.servers[:2] {
			err = errors.Join(err, v.Signal(syscall.SIGCONT))
		}
		return err
	}},
}

// The kinds of fault of the server's clock. A step ahead ends leases too early.
var clockKinds = []kind{
	{name: "clock ahead", lost: true, strike: func(ctx context.Context, s *stage) error {
		err := s.clock.Step(s.between(500, 6000))
		sleep(ctx, time.Second)
		return err
	}},
	{name: "clock back", strike: func(ctx context.Context, s *stage) error {
		err := s.clock.Step(-s.between(500, 4000))
		sleep(ctx, time.Second)
		return err
	}},
}

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
