// Package binds has structs of functions.
package binds

import (
	"context"
	"errors"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

type Order struct {
	ID    string
	Items []string
	Total float64
}

// Elsewhere is bound in another package, if at all.
type Elsewhere struct {
	Pay    func(context.Context, Order) error                    `guard:"order:#{req.ID}; wait=2s"`
	Move   func(ctx context.Context, from, to string) error      `guard:"#{[from, to]}; args=from,to"`
	Typo   func(context.Context, Order) error                    `guard:"order:#{req.IDD}; wait=2s"`         // want `guard: Bind of Elsewhere.Typo: guard "Elsewhere.Typo": key: keyexpr: unknown field IDD of Order, did you mean ID\?`
	Args   func(ctx context.Context, from, to string) error      `guard:"#{from}"`                           // want `has 2 arguments behind its context: name them, as in args=a,b`
	Ask    func(ctx context.Context, from, to string) error      `guard:"#{form}; args=from,to"`             // want `unknown name form, did you mean from\?`
	Cond   func(context.Context, Order) error                    `guard:"order:#{req.ID}; when=req.Total"`   // want `when: keyexpr: a condition is true or false, and this is of type float64`
	Policy func(context.Context, Order) error                    `guard:"order:#{req.ID}; busy=skpi"`        // want `unknown policy "skpi", did you mean skip\?`
	Blank  func(context.Context, Order) error                    `guard:"order:#{req.ID} wait=2s"`           // want `attributes follow a semicolon, not a blank: write ; wait=2s \(at offset 15\)`
	Twice  func(context.Context, Order) error                    `guard:"order:#{req.ID}" guard:"; wait=2s"` // want `two guard tags`
	Hidden func(context.Context, Order) error                    `guard:order`                               // want `malformed struct tag`
	Own    func(context.Context, Order) error                    `guard:"#{tenant(req.ID)}:#{req.ID}"`
	Other  func(Order) error                                     `guard:"order:#{anything}; wait=1s"`
	Syntax func(Order) error                                     `guard:"order:#{anything"`                // want `the hole is not closed by }`
	Both   func(context.Context, Order) (context.Context, error) `guard:"order:#{req.Items}:#{req.Items}"` // want `a second list`
	hidden func(context.Context, Order) error                    `guard:"order:#{req.ID}"`                 // want `field has a guard tag, but is not exported`
}

type Orders struct {
	Pay  func(context.Context, Order) error `guard:"order:#{req.IDD}; wait=2s"`  // want `guard: Bind of Orders.Pay: guard "Orders.Pay": key: keyexpr: unknown field IDD of Order`
	Fair func(context.Context, Order) error `guard:"order:#{req.ID}; kind=fair"` // want `guard: Bind of Orders.Fair: guard "Orders.Fair": limit 3 belongs to kind permit, not to kind fair`
	In   Inner
}

type Inner struct {
	Refund func(context.Context, Order) error `guard:"order"` // want `guard: Bind of Orders.In.Refund: guard "Orders.In.Refund": key: keyexpr: all requests would share one key`
}

type Plain struct {
	Pay func(context.Context, Order) error
}

type Named struct {
	A func(context.Context, Order) error `guard:"order:#{req.ID}; name=x"`
	B func(context.Context, Order) error `guard:"order:#{req.ID}; name=x"` // want `guard: Bind of Named.B: guard "x" is also that of Named.A: give each a name of its own`
}

type Fine struct {
	Pay func(context.Context, Order) error `guard:"order:#{req.ID}; busy=fallback"`
	Job func(context.Context) error        `guard:"nightly"`
}

func bind(l lock.Locker, orders *Orders) error {
	limited := guard.Must(guard.New(l, guard.Limit(3)))
	plain, err := guard.New(l)
	if err != nil {
		return err
	}
	fallback := guard.Fallback(func(context.Context, Order, error) error { return nil })
	return errors.Join(
		guard.Bind(limited, orders),
		guard.Bind(plain, &Plain{}), // want `guard: Bind of \*binds.Plain: no field has a guard tag`
		guard.Bind(plain, Plain{}),  // want `guard: Bind wants a pointer to a struct, not binds.Plain`
		guard.Bind(plain, new(Named)),
		guard.Bind(guard.Must(guard.New(l, fallback)), &Fine{}),
	)
}
