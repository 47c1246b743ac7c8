// Package requests has tags on the types of requests.
package requests

import (
	"context"

	"github.com/latchkey-go/latchkey/guard"
)

type Tenant string

type Line struct {
	SKU string
	Qty float64
}

// Good is used nowhere in this package, and all right.
type Good struct {
	_      struct{} `guard:"order:#{req.Tenant}:#{req.OrderID}; wait=2s; kind=fair" json:"-"`
	Tenant Tenant
	OrderID,
	Note string
}

type Marked struct {
	Region Tenant `guard:"key"`
	ID     int    `json:"id" guard:"key"`
}

type Typo struct {
	_       struct{} `guard:"order:#{req.OrdreID}"` // want `guard "Typo": key: keyexpr: unknown field OrdreID of Typo, did you mean OrderID\? \(at offset 12 of "order:#{req.OrdreID}"\)`
	OrderID string
}

type Attribute struct {
	_       struct{} `guard:"order:#{req.OrderID}; wiat=2s"` // want `unknown attribute "wiat", did you mean wait\? \(at offset 22\)`
	OrderID string
}

type Value struct {
	_       struct{} `guard:"order:#{req.OrderID}; wait=2"` // want `bad duration "2", want one like 2s or 500ms \(at offset 27\)`
	OrderID string
}

type Shell struct {
	_       struct{} `guard:"order:${req.OrderID}"` // want `\$\{…} is not filled in: write #{req.OrderID} \(at offset 6`
	OrderID string
}

type Float struct {
	_     struct{} `guard:"stock:#{map(req.Lines, .Qty)}"` // want `is a float`
	Lines []Line
}

type Two struct {
	_  struct{} `guard:"order:#{req.ID}"` // want `guard "Two": two sources of keys in requests.Two: a template and fields marked as key`
	ID string   `guard:"key"`
}

type Inside struct {
	Tenant string `guard:"key"` // want `field requests.Inside.Ref.ID: part of the key, in a field that is not embedded: write a template, with #{req.Ref.ID}`
	Ref    struct {
		ID string `guard:"key"`
	}
}

type Comma struct {
	ID string `json:"id",guard:"key"` // want `malformed struct tag`
}

type Slip struct {
	_  struct{} `gaurd:"order:#{req.ID}"` // want `tag gaurd:"..." is nobody's: write guard:"..."`
	ID string
}

type Hidden struct {
	id string `guard:"key"` // want `part of the key, but not exported`
}

type Methods struct {
	_  struct{} `guard:"order:#{req.ID}; methods=POST"` // want `methods=POST is about requests of HTTP`
	ID string
}

type Place struct {
	ID string `guard:"order:#{req.ID}"` // want `guard "Place": field requests.Place.ID: tag "order:#{req.ID}": want .key. \(a template goes on a blank field, _ struct{}\)`
}

// Shared is embedded elsewhere, in requests that have the field.
type Shared struct {
	_ struct{} `guard:"order:#{req.OrderID}; wait=2s"`
}

type SharedTypo struct {
	_ struct{} `guard:"order:#{req.OrderID}; wiat=2s"` // want `unknown attribute "wiat", did you mean wait`
}

// part is embedded below.
type part struct {
	_    struct{} `guard:"order:#{req.OrderID}; wait=2s"`
	Note string
}

type Whole struct {
	part
	OrderID string
}

// Constant may be meant, as the options may say.
type Constant struct {
	_  struct{} `guard:"nightly; busy=fallback; kind=permit; switchable"`
	ID string
}

// Excused is as it is for a reason.
type Excused struct {
	//latchkey:ok the template of a test
	_  struct{} `guard:"order:#{req.IDD}"`
	ID string
}

// Others' tags are nobody's business.
type Other struct {
	A string `json:"a" gorm:"b" binding:"required" guardian:"x"`
}

// Used is checked where it is used, with the options there.
type Used struct {
	_  struct{} `guard:"order:#{req.IDD}; limit=3"` // want `guard "used": key: keyexpr: unknown field IDD of Used`
	ID string
}

func use(_ context.Context, _ *Used) error { return nil }

// Generic types are left to those who say what they are of.
type Generic[T any] struct {
	_     struct{} `guard:"order:#{req.Value.ID}"` // want `guard "generic": key: keyexpr: unknown field ID of Line`
	Value T
}

type Box struct {
	_     struct{} `guard:"order:#{req.Value}"`
	Value any
}

func start(l guardLocker) error {
	g := guard.Must(guard.New(l, guard.Name("used"), guard.Fair()))
	if _, err := guard.Action(g, use); /* want `guard "used": limit 3 belongs to kind permit, not to kind fair` */ err != nil {
		return err
	}
	generic := guard.Must(guard.New(l, guard.Name("generic")))
	_, err := guard.Action(generic, func(context.Context, Generic[Line]) error { return nil })
	return err
}
