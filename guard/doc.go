// Package guard puts a distributed lock in front of a function by declaring it: which key, how long to wait, how long to
// hold.
//
//	pay := guard.Must(guard.New(locker,
//		guard.Name("order.pay"),
//		guard.Key("order:#{req.OrderID}"),
//		guard.Wait(2*time.Second)))
//	svc.Pay = guard.Must(guard.Func(pay, svc.Pay))
//
// New checks the declaration, Func that it fits the function: a template with a typo stops the program at start, with an
// error that names the guard. Most callers need no more than these two. The other spellings fill in the same [Spec]: a
// tag on the request type, or on the fields of a struct of functions ([Bind]):
//
//	type PayRequest struct {
//		_       struct{} `guard:"order:#{req.OrderID}; wait=2s; kind=fair"`
//		OrderID string
//	}
//
// A tag is the template of the key, which may be empty, and then attributes: name, when, kind, wait (or forever), lease,
// max-hold, limit, busy, outage and one-key. Instead of writing a template, mark the fields of a request that make up its key
// with `guard:"key"`. Options win over tags. Adapters for servers build on [Guard.Prepare].
//
// # A call
//
// Keys are rendered once, before the work. Locks are taken in the order of their keys, all or none, within one Wait. The
// work runs with a context that ends when a lock is lost. Then each lock is given back once, also if the caller is gone or
// the work panics. Without its locks the work runs only if the declaration says so in words: run-unlocked.
//
// The work may call guarded functions, with the context that it was given. A guard inside of it that takes the same key
// re-enters, because it is the same call. On any other key, the calls of the work are strangers to everybody and to each
// other: four goroutines under order:7 that take stock:sku1 take turns. See package lock for the rules.
//
// The locks cover the work until it returns. A goroutine that it leaves behind is not covered, and neither is a database
// transaction that is committed outside: put the guard around the transaction.
//
// # Failures
//
//	error            what ran     the caller should
//	ErrKey           nothing      fix the request
//	ErrBusy          nothing      retry, after Error.RetryAfter if that is known
//	ErrOutage        nothing      retry later
//	ErrUnsupported   nothing      fix the declaration: this locker, or this key, can't serve it
//	ErrFault         nothing      mend the function that failed, or the lock service that refused
//	ErrLost          some or all  look before retrying
//	end of ctx       nothing      decide for itself; matches ctx.Err() and the cause of ctx
//	the work's own   the work     see the work's documentation; it comes back untouched
//
// Ask for ErrLost first, and for the guard's errors before those of contexts: an [Error] also matches what lies behind
// it, which can be the failure of a nested guard or context.DeadlineExceeded. Its field Err is unambiguous.
//
// # What is seen
//
// Each call is one span "guard <name>", one [Event] for every observer, and counts and times in OpenTelemetry's metrics:
// docs/telemetry.md lists their names. [Log] is a ready observer that writes events to a log. None of them tells a key.
package guard
