package main

import (
	"cmp"
	"context"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

//go:generate go tool latchkey-gen

// till is a service with a method that does nothing.
type till interface {
	//latchkey:guard order:#{p.Tenant}:#{p.OrderID}; wait=1s
	pay(ctx context.Context, p *Payment) (int, error)
}

type idle struct{}

func (idle) pay(context.Context, *Payment) (int, error) { return 1, nil }

type pay = func(context.Context, *Payment) (int, error)

// declarations are the ways to declare one guard around a function, and what one would write without any.
var declarations = []struct {
	name    string
	declare func(l lock.Locker) (pay, error)
}{
	{we, func(l lock.Locker) (pay, error) { return guarded(l, "nothing", idle{}.pay) }},
	{"Bind", func(l lock.Locker) (pay, error) {
		var service struct {
			Pay pay `guard:"order:#{req.Tenant}:#{req.OrderID}; wait=1s"`
		}
		service.Pay = idle{}.pay
		g, err := guard.New(l, guard.Name("till"))
		if err != nil {
			return nil, err
		}
		err = guard.Bind(g, &service)
		return service.Pay, err
	}},
	{"latchkey-gen", func(l lock.Locker) (pay, error) {
		t, err := guardTill(l, idle{})
		if err != nil {
			return nil, err
		}
		return t.pay, nil
	}},
	{byHand, func(l lock.Locker) (pay, error) {
		return func(ctx context.Context, p *Payment) (n int, err error) {
			h, err := l.Acquire(ctx, lock.Request{Key: handmade(p), Wait: time.Second})
			if err != nil {
				return 0, err
			}
			defer func() { err = cmp.Or(err, h.Release(ctx)) }()
			return idle{}.pay(h.Context(), p)
		}, nil
	}},
}

// guarded returns a function behind a guard whose key is that of the payment.
func guarded(l lock.Locker, name string, f pay) (pay, error) {
	g, err := guard.New(l, guard.Name(name), guard.Key("order:#{req.Tenant}:#{req.OrderID}"), guard.Wait(time.Second))
	if err != nil {
		return nil, err
	}
	return guard.Func(g, f)
}

// guard measures guards around nothing, with locks within the process.
func (w *worker) guard(ctx context.Context, j job) (r result, err error) {
	for _, d := range declarations {
		f, err := d.declare(memlock.New())
		if err != nil {
			return r, err
		}
		ns, err := timed(j, func() error {
			_, err := f(ctx, payment)
			return err
		})
		if err != nil {
			return r, err
		}
		r.Named = append(r.Named, measure{d.name, ns})
	}
	return r, nil
}
