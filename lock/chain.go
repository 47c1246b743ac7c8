package lock

import (
	"context"
	"iter"
)

// link is one hold in the chain of a context. Contexts share the links of the contexts that they derive from.
type link struct {
	hold  Hold
	held  func() bool
	outer *link
}

type chainKey struct{}

// chainOf returns the innermost link above ctx, or nil if there is none.
func chainOf(ctx context.Context) *link {
	l, _ := ctx.Value(chainKey{}).(*link)
	return l
}

// WithHold returns a context under h. Only a [Locker] needs it, to make [Hold.Context] for h, which is what its Acquire
// returns. The function held reports whether h is neither released nor lost. It never reports true again after it
// reported false. It may be called at any time and by several goroutines at once.
func WithHold(ctx context.Context, h Hold, held func() bool) context.Context {
	return context.WithValue(ctx, chainKey{}, &link{hold: h, held: held, outer: chainOf(ctx)})
}

// Ancestors returns the live holds above ctx, innermost first. A hold that was released or lost is not among them.
// [context.WithoutCancel] keeps the holds above a context, and [NewOwner] hides them.
//
// A [Locker] looks here for holds of its own that a call re-enters; see [Reenter].
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

// NewOwner returns a context without ancestors. It is for work that starts under a hold and must exclude the call that
// started it, or outlives it.
func NewOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, chainKey{}, (*link)(nil))
}

// Related reports whether a live hold is above both contexts. A [Locker] asks it with the contexts of a holder and of a
// caller that the holder keeps out; see [BusyError].
func Related(a, b context.Context) bool {
	for x := range live(a) {
		for y := chainOf(b); y != nil; y = y.outer {
			if x == y {
				return true
			}
		}
	}
	return false
}
