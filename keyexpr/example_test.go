package keyexpr_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/keyexpr"
)

type PayRequest struct {
	OrderID string
	Tenant  string
	Lines   []Line
}

type Line struct{ SKU string }

func ExampleParse() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()}
	tmpl, err := keyexpr.Parse("order:#{lower(req.Tenant)}:#{req.OrderID}", roots)
	if err != nil {
		panic(err)
	}
	keys, err := tmpl.Expand(context.Background(), func(root string) (any, error) {
		return PayRequest{OrderID: "42", Tenant: "ACME"}, nil
	})
	fmt.Println(keys, err)
	// Output: [order:acme:42] <nil>
}

func ExampleParse_misspelt() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()}
	_, err := keyexpr.Parse("order:#{req.OrdreID}", roots)
	fmt.Println(err)
	// Output: keyexpr: unknown field OrdreID of PayRequest, did you mean OrderID? (at offset 12 of "order:#{req.OrdreID}")
}

func ExampleTemplate_Expand_list() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()}
	tmpl, err := keyexpr.Parse(`stock:#{map(req.Lines, .SKU)}`, roots)
	if err != nil {
		panic(err)
	}
	keys, err := tmpl.Expand(context.Background(), func(root string) (any, error) {
		return PayRequest{Lines: []Line{{"pen"}, {"ink"}, {"pen"}}}, nil
	})
	fmt.Println(keys, err)
	// Output: [stock:ink stock:pen] <nil>
}

func ExampleLookup() {
	roots := keyexpr.Roots{"path": keyexpr.Names("id"), "header": keyexpr.AnyName()}
	tmpl, err := keyexpr.Parse(`order:#{path.id}:#{header["X-Tenant"]}`, roots)
	if err != nil {
		panic(err)
	}
	_, err = tmpl.Expand(context.Background(), func(root string) (any, error) {
		return keyexpr.Lookup(func(name string) (string, bool, error) { return "42", name == "id", nil }), nil
	})
	fmt.Println(errors.Is(err, keyexpr.ErrValue))
	fmt.Println(err)
	// Output:
	// true
	// keyexpr: unusable value: header["X-Tenant"] is nil; if it may be, write what stands for it: ?? "none", or ?: 'none' in Java's text
}

func ExampleParseCondition() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest](), "method": keyexpr.TypeFor[string]()}
	cond, err := keyexpr.ParseCondition(`method != "GET" && len(req.Lines) > 0`, roots)
	if err != nil {
		panic(err)
	}
	holds, err := cond.Eval(context.Background(), func(root string) (any, error) {
		if root == "method" {
			return "POST", nil
		}
		return PayRequest{Lines: []Line{{"pen"}}}, nil
	})
	fmt.Println(holds, err)
	// Output: true <nil>
}

func ExampleCheck() {
	fmt.Println(keyexpr.Check("order:#{req.OrderID"))
	// Output: keyexpr: the hole is not closed by } (at offset 6 of "order:#{req.OrderID")
}

func ExampleFunc() {
	claim := keyexpr.Func("claim", func(ctx context.Context, name string) (string, error) {
		if name != "sub" {
			return "", fmt.Errorf("no claim %q", name)
		}
		return "user-7", nil
	})
	tmpl, err := keyexpr.Parse(`cart:#{claim("sub")}`, nil, claim)
	if err != nil {
		panic(err)
	}
	fmt.Println(tmpl.Expand(context.Background(), nil))
	// Output: [cart:user-7] <nil>
}

func ExampleError_Detail() {
	_, err := keyexpr.Parse("order:#{req.OrdreID}", keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()})
	if fault, ok := errors.AsType[*keyexpr.Error](err); ok {
		fmt.Println(fault.Detail())
	}
	// Output:
	// keyexpr: unknown field OrdreID of PayRequest, did you mean OrderID?
	//     order:#{req.OrdreID}
	//                 ^
}

func ExampleTemplate_Shape() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()}
	tmpl, err := keyexpr.Parse("order:#{req.OrderID}:#{shard(req.Tenant, 8)}", roots)
	if err != nil {
		panic(err)
	}
	fmt.Println(tmpl.Shape())
	fmt.Println(tmpl.Roots(), tmpl.Fields())
	// Output:
	// order:<string>:<int>
	// [req] [req.OrderID req.Tenant]
}

func ExampleCheckCondition() {
	fmt.Println(keyexpr.CheckCondition("req.Total >"))
	// Output: keyexpr: not an expression: unexpected token EOF (at offset 10 of "req.Total >")
}

func ExampleOneKey() {
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()}
	_, err := keyexpr.Parse("order:{id}", roots)
	fmt.Println(err)
	tmpl, err := keyexpr.Parse("nightly-report", roots, keyexpr.OneKey())
	fmt.Println(tmpl, err)
	// Output:
	// keyexpr: all requests would share one key, as nothing of the request is read: {…} is a hash tag, and no hole: write #{…}; OneKey (one-key in a tag) says that it is meant (at offset 6 of "order:{id}")
	// nightly-report <nil>
}

func ExampleTemplate_Match() {
	tmpl, err := keyexpr.Parse("order:#{req.Tenant}:#{req.OrderID}", keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()})
	if err != nil {
		panic(err)
	}
	values, ok := tmpl.Match("order:a%3Ab:42")
	fmt.Printf("%q %v\n", values, ok)
	// Output: ["a:b" "42"] true
}

func ExampleTemplate_AppendKeys() {
	tmpl, err := keyexpr.Parse("stock:#{map(req.Lines, .SKU)}", keyexpr.Roots{"req": keyexpr.TypeFor[PayRequest]()})
	if err != nil {
		panic(err)
	}
	keys := make([]string, 0, 8) // which a loop would use again
	keys, err = tmpl.AppendKeys(context.Background(), keys, func(root string) (any, error) {
		return PayRequest{Lines: []Line{{"pen"}, {"ink"}}}, nil
	})
	fmt.Println(keys, err)
	// Output: [stock:ink stock:pen] <nil>
}
