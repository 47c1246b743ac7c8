package main

import (
	"context"
	"time"
)

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
