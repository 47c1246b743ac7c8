package lock

import (
	"context"
	"sync/atomic"
)

// Owner is who holds a lock: one logical invocation, never a goroutine. It travels in a context, so everything that is
// called with a hold's context shares the owner of the hold, re-enters its locks, and must be joined before the hold is
// released. Work that outlives the hold, or that must exclude its parent, starts with NewOwner.
//
// The zero Owner is nobody.
type Owner int64

// lastOwner makes owners distinct within the process, which is all that a holder id needs beside the client's own id.
var lastOwner atomic.Int64

type ownerKey struct{}

// NewOwner returns a context with a fresh owner in place of any that ctx carries.
func NewOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, Owner(lastOwner.Add(1)))
}

// OwnerFrom returns the owner that ctx carries, and false if it has none.
func OwnerFrom(ctx context.Context) (Owner, bool) {
	o, ok := ctx.Value(ownerKey{}).(Owner)
	return o, ok
}
