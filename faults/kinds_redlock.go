package main

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/faults/server"
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
		return s.halt(ctx, []*server.Server{s.one()}, s.between(300, 4000))
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
	{name: "majority stopped", strike: func(ctx context.Context, s *stage) error {
		return s.halt(ctx, s.servers[:2], s.between(300, 3000))
	}},
}
