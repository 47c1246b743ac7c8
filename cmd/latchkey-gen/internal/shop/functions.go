package shop

import "context"

// Settle has all that Orders.Mark has.
//
//latchkey:guard order:#{id}:#{call}; hold=1m
func Settle(ctx context.Context, id string, call Tenant, amounts ...int64) (int64, error) {
	var sum int64
	for _, a := range amounts {
		sum += a
	}
	return sum, nil
}

//latchkey:guard ; wait=2s
func reset(_ context.Context, _ Tagged) error { return nil }

// Tagged says its key by itself.
type Tagged struct {
	_  struct{} `guard:"tagged:#{req.ID}; name=reset"`
	ID uint64
}

// Nightly has no argument.
//
//latchkey:guard nightly; busy=fallback; outage=fail
func Nightly(context.Context) error { return nil }

// Count returns what it gets, as it is.
//
//latchkey:guard count:#{n}
func Count(_ context.Context, n int) (int, error) { return n, nil }

// Both has no argument, and several results.
//
//latchkey:guard both
func Both(ctx context.Context) (*Receipt, error, error) { return nil, nil, ctx.Err() }

// Notify has a key behind two pointers.
//
//latchkey:guard notify:#{order.Customer.Name}
func Notify(_ context.Context, order *RefundRequest) (string, error) { return order.Customer.Name, nil }
