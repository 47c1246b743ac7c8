package guard_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

// A context that outlives its call, as work that goes on in the background may have it, keeps neither the request nor the result.
func TestContextForgetsRequestAndResult(t *testing.T) {
	named := func(name string, opts ...guard.Option) *guard.Guard {
		return guard.Must(guard.New(memlock.New(), append(opts, guard.Name(name), guard.Key(name+":#{req.ID}"))...))
	}
	for _, tt := range []struct {
		name string
		g    *guard.Guard
	}{
		{"a key", named("key")},
		{"a condition", named("when", guard.When(`req.ID != "8"`))},
		{"a key function", guard.Must(guard.New(memlock.New(), guard.Name("func"), guard.KeyFunc(func(o *Order) (string, error) { return o.ID, nil })))},
		{"a stack", guard.Must(guard.Stack(named("outer"), named("inner")))},
	} {
		var kept context.Context
		gone := make(chan string, 2)
		f := guard.Must(guard.Func(tt.g, func(ctx context.Context, _ *Order) (*Order, error) {
			kept = ctx
			result := &Order{ID: "9"}
			runtime.AddCleanup(result, func(what string) { gone <- what }, "result")
			return result, nil
		}))
		order := &Order{ID: "7"}
		runtime.AddCleanup(order, func(what string) { gone <- what }, "request")
		if _, err := f(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			runtime.GC()
			runtime.GC() // as pools keep what they have for one more
			select {
			case <-gone:
			case <-time.After(10 * time.Second):
				t.Errorf("%s: the context keeps what its call had", tt.name)
			}
		}
		if !guard.Held(kept, "") {
			t.Errorf("%s: the context does not know its guard anymore", tt.name)
		}
	}
}
