package lock_test

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/latchkey-go/latchkey/lock"
)

// fakeHold is live until it is ended.
type fakeHold struct {
	lock.Hold
	name  string
	ctx   context.Context
	ended atomic.Bool
}

func newFakeHold(ctx context.Context, name string) *fakeHold {
	h := &fakeHold{name: name}
	h.ctx = lock.WithHold(ctx, h, func() bool { return !h.ended.Load() })
	return h
}

// checkAncestors compares the names of the live holds above ctx, innermost first. A Link that joins it knows the same ones.
func checkAncestors(t *testing.T, what string, ctx context.Context, want ...string) {
	t.Helper()
	var link lock.Link
	joined := &fakeHold{name: "joined"}
	link.Join(ctx, joined, heldFunc(func() bool { return true }))
	for by, holds := range map[string]iter.Seq[lock.Hold]{"context": lock.Ancestors(ctx), "Link": link.Ancestors()} {
		var got []string
		for h := range holds {
			got = append(got, h.(*fakeHold).name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("ancestors of %s by its %s = %v, want %v", what, by, got, want)
		}
	}
}

type heldFunc func() bool

func (f heldFunc) Held() bool { return f() }

func TestAncestors(t *testing.T) {
	root := t.Context()
	outer := newFakeHold(root, "outer")
	middle := newFakeHold(outer.ctx, "middle")
	inner := newFakeHold(middle.ctx, "inner")
	derived, cancel := context.WithCancel(inner.ctx)
	cancel()
	cut := lock.NewOwner(inner.ctx)
	fresh := newFakeHold(cut, "fresh")

	checkAncestors(t, "a context without holds", root)
	checkAncestors(t, "the outer hold", outer.ctx, "outer")
	checkAncestors(t, "the inner hold", inner.ctx, "inner", "middle", "outer")
	checkAncestors(t, "an ended context under it", derived, "inner", "middle", "outer")
	checkAncestors(t, "WithoutCancel of that", context.WithoutCancel(derived), "inner", "middle", "outer")
	checkAncestors(t, "NewOwner", cut)
	checkAncestors(t, "WithoutCancel of NewOwner", context.WithoutCancel(cut))
	checkAncestors(t, "a hold under NewOwner", fresh.ctx, "fresh")

	middle.ended.Store(true)
	checkAncestors(t, "the inner hold, the middle one released", inner.ctx, "inner", "outer")
	inner.ended.Store(true)
	checkAncestors(t, "the inner hold, released itself", inner.ctx, "outer")
	outer.ended.Store(true)
	checkAncestors(t, "the inner hold, all released", inner.ctx)
	checkAncestors(t, "a hold under NewOwner", fresh.ctx, "fresh")
}

// NewOwner hides what is above it from the contexts under it, and from nobody else.
func TestNewOwnerKeepsValuesAndCancellation(t *testing.T) {
	type valueKey struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
	hold := newFakeHold(parent, "hold")
	cut := lock.NewOwner(hold.ctx)
	if got := cut.Value(valueKey{}); got != "value" {
		t.Errorf("value under NewOwner = %v", got)
	}
	checkAncestors(t, "the hold", hold.ctx, "hold")
	cancel()
	if cut.Err() == nil {
		t.Error("the context under NewOwner does not end with the one above it")
	}
}

func TestAncestorsStopsEarly(t *testing.T) {
	inner := newFakeHold(newFakeHold(t.Context(), "outer").ctx, "inner")
	for h := range lock.Ancestors(inner.ctx) {
		if h != lock.Hold(inner) {
			t.Errorf("the first ancestor is %q, want the inner hold", h.(*fakeHold).name)
		}
		break
	}
}

func TestRelated(t *testing.T) {
	root := t.Context()
	outer := newFakeHold(root, "outer")
	first, second := newFakeHold(outer.ctx, "first"), newFakeHold(outer.ctx, "second")
	under := newFakeHold(first.ctx, "under the first")
	stranger := newFakeHold(root, "stranger")
	cut := newFakeHold(lock.NewOwner(outer.ctx), "cut")
	check := func(what string, a, b context.Context, want bool) {
		t.Helper()
		if lock.Related(a, b) != want || lock.Related(b, a) != want {
			t.Errorf("%s: Related = %v and %v, want %v", what, lock.Related(a, b), lock.Related(b, a), want)
		}
	}
	check("no holds at all", root, root, false)
	check("one hold twice", outer.ctx, outer.ctx, true)
	check("a hold and one under it", outer.ctx, under.ctx, true)
	check("siblings", first.ctx, second.ctx, true)
	check("a nephew", under.ctx, second.ctx, true)
	check("WithoutCancel", context.WithoutCancel(under.ctx), second.ctx, true)
	check("strangers", outer.ctx, stranger.ctx, false)
	check("a hold and none", outer.ctx, root, false)
	check("NewOwner between", outer.ctx, cut.ctx, false)

	first.ended.Store(true)
	check("a nephew, his parent released", under.ctx, second.ctx, true)
	outer.ended.Store(true)
	check("siblings, the outer hold released", first.ctx, second.ctx, false)
	check("a released hold twice", outer.ctx, outer.ctx, false)
	check("a hold and one under it, the outer one released", first.ctx, under.ctx, false)
}
