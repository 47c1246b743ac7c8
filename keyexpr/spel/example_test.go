package spel_test

import (
	"context"
	"fmt"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
)

type Order struct {
	ID     int64
	Tenant string
	Lines  []Line
}

type Line struct{ SKU string }

// show makes the keys of one order.
func show(k *spel.Key) {
	tmpl, err := k.Parse(keyexpr.Roots{"req": keyexpr.TypeFor[Order]()})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tmpl.Expand(context.Background(), func(string) (any, error) {
		return Order{ID: 42, Tenant: "acme", Lines: []Line{{"pen"}, {"ink"}}}, nil
	}))
}

func ExampleExpression() {
	// @Lock(key = "'order:' + #order.id") void pay(Order order)
	show(spel.Expression("'order:' + #order.id", spel.Params("order")))
	show(spel.Expression("stock-#{#order.lines.![sku][0]}", spel.Params("order")))
	show(spel.Expression("'order:' + #order.idd", spel.Params("order")))
	show(spel.Expression("{1, 42}.contains(#order.id) ? 'few' : 'many'", spel.Params("order"))) // Integers, and a Long
	// Output:
	// [order:42] <nil>
	// [stock-pen] <nil>
	// keyexpr: unknown property idd of spel_test.Order, did you mean ID? (at offset 18 of "'order:' + #order.idd")
	// [many] <nil>
}

func ExampleLock4j() {
	// @Lock4j(name = "pay", keys = {"#order.id", "#order.tenant"}) void pay(Order order)
	show(spel.Lock4j("pay", []string{"#order.id", "#order.tenant"}, spel.Params("order")))
	// Output: [lock4j:pay#42.acme] <nil>
}

func ExampleKlock() {
	// package com.acme; class Orders { @Klock(keys = {"#order.id"}) void pay(Order order) }
	show(spel.Klock("", []string{"#order.id"}, spel.Params("order"), spel.Method("com.acme.Orders", "pay")))
	// Output: [lock.com.acme.Orders.pay-42] <nil>
}

func ExampleAlturkovic() {
	// @RedisLocked(prefix = "sku:", expression = "#order.lines.![sku]") void pay(Order order)
	show(spel.Alturkovic("", "sku:", "#order.lines.![sku]", spel.Params("order")))
	// Output: [distributed_lock:sku:ink distributed_lock:sku:pen] <nil>
}

func ExampleRedisson() {
	// redisson.getLock("order:" + order.getId())
	show(spel.Redisson(`"order:" + order.getId()`, spel.Params("order")))
	// Output: [order:42] <nil>
}

func ExampleVar() {
	// void pay(long id)
	show(spel.Expression("'order:' + #id", spel.Var("id", "req.ID")))
	// Output: [order:42] <nil>
}
