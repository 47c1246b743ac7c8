// Package store has an interface with a directive, for others to embed.
package store

import "context"

// A Place is where something is.
type Place struct {
	Zone string
	City string
	hidden
	*Far
}

type hidden struct{ Box int8 }

// Far is far away.
type Far struct{ Planet string }

// A Reader reads.
type Reader interface {
	// Read is guarded wherever it is embedded.
	//
	//latchkey:guard store:#{p.Zone}-#{p.Box}; kind=read
	Read(ctx context.Context, p Place) (int, error)
	Peek() bool
}

// A Name is a text that says itself what it is.
type Name string

// String returns n.
func (n Name) String() string { return string(n) }
