package main

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/latchkey-go/latchkey/examples/quickstart/bankpb"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/interceptor"
	"github.com/latchkey-go/latchkey/lock"
)

// There are four spellings of a guard, and here is one of each. Whatever touches an account takes the lock account:<id>,
// and so excludes the others, in this process and in other ones. To share it with getLock("account:" + id) of a Java service, the
// values would stand in raw(…). The option in makes them guards of one registry, whose page the console shows.

// transferGuard is the first spelling: options. A transfer wants both of its accounts. A template that is a list makes a
// key of each element; the locks are taken in order, all or none. Without required, the key of an account that the
// request leaves out would be "account:", and all such requests would wait for each other.
func transferGuard(locker lock.Locker, in guard.Option) *guard.Guard {
	return guard.Must(guard.New(locker, in,
		guard.Name("transfer"),
		guard.Key(`account:#{map([body.From, body.To], required(#, "two accounts"))}`),
		guard.Wait(2*time.Second),
	))
}

// TransferRequest is the body of POST /transfers.
type TransferRequest struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Cents int64  `json:"cents"`
}

// StatementRequest is the second spelling: a tag on the request, which guard.Func finds.
type StatementRequest struct {
	_       struct{} `guard:"account:#{req.Account}; name=statement; wait=2s"`
	Account string   `json:"-" uri:"account"`
}

type statementFunc func(context.Context, StatementRequest) (Record, error)

func guardStatement(locker lock.Locker, in guard.Option, statement statementFunc) statementFunc {
	return guard.Must(guard.Func(guard.Must(guard.New(locker, in)), statement))
}

// Orders is the third spelling: a struct of functions, which guard.Bind guards in place.
type Orders struct {
	Pay func(context.Context, PayRequest) (Record, error) `guard:"order:#{req.Order}; wait=2s"`
}

// PayRequest pays a part of an order.
type PayRequest struct {
	Order string `json:"-" uri:"order"`
	Cents int64  `json:"cents"`
}

func bindOrders(locker lock.Locker, in guard.Option, bank *Bank) (Orders, error) {
	orders := Orders{Pay: bank.Pay}
	return orders, guard.Bind(guard.Must(guard.New(locker, in)), &orders)
}

// rules is the fourth spelling: by method, for a gRPC server. Methods without a rule run as they are.
func rules(locker lock.Locker, in guard.Option) grpc.UnaryServerInterceptor {
	transfer := guard.Must(guard.New(locker, in,
		guard.Name("grpc.transfer"),
		guard.Key(`account:#{map([req.From, req.To], required(#, "two accounts"))}`),
		guard.Wait(2*time.Second),
	))
	deposit := guard.Must(guard.New(locker, in,
		guard.Name("grpc.deposit"),
		guard.Key("account:#{req.Account}"),
		guard.Wait(2*time.Second),
	))
	return guard.Must(interceptor.UnaryServer(
		interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer),
		interceptor.Method(bankpb.Bank_Deposit_FullMethodName, deposit),
	))
}
