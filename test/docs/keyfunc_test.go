package docs

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
)

type Payment struct{ OrderID string }

// A key that a function of Go makes, as in declaring.md, is the key.
func TestKeyFuncMakesTheKey(t *testing.T) {
	locker := guardtest.New()
	g := guard.Must(guard.New(locker,
		guard.Name("order.pay"),
		guard.KeyFunc(func(p Payment) (string, error) { return "order:" + p.OrderID, nil }),
	))
	pay := guard.Must(guard.Action(g, func(context.Context, Payment) error { return nil }))
	if err := pay(t.Context(), Payment{"7"}); err != nil {
		t.Fatal(err)
	}
	locker.WantKeys(t, "order:7")
	if _, err := guard.Action(g, func(context.Context, string) error { return nil }); err == nil {
		t.Error("a function with another request gets the guard")
	}
}
