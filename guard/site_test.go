package guard

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A program may put a guard before a function for each of its tenants, and forget it: the Registry remembers one sort of function once.
func TestRegistryRemembersEachSortOfFunctionOnce(t *testing.T) {
	r := Must(NewRegistry())
	l := memlock.New()
	declare := func(name string) *Guard { return Must(New(l, In(r), Name(name), Key("#{req}"))) }
	a, b := declare("a"), declare("b")
	stack := Must(Stack(a, b))
	work := func(context.Context, string) error { return nil }
	var first func(context.Context, string) error
	for i := range 10 {
		fn := Must(Action(a, work))
		if Must(Action(stack, work)); i == 0 {
			first = fn
		}
	}
	Must(Action(a, func(context.Context, int) error { return nil }))
	if n, m := len(r.entries["a"].sites), len(r.entries["b"].sites); n != 3 || m != 1 {
		t.Errorf("a stands in %d sorts of places, and b in %d, want 3 and 1", n, m)
	}
	if err := r.Override(map[string]Spec{"a": {Wait: time.Second}}); err != nil {
		t.Fatal(err)
	}
	for _, at := range r.entries["a"].sites {
		if got := at.runner.Current().spec.Wait; got != time.Second {
			t.Errorf("in front of a function with %v, a waits %v", at.roots, got)
		}
	}
	if err := first(t.Context(), "7"); err != nil {
		t.Error(err)
	}
}
