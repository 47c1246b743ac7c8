package lock

import (
	"context"
	"iter"
)

// Locks belong to calls, never to goroutines. The context of a hold carries the chain of the holds above it, and an
// Acquire under that context re-enters the locks in the chain. To every other lock it is a stranger, also when its
// siblings hold it: two calls under one held context exclude each other on a third key, as two threads do.

// link is one hold in the chain of a context.
type link struct {
	hold  Hold
	held  func() bool
	outer *link
}

type chainKey struct{}

func chainOf(ctx context.Context) *link {
	l, _ := ctx.Value(chainKey{}).(*link)
	return l
}

// WithHold returns a context under h, for the context of a hold to derive from. Only Lockers need it. The function held
// reports whether h is neither released nor lost; it is called by [Ancestors], possibly from several goroutines.
func WithHold(ctx context.Context, h Hold, held func() bool) context.Context {
	return context.WithValue(ctx, chainKey{}, &link{hold: h, held: held, outer: chainOf(ctx)})
}

// Ancestors returns the live holds above ctx, innermost first. A hold that was released or lost is not among them.
// [context.WithoutCancel] keeps them, and [NewOwner] hides them.
func Ancestors(ctx context.Context) iter.Seq[Hold] {
	return func(yield func(Hold) bool) {
		for l := range live(ctx) {
			if !yield(l.hold) {
				return
			}
		}
	}
}

func live(ctx context.Context) iter.Seq[*link] {
	return func(yield func(*link) bool) {
		for l := chainOf(ctx); l != nil; l = l.outer {
			if l.held() && !yield(l) {
				return
			}
		}
	}
}

// NewOwner returns a context without ancestors. It is for work that is started under a hold and must exclude its parent,
// or outlives it.
func NewOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, chainKey{}, (*link)(nil))
}

// Related reports whether a live hold is above both contexts. A Locker asks it to find out whether a caller waits for
// another call under the same outer hold; see [BusyError].
func Related(a, b context.Context) bool {
	for x := range live(a) {
		for y := range live(b) {
			if x == y {
				return true
			}
		}
	}
	return false
}
