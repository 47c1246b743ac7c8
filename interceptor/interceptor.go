// Package interceptor guards gRPC methods: a rule puts a guard in front of one method, with a key made from the
// request, the metadata or the method's name.
//
//	transfer, err := guard.New(locker,
//		guard.Name("transfer"),
//		guard.Key(`account:#{req.Account}`),
//		guard.Wait(2*time.Second),
//	)
//	…
//	unary, err := interceptor.UnaryServer(interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer))
//	…
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary))
//
// Streaming methods have rules of their own, given to [StreamServer]. Methods without a rule are passed through.
//
// Templates and conditions can use these roots:
//
//	req     the request message, by its Go field names or getters: req.Account, req.GetAccount()
//	md      the incoming metadata, by lower-case name: md.tenant or md["x-tenant"]; a name that the caller
//	        sent more than once is refused, since a key can't say which of the values the handler will use
//	method  the full name of the method, such as "/bank.v1.Bank/Transfer"
//
// Rules are checked when the interceptor is made: that the method exists, is of the right kind, and that the template
// fits its request type. Both come from the descriptors which generated code registers; a method without them needs
// [Request].
//
// The lock of a stream is taken before its handler starts and held until it returns. The handler's stream ends with the
// lock: its Context is cancelled, and RecvMsg and SendMsg fail. If the key or the condition uses req, the first message
// is read before the lock is taken, and handed to the handler's first RecvMsg unchanged. A client that keeps its stream
// open keeps the lock; [guard.MaxHold] sets a bound.
//
// # What the caller gets
//
//	what happened                      what ran     status             reason in ErrorInfo
//	guard.ErrKey                       nothing      InvalidArgument    LOCK_KEY
//	guard.ErrBusy                      nothing      Aborted            LOCK_BUSY, with RetryInfo
//	guard.ErrOutage                    nothing      Unavailable        LOCK_OUTAGE, with RetryInfo
//	guard.ErrLost                      some or all  Internal           LOCK_LOST
//	a fault of the server's own code   nothing      Internal           LOCK_MISUSE
//	the caller's deadline passed       nothing      DeadlineExceeded
//	the caller gave up                 nothing      Canceled
//	the handler's own error            the handler  untouched
//
// Statuses name the guard; they hold neither the key nor the words of the lock service. The domain of the ErrorInfo is
// "latchkey", and its metadata names the guard. RetryInfo is what is left of the present holder's lease, or a second
// where that is not known.
//
// A call that is skipped ([guard.Skip]) succeeds with an empty response, just as a skipped function returns the zero
// value; a server stream that is skipped ends without a message. A client can't tell such an answer from a real one:
// where that matters, let the guard fail.
//
// # Where to place it
//
// Chain it after authentication, so that strangers can't hold locks, and before what opens transactions, so that a
// commit is still under the lock. Recovery may stand on either side: a panic releases the lock and goes on.
package interceptor

import (
	"context"

	"google.golang.org/grpc"
)

// UnaryServer makes an interceptor that guards the unary methods that rules name, one rule a method. Its error is the
// first fault of a rule, and names the rule's guard and method. The interceptor is safe for concurrent use.
func UnaryServer(rules ...Rule) (grpc.UnaryServerInterceptor, error) {
	methods, err := bind(rules, unary)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if m, ok := methods[info.FullMethod]; ok {
			return m.unary(ctx, req, next)
		}
		return next(ctx, req)
	}, nil
}

// StreamServer makes an interceptor that guards the streaming methods that rules name, one rule a method: client
// streams, server streams and those of both directions. Its error is the first fault of a rule, and names the rule's
// guard and method. The interceptor is safe for concurrent use.
func StreamServer(rules ...Rule) (grpc.StreamServerInterceptor, error) {
	methods, err := bind(rules, streaming)
	if err != nil {
		return nil, err
	}
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if m, ok := methods[info.FullMethod]; ok {
			return m.stream(srv, s, next)
		}
		return next(srv, s)
	}, nil
}
