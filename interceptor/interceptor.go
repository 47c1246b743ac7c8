// Package interceptor guards gRPC methods: rules say which guard stands in front of which method, with a key made from the
// request, the metadata or the method's name.
//
//	transfer, err := guard.New(locker,
//		guard.Name("transfer"),
//		guard.Key(`account:#{req.Account}`),
//		guard.Wait(2*time.Second),
//	)
//	…
//	guards, err := interceptor.New(interceptor.Method(bankpb.Bank_Transfer_FullMethodName, transfer))
//	…
//	server := grpc.NewServer(guards.ServerOptions()...)
//
// Methods without a rule are passed through. If several rules match a method, the first of these guards it:
//
//	Method, Unguarded   one method, in Go
//	FromOptions         the method's option in its .proto file
//	Service             all methods of a service
//	Match               all methods whose names match a pattern
//
// Two of the same rank are an error, and so is a rule that never applies. Printing what New returns lists the methods.
//
// Templates and conditions can use these roots:
//
//	req     the request message, by the names of its fields in .proto file or in Go, or by getters: req.account_id,
//	        req.AccountId, req.GetAccountId(); a text that is left out is refused, and a number is 0, unless its field is
//	        optional in the .proto file: required(req.account_no) refuses that, too
//	md      the incoming metadata, by lower-case name: md.tenant or md["x-tenant"]; a name that the caller
//	        sent more than once is refused, since a key can't say which of the values the handler will use
//	method  the full name of the method, such as "/bank.v1.Bank/Transfer"
//
// Rules are checked when they are given to New: that the method exists, and that the template fits its request type. Both
// come from the descriptors which generated code registers; a method without them needs [Request].
//
// The lock of a stream is taken before its handler starts and held until it returns. The call ends with the lock, and for a
// newer call that takes its place ([guard.Replace]): the client gets the status at once, the handler's Context is cancelled,
// and its RecvMsg and SendMsg fail, also those that wait. (Where a net/http server or another transport than gRPC's own runs
// the call, a SendMsg goes on waiting for the client.) If the key or the condition uses req, the first message is read before
// the lock is taken, and handed to the handler's first RecvMsg unchanged. A client that keeps its stream open keeps the lock;
// [guard.MaxHold] sets a bound.
//
// # What the caller gets
//
//	what happened             what ran     status             reason in ErrorInfo
//	guard.ErrKey              nothing      InvalidArgument    LOCK_KEY, with BadRequest naming the fact
//	guard.ErrBusy             nothing      Aborted            LOCK_BUSY, with RetryInfo
//	a rate that is used up    nothing      ResourceExhausted  LOCK_RATE, with RetryInfo of its next permit
//	guard.ErrOutage           nothing      Unavailable        LOCK_OUTAGE, with RetryInfo
//	guard.ErrFault            nothing      Internal           LOCK_FAULT
//	guard.ErrUnsupported      nothing      Internal           LOCK_MISUSE
//	guard.ErrLost             some or all  Internal           LOCK_LOST
//	guard.ErrReplaced         some or none Aborted            LOCK_REPLACED
//	the deadline passed       nothing      DeadlineExceeded
//	the caller gave up        nothing      Canceled
//	the handler's own error   the handler  untouched
//
// Statuses name the guard, a fact that is missing and a level that is full; they hold neither a value, the key nor the words of the lock service.
// The domain of the ErrorInfo is "latchkey", and its metadata names the guard. RetryInfo is when a retry is likely to help,
// or a second where that is not known.
//
// A *guard.Error that the handler returns, also one that is wrapped, is answered by the same table: guards of the service
// layer answer well, too. That holds for all methods of the server. A status of the handler's own stays what it is.
//
// A call that is skipped ([guard.Skip]) succeeds with an empty response and the header latchkey-outcome: skipped, just as a
// skipped function returns the zero value; a server stream that is skipped ends without a message. [Fallback] answers a
// unary call with something better.
//
// # Where to place it
//
// Chain it after authentication, so that strangers can't hold locks, and before what opens transactions, so that a
// commit is still under the lock. Recovery may stand on either side: a panic releases the lock and goes on.
//
// gRPC's gateway calls no interceptor where it calls a service within its own process (RegisterXHandlerServer), and so no guard: let it
// connect to the server (RegisterXHandlerFromEndpoint), or put package middleware in front of it.
package interceptor
