package main

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/latchkey-go/latchkey/faults/history"
	"github.com/latchkey-go/latchkey/faults/worker"
)

// The kinds of fault of workers.
var workerKinds = []kind{
	{name: "holder stopped", strike: stopHolder},
	{name: "waiter stopped", strike: func(ctx context.Context, s *stage) error {
		defer s.only() // it strikes those who are inside, as they can't give it the lock
		return s.freeze(ctx, s.awaitWaiting(ctx, s.ways...), s.between(200, 3000))
	}},
	{name: "holder killed", kills: true, strike: killHolder},
	{name: "waiter killed", kills: true, strike: func(ctx context.Context, s *stage) error {
		defer s.only()
		return s.replace(ctx, s.awaitWaiting(ctx, s.ways...))
	}},
	{name: "cancelled waits", strike: times(5, func(ctx context.Context, s *stage) error {
		err := s.everywhere(worker.Order{Do: "burst", Count: 60})
		sleep(ctx, 100*time.Millisecond)
		return err
	})},
	{name: "pool exhausted", strike: func(ctx context.Context, s *stage) error {
		d := s.between(300, 1500)
		err := s.everywhere(worker.Order{Do: "exhaust", Count: int(d / time.Millisecond)})
		sleep(ctx, d)
		return err
	}},
	{name: "garbage", strike: func(ctx context.Context, s *stage) error {
		err := s.everywhere(worker.Order{Do: "garbage", Count: 50})
		sleep(ctx, time.Second)
		return err
	}},
}

// stopHolder stops a worker that is inside for longer than its lease.
func stopHolder(ctx context.Context, s *stage) error {
	return s.freeze(ctx, s.awaitInside(ctx, s.ways...), watchdog+s.between(100, 1500))
}

// killHolder kills a worker that is inside.
func killHolder(ctx context.Context, s *stage) error {
	return s.replace(ctx, s.awaitInside(ctx, s.ways...))
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
