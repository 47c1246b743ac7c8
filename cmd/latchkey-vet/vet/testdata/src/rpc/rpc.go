// Package rpc has rules for methods of gRPC.
package rpc

import (
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
)

type request struct{ Account string }

func rules(l lock.Locker) {
	transfer := guard.Must(guard.New(l, guard.Name("transfer"), guard.Key("account:#{req.fromm}"))) // want `interceptor: method "/latchkey.examples.bank.v1.Bank/Transfer": guard "transfer": key: keyexpr: unknown field fromm of TransferRequest`
	_, _ = interceptor.New(interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer))
	header := guard.Must(guard.New(l, guard.Name("header"), guard.Key("account:#{header.tenant}"))) // want `unknown name header`
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Put", header, interceptor.Request[*request]()))
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Get", header)) // of no type that is known
	md := guard.Must(guard.New(l, guard.Name("md"), guard.Key("account:#{md.tenant}:#{req.Account}")))
	_, _ = interceptor.New(interceptor.Method("/shop.v1.Basket/Put", md, interceptor.Request[*request]()))
}
