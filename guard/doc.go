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
// error that names the guard. Most callers need no more than these two.
//
//	entry point  guards
//	Func         func(context.Context, Req) (Res, error)
//	Action       func(context.Context, Req) error
//	Job          func(context.Context) error
//	Try          the same as Func, and returns a Result that tells a skipped call from one that was done
//	Do           a function literal, at once
//	Lead         func(context.Context) error, while this process is the leader
//	Bind         all functions of a struct that have a guard tag, with any arguments and results
//
// Adapters for servers, and code that is generated, build on package guard/adapter.
//
// # Declarations
//
// A declaration is a [Spec]: plain data. Four spellings fill it in, and all print alike and read back. The first is
// options. The second is a tag on the request type:
//
//	type PayRequest struct {
//		_       struct{} `guard:"order:#{req.OrderID}; wait=2s; kind=fair"`
//		OrderID string
//	}
//
// Instead of writing a template, mark the fields that make up the key with `guard:"key"`. The guard then needs a name,
// which the key begins with. The third spelling is a tag on the fields of a struct of functions, for Bind:
//
//	type Orders struct {
//		Pay  func(context.Context, PayRequest) (Receipt, error) `guard:"order:#{req.OrderID}; wait=2s"`
//		Move func(ctx context.Context, from, to string) error   `guard:"#{[from, to]}; args=from,to"`
//	}
//
// The fourth is text: that of a tag, or JSON, for configuration and annotations of other languages. The text of a tag
// may also stand in a comment //latchkey:guard above a method of an interface, or above a function: latchkey-gen writes
// the guarding code, without reflection; see cmd/latchkey-gen.
//
//	attribute   option            says
//	name        Name              what the guard is called in errors, spans and metrics
//	key         Key               the template of the keys; in a tag it comes first, without its name
//	when        When              the condition; where it is false, the work runs without a lock
//	kind        Kind, Fair, …     exclusive, fair, read, write, fenced, spin or permit
//	wait        Wait              how long to wait; forever is as long as the caller
//	lease       Lease, LeaseFrom  when a lock ends by itself; without it, it is renewed
//	max-hold    MaxHold           when a lock ends at the latest
//	hold        HoldAtLeast       how long the key stays locked after success: once per interval
//	limit       Limit, LimitFrom  how many may hold a permit at once
//	levels      Level, LevelFrom  one or two more keys with a limit of their own: 20 of all
//	rate        Rate              how many calls may begin within a time, 10/1m
//	burst       Burst             how many of the rate may begin at once
//	waiters     Waiters           how many calls of this process may wait for a key
//	busy        Busy              fail, skip, run-unlocked, fallback or replace
//	outage      Outage            fail, skip, run-unlocked or fallback
//	args        Args              the names of the arguments of a function that Bind guards
//	methods     Methods           the methods of HTTP that are guarded
//	one-key     OneKey            a key that reads nothing is meant
//	switchable  Switchable        a Registry may switch the guard off, or to shadow mode
//
// Each request may have a limit or a lease of its own. In the place of the value stands a template of one hole,
// limit=#{req.Plan.Slots} or lease=#{req.Timeout}, over the same facts as the key, also beside a KeyFunc. It makes a
// whole number from 1 to 10,000, or a time.Duration of at least 1ms. A template that can make neither is an error at
// start. If the type is not known at start, as in JSON, a text such as "30s" makes a time.Duration. Each call evaluates
// it once it has a key: other values, and nil, are ErrKey with the name of the fact. A limit counts for the calls that
// have it: holders keep their permits when later calls have a smaller limit, and these wait until fewer hold one.
// MaxHold bounds a lease of the request's own.
//
// A permit may be one of several keys. With limit=1; levels=20 of all, #{req.Plan.Slots} of tenant:#{req.Tenant}, a call takes a permit of its key, of
// "all" and of its tenant, or none of the three: a level has a limit as above and the template of one key, which may be a constant. A comma in it is
// #{","}. And a rate bounds how often calls with a key begin: with rate=10/1m; burst=2, two may begin at once, and ten a minute. It may stand beside
// a limit, or alone, and holds nothing then. Both are for guards of one key, and for lockers that serve them, which is checked at start. Two keys that a
// request makes equal are ErrUnsupported: begin their templates differently. [Error] says which level was full, or that the rate was used up.
//
// Options win over tags, and the tag of a function over that of its request. A guard without a name and a key has
// defaults, as for Bind of many functions: over those, tags win. [ParseSpecs] reads overrides of the declarations when
// the program starts. Mistakes are errors of New, Func and the others, joined if there are several. A contradiction, an
// attribute given twice and one that would be ignored are mistakes.
//
// # A call
//
// Keys are rendered once, before the work. Locks are taken in the order of their keys, all or none, within one Wait. The
// work runs with a context that ends when a lock is lost. Then each lock is given back once, also if the caller is gone or
// the work panics. Without its locks the work runs only if the declaration says so in words: run-unlocked. A fallback, which
// has the type of the guarded function and gets the reason as an error behind its arguments, runs instead of it.
//
// The work may call guarded functions, with the context that it was given. A guard inside of it that takes the same key
// re-enters, because it is the same call. On any other key, the calls of the work are strangers to everybody and to each
// other: four goroutines under order:7 that take stock:sku1 take turns. A call with another context, such as that of the request, waits for
// itself: the error names the guard of this process that has the lock. See package lock for the rules.
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
//	ErrReplaced      none or some let the newer call have its way
//	end of ctx       nothing      decide for itself; matches ctx.Err() and the cause of ctx
//	the work's own   the work     see the work's documentation; it comes back untouched
//
// Ask for ErrLost first, and for the guard's errors before those of contexts: an [Error] also matches what lies behind
// it, which can be the failure of a nested guard or context.DeadlineExceeded. Its field Err is unambiguous.
//
// # What is seen
//
// Each call is one span "guard <name>", one [Event] for every observer, and counts and times in OpenTelemetry's
// metrics: docs/telemetry.md lists their names. [Log] is a ready observer that writes events to a log. None of them
// shows a key.
//
// # All guards of a program
//
// A [Registry] lists the guards that are made with the option [In]: Spec, shape of the keys, place in the source, and how many
// calls wait, hold and ended how. It gives all of them the same observers, overrides their Specs at start, and drains them
// when the program ends. A guard that is switchable may be switched off there, or to shadow mode, which counts the calls that
// would have found the lock busy, and makes nobody wait. [Guard.Explain] says what a guard would do with a request.
package guard
