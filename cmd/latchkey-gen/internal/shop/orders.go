// Package shop has directives of all kinds, and what is generated from them.
package shop

import (
	"context"
	"io"
	"time"

	"github.com/latchkey-go/latchkey/cmd/latchkey-gen/internal/store"
)

// A Receipt is the result of a payment.
type Receipt struct{ Number int }

// A Tenant is a text with a name.
type Tenant string

// A RefundRequest has parts of all kinds.
type RefundRequest struct {
	Tenant   Tenant
	OrderID  string `json:"order_id"`
	Seq      uint32
	Customer *Customer
	Lines    []Line
	audit
	*store.Place
}

type audit struct{ By string }

// A Customer may have a parent.
type Customer struct {
	Name   string
	Parent *Customer
}

// A Line is one of an order.
type Line struct{ SKU string }

// Orders has methods with and without a directive.
type Orders interface {
	// Pay has a key of one argument, and all that a tag may say.
	//
	//latchkey:guard order:#{id}; wait=5s; lease=30s; kind=fair
	Pay(ctx context.Context, id string, cents int64) (Receipt, error)
	// Refund has a key of many paths.
	//
	//latchkey:guard refund:#{req.Tenant}:#{lower(req.order_id)}-#{req.Seq}/#{req.Customer?.Parent.Name}/#{req.By}; when=req.Seq > 0
	Refund(c context.Context, req RefundRequest) error
	// Cancel has several results, and a pointer.
	//
	//latchkey:guard order:#{order.OrderID}; name=orders.cancel
	Cancel(_ context.Context, order *RefundRequest) (_ Receipt, again bool, _ error)
	// Close is no end.
	//
	//latchkey:guard nightly-close; busy=skip; switchable
	Close(context.Context) error
	// Move takes two locks, unless it is known to be slow.
	//
	//latchkey:guard #{[from, to]}; when=len(how) < 3
	Move(ctx context.Context, from, to string, how ...time.Duration) (moved, left int, err error)
	// Reserve has an argument without a name.
	//
	//latchkey:guard stock:#{map(req.Lines, .SKU)}:#{req.Zone}
	Reserve(context.Context, *RefundRequest) (Receipt, error)
	// Mark has a name for a type of another package, and parameters that are called as what the code needs.
	//
	//latchkey:guard mark:#{r.City}:#{err}
	Mark(w context.Context, r store.Place, err string, guard, lock int) (context, errors int, call error)

	List(ctx context.Context, since time.Time, _ int, g ...string) ([]Receipt, error)
	Forget()
	io.WriterTo
	store.Reader
	archive
}

type archive interface {
	// Archive is in an interface that others embed.
	//
	//latchkey:guard archive:#{ids}
	Archive(ctx context.Context, ids ...uint16) error
}
