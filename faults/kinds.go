package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/wire"
	"github.com/latchkey-go/latchkey/faults/worker"
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
	{name: "cut connections", strike: func(ctx context.Context, s *stage) error {
		for range 4 {
			if err := s.toxics(ctx, s.between(10, 60), toxic{Type: "reset_peer", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}}); err != nil {
				return err
			}
			sleep(ctx, s.between(50, 200))
		}
		return nil
	}},
	{name: "half-open towards the server", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(300, 3000), toxic{Type: "timeout", Stream: "upstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
	}},
	{name: "half-open towards the client", strike: func(ctx context.Context, s *stage) error {
		return s.toxics(ctx, s.between(300, 3000), toxic{Type: "timeout", Stream: "downstream", Toxicity: 1, Attributes: map[string]any{"timeout": 0}})
	}},
	{name: "partition of a worker", strike: func(ctx context.Context, s *stage) error {
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
	}},
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
	wired("copy late", wire.LateCopy, 5),
	wired("copy late, reply lost", wire.LateReplyLost, 20),
	wired("request twice", wire.Twice, 2),
}

// wired is a fault of one of so many requests. What is late is so by up to twice the longest lease.
func wired(name string, a wire.Action, every int) kind {
	return kind{name: name, strike: func(ctx context.Context, s *stage) error {
		err := s.wired(ctx, s.between(700, 1500), wire.Strike{Action: a, Every: every, Delay: func() time.Duration { return rand.N(2 * longest) }})
		s.late(ctx)
		return err
	}}
}

// The kinds of fault of a server that keeps its data.
var serverKinds = []kind{
	{name: "server killed, data kept", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		v.Kill()
		sleep(ctx, s.between(0, 1500))
		return v.Run(ctx)
	}},
	{name: "server stopped", strike: func(ctx context.Context, s *stage) error {
		v := s.one()
		if err := v.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		sleep(ctx, s.between(200, 3000))
		return v.Signal(syscall.SIGCONT)
	}},
	{name: "connections killed", strike: func(ctx context.Context, s *stage) error {
		for range 5 {
			if err := admin(ctx, s.one(), "client", "kill", "type", "normal", "skipme", "yes"); err != nil {
				return err
			}
			sleep(ctx, s.between(20, 200))
		}
		return nil
	}},
	{name: "subscriptions killed", strike: func(ctx context.Context, s *stage) error {
		for range 8 {
			if err := admin(ctx, s.one(), "client", "kill", "type", "pubsub"); err != nil {
				return err
			}
			sleep(ctx, s.between(20, 200))
		}
		return nil
	}},
	{name: "script cache flushed", strike: func(ctx context.Context, s *stage) error {
		for range 20 {
			if err := admin(ctx, s.one(), "script", "flush"); err != nil {
				return err
			}
			sleep(ctx, s.between(5, 60))
		}
		return nil
	}},
}

// The kinds of fault of workers.
var workerKinds = []kind{
	{name: "holder stopped", strike: func(ctx context.Context, s *stage) error {
		return s.freeze(ctx, s.awaitInside(ctx, s.ways...), watchdog+s.between(100, 1500))
	}},
	{name: "waiter stopped", strike: func(ctx context.Context, s *stage) error {
		defer s.only() // it strikes those who are inside, as they can't give it the lock
		return s.freeze(ctx, s.awaitWaiting(ctx, s.ways...), s.between(200, 3000))
	}},
	{name: "holder killed", strike: func(ctx context.Context, s *stage) error { return s.replace(ctx, s.awaitInside(ctx, s.ways...)) }},
	{name: "waiter killed", strike: func(ctx context.Context, s *stage) error {
		defer s.only()
		return s.replace(ctx, s.awaitWaiting(ctx, s.ways...))
	}},
	{name: "cancelled waits", strike: func(ctx context.Context, s *stage) error {
		for range 5 {
			if err := s.everywhere(worker.Order{Do: "burst", Count: 60}); err != nil {
				return err
			}
			sleep(ctx, 100*time.Millisecond)
		}
		return nil
	}},
	{name: "garbage", strike: func(ctx context.Context, s *stage) error {
		err := s.everywhere(worker.Order{Do: "garbage", Count: 50})
		sleep(ctx, time.Second)
		return err
	}},
}

// freeze stops a worker for d.
func (s *stage) freeze(ctx context.Context, v *way, d time.Duration) error {
	if v == nil {
		return errNobody
	}
	s.only(v)
	s.log.Note(history.Event{Op: history.Stop, Procs: []string{v.Name}})
	err := v.signal(syscall.SIGSTOP)
	sleep(ctx, d)
	err = errors.Join(err, v.signal(syscall.SIGCONT))
	s.log.Note(history.Event{Op: history.Cont, Procs: []string{v.Name}})
	return err
}

// replace kills a worker, and has another one take its place in the round.
func (s *stage) replace(ctx context.Context, v *way) error {
	if v == nil {
		return errNobody
	}
	s.only(v)
	s.log.Note(history.Event{Op: history.Kill, Procs: []string{v.Name}})
	v.kill()
	sleep(ctx, s.between(0, 300))
	if err := s.hire(v, 0); err != nil {
		return err
	}
	return v.order(s.order)
}
