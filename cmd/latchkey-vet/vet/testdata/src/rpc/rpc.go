// Package rpc has rules for methods of gRPC.
package rpc

import (
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/interceptor/internal/shoppb"
	"github.com/latchkey-go/latchkey/lock"
)

type request struct{ Account string }

func rules(l lock.Locker) {
	list := guard.Must(guard.New(l, guard.Name("list"), guard.Key("order:#{req.order_idd}"))) // want `interceptor: method "/latchkey.test.shop.v1.Shop/List": guard "list": key: keyexpr: unknown field order_idd of OrderRequest`
	_, _ = interceptor.New(interceptor.Method(shoppb.Shop_List_FullMethodName, list))
	header := guard.Must(guard.New(l, guard.Name("header"), guard.Key("account:#{header.tenant}"))) // want `unknown name header`
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Put", header, interceptor.Request[*request]()))
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Get", header)) // of no type that is known
	md := guard.Must(guard.New(l, guard.Name("md"), guard.Key("account:#{md.tenant}:#{req.Account}")))
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Put", md, interceptor.Request[*request]()))
}
