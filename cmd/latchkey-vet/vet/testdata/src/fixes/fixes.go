// Package fixes has mistakes that can be mended.
package fixes

import (
	"context"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

type Order struct {
	_  struct{} `guard:"order:#{req.OrdreID}; wiat=2s"` // want `unknown attribute "wiat", did you mean wait\?`
	ID string
}

type Field struct {
	_       struct{} `json:"-" guard:"order:#{req.OrdreID}; wait=2s"` // want `unknown field OrdreID of Field, did you mean OrderID\?`
	OrderID string
}

type Plain struct{ OrderID string }

type Comma struct {
	ID string `json:"id",guard:"key"` // want `malformed struct tag`
}

type Slip struct {
	_  struct{} `gaurd:"order:#{req.ID}"` // want `tag gaurd:"..." is nobody's`
	ID string
}

type Orders struct {
	Pay    func(context.Context, Field) error `guard:"order:#{req.OrderID}, wait=2s"`        // want `attributes follow a semicolon, not a comma`
	Move   func(context.Context, Field) error `guard:"order:#{req.OrderID} wait=2s"`         // want `attributes follow a semicolon, not a blank`
	Policy func(context.Context, Field) error `guard:"order:#{req.OrderID}; busy=skpi"`      // want `unknown policy "skpi", did you mean skip\?`
	Kind   func(context.Context, Field) error `guard:"order:#{req.OrderID}; kind=reader"`    // want `unknown kind "reader", did you mean read\?`
	Far    func(context.Context, Field) error `guard:"order:#{req.Nothing}; name=x"`         // want `unknown field Nothing of Field: there is OrderID`
	Shell  func(context.Context, Field) error "guard:\"order:${req.OrderID}\" json:\"a\\b\"" // want `not filled in: write #{req.OrderID}`
}

func shell(l lock.Locker) {
	_, _ = guard.New(l, guard.Name("n"), guard.Key("order:${req.ID}"))                // want `not filled in`
	_, _ = guard.New(l, guard.Name("n"), guard.Key("order:{{.ID}}:x"))                // want `not filled in`
	_, _ = guard.New(l, guard.Name("n"), guard.Methods("PSOT"), guard.Wait(2))        // want `unknown method "PSOT", did you mean POST` `wait 2ns is under 1ms`
	g := guard.Must(guard.New(l, guard.Name("n"), guard.Key(`order:#{rec.OrderID}`))) // want `unknown name rec, did you mean req\?`
	_, _ = guard.Action(g, func(context.Context, Plain) error { return nil })
}
