package guard_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
)

func TestToken(t *testing.T) {
	type req struct{ IDs []string }
	locker := memlock.New()
	tokens := func(opts ...guard.Option) (token int64, ok bool) {
		t.Helper()
		g := guard.Must(guard.New(locker, append(opts, guard.Name("g"))...))
		f := guard.Must(guard.Func(g, func(ctx context.Context, _ req) (int64, error) {
			token, ok = guard.Token(ctx)
			return 0, nil
		}))
		if _, err := f(t.Context(), req{IDs: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		return token, ok
	}
	first, ok := tokens(guard.Key("k:#{req.IDs[0]}"), guard.Fenced())
	if !ok {
		t.Fatal("a fenced guard has no token")
	}
	if next, _ := tokens(guard.Key("k:#{req.IDs[0]}"), guard.Fenced()); next <= first {
		t.Errorf("token %d does not follow %d", next, first)
	}
	if _, ok := tokens(guard.Key("k:#{req.IDs[0]}")); ok {
		t.Error("a guard that is not fenced has a token")
	}
	if _, ok := tokens(guard.Key("#{req.IDs}"), guard.Fenced()); ok {
		t.Error("a guard with several keys has one token")
	}
	if _, ok := guard.Token(t.Context()); ok {
		t.Error("a context without a guard has a token")
	}
}

func ExampleToken() {
	type Payment struct{ OrderID string }
	var highest int64 // what the store has seen of this order
	g := guard.Must(guard.New(memlock.New(), guard.Name("pay"), guard.Key("order:#{req.OrderID}"), guard.Fenced()))
	pay := guard.Must(guard.Func(g, func(ctx context.Context, p Payment) (string, error) {
		token, _ := guard.Token(ctx)
		if token < highest {
			return "", fmt.Errorf("a later holder has written")
		}
		highest = token
		return "paid", nil
	}))
	fmt.Println(pay(context.Background(), Payment{"7"}))
	// Output: paid <nil>
}
