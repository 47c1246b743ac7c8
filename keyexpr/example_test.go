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
	tmpl, err := keyexpr.Parse(`#{map(req.Lines, "stock:" + .SKU)}`, roots)
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
		return keyexpr.Lookup(func(name string) (string, bool) { return "42", name == "id" }), nil
	})
	fmt.Println(errors.Is(err, keyexpr.ErrValue))
	fmt.Println(err)
	// Output:
	// true
	// keyexpr: unusable value: header["X-Tenant"] is nil; if it may be, write what stands for it: ?? "none"
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

func ExampleTemplate_Warning() {
	tmpl, err := keyexpr.Parse("nightly-report", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(tmpl.Warning())
	// Output: no hole: all requests share one key
}

func ExampleCheckCondition() {
	fmt.Println(keyexpr.CheckCondition("req.Total >"))
	// Output: keyexpr: unexpected token EOF (at offset 10 of "req.Total >")
}

func ExampleSpEL() {
	// @Lock(key = "'order:' + #order.id") void pay(Order order)
	fmt.Println(keyexpr.SpEL("'order:' + #order.id", keyexpr.Params("order")))
	fmt.Println(keyexpr.SpEL("stock-#{#sku}-#{#id ?: 'all'}", keyexpr.Params("sku", "id")))
	_, err := keyexpr.SpEL("T(java.util.UUID).randomUUID()")
	fmt.Println(err)
	// Output:
	// order:#{raw(req.id)} <nil>
	// stock-#{raw(req.sku)}-#{raw(or(req.id, "all"))} <nil>
	// keyexpr: T(…) reaches no class here: give the template a function with Func, and call it by its name (at offset 0 of "T(java.util.UUID).randomUUID()")
}

func ExampleLock4j() {
	// @Lock4j(name = "pay", keys = {"#order.id", "#order.tenant"}) void pay(Order order)
	fmt.Println(keyexpr.Lock4j("pay", []string{"#order.id", "#order.tenant"}, keyexpr.Params("order")))
	// Output: lock4j:pay###{raw(req.id)}.#{raw(req.tenant)} <nil>
}

func ExampleKlock() {
	// package com.acme; class Orders { @Klock(keys = {"#order.id"}) void pay(Order order) }
	fmt.Println(keyexpr.Klock("", []string{"#order.id"}, keyexpr.Params("order"), keyexpr.Method("com.acme.Orders", "pay")))
	// Output: lock.com.acme.Orders.pay-#{raw(req.id)} <nil>
}

func ExampleAlturkovic() {
	// @RedisLocked(prefix = "sku:", expression = "#order.lines.![sku]") void pay(Order order)
	fmt.Println(keyexpr.Alturkovic("", "sku:", "#order.lines.![sku]", keyexpr.Params("order")))
	// Output: #{prefixed("distributed_lock:sku:", map(req.lines, .sku))} <nil>
}

func ExampleRedisson() {
	// redisson.getLock("order:" + order.getId())
	fmt.Println(keyexpr.Redisson(`"order:" + order.getId()`, keyexpr.Params("order")))
	// Output: order:#{raw(req.id)} <nil>
}

func ExampleVar() {
	fmt.Println(keyexpr.SpEL("'order:' + #id", keyexpr.Var("id", "path.id")))
	// Output: order:#{raw(path.id)} <nil>
}
