package lock

import (
	"context"
	"iter"
)

// Link is a hold's place in the chain of its context. WithHold makes one. A [Locker] whose hold has a context type of its
// own embeds one instead, which costs no memory: Join fills it in, and the context's Value asks it first.
type Link struct {
	hold  Hold
	live  interface{ Held() bool }
	outer *Link
}

type chainKey struct{}

// Join puts h, which is what Acquire returns, in front of the chain of ctx. Held is as in WithHold.
func (l *Link) Join(ctx context.Context, h Hold, live interface{ Held() bool }) {
	l.hold, l.live, l.outer = h, live, chainOf(ctx)
}

// Value answers for the key under which contexts carry the chain, and returns nil for any other.
func (l *Link) Value(key any) any {
	if key == (chainKey{}) {
		return l
	}
	return nil
}

// chainOf returns the innermost link above ctx, or nil if there is none.
func chainOf(ctx context.Context) *Link {
	l, _ := ctx.Value(chainKey{}).(*Link)
	return l
}

type heldFunc func() bool

func (f heldFunc) Held() bool { return f() }

// WithHold returns a context under h. Only a [Locker] needs it, to make [Hold.Context] for h, which is what its Acquire
// returns. The function held reports whether h is neither released nor lost. It never reports true again after it
// reported false. It may be called at any time and by several goroutines at once.
func WithHold(ctx context.Context, h Hold, held func() bool) context.Context {
	l := new(Link)
	l.Join(ctx, h, heldFunc(held))
	return context.WithValue(ctx, chainKey{}, l)
}

// Ancestors returns the live holds above ctx, innermost first. A hold that was released or lost is not among them.
// [context.WithoutCancel] keeps the holds above a context, and [NewOwner] hides them.
//
// A [Locker] looks here for holds of its own that a call re-enters; see [Reenter].
func Ancestors(ctx context.Context) iter.Seq[Hold] {
	return func(yield func(Hold) bool) { chainOf(ctx).each(yield) }
}

// Ancestors returns the live holds above the one that l was given by Join, as the function does for a context.
func (l *Link) Ancestors() iter.Seq[Hold] {
	return func(yield func(Hold) bool) { l.outer.each(yield) }
}

// each yields the live holds of l, which may be nil, and of the links above it.
func (l *Link) each(yield func(Hold) bool) {
	for ; l != nil; l = l.outer {
		if l.live.Held() && !yield(l.hold) {
			return
		}
	}
}

// NewOwner returns a context without ancestors. It is for work that starts under a hold and must exclude the call that
// started it, or outlives it.
func NewOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, chainKey{}, (*Link)(nil))
}

// Related reports whether a live hold is above both contexts. [BusyError.HeldBy] asks it with the contexts of a caller and of a
// holder that keeps it out.
func Related(a, b context.Context) bool {
	for x := chainOf(a); x != nil; x = x.outer {
		for y := chainOf(b); y != nil; y = y.outer {
			if x == y && x.live.Held() {
				return true
			}
		}
	}
	return false
}
