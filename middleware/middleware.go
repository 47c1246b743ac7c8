// Package middleware puts a guard in front of a net/http handler: the lock's key comes from the request, and a
// failure becomes a response.
//
//	var settle = guard.Must(guard.New(locker,
//		guard.Name("order.settle"),
//		guard.Key("order:#{path.id}"),
//		guard.Wait(2*time.Second),
//	))
//
//	mux.Handle("POST /orders/{id}/settle", guard.Must(middleware.New(settle))(handler))
//
// The handler runs under the lock, and its request's context ends when the lock is lost.
//
// # Facts
//
// A template may use, as roots:
//
//	claims.Tenant           what the application knows of the request: claims, tenant, session; see [WithFacts]
//	path.id                 a path value ([http.Request.PathValue]); [Pattern] checks the names at start
//	query.page              a query parameter
//	header["X-Tenant-Id"]   a header, its name in any case; also header.Tenant
//	cookie.session          a cookie
//	form.order              a field of a form in the body, as in [http.Request.PostForm]; also of many parts (multipart)
//	body.order.id           the JSON body; [Body] gives it a type that is checked at start
//	method, host            the host is in lower case and without a port
//	route                   the pattern of the route without its method: /orders/{id}
//
// The key is made of the values that the handler sees, or the request is refused. A name that the request has twice (query, header,
// cookie, form) could mean one value to the key and another to the handler. So could a name of the body that is spelt in other
// letters, a form beside the query ([QueryOnly]), and a body whose type is not that of JSON ([BodyIsJSON]). A path value is taken
// without escapes. docs/security.md has a table of readers.
//
// The body is read only if the key or the condition uses it, up to [BodyLimit]; the handler then reads the same bytes again.
// There is no root for the client's network address: behind a proxy, it is the proxy's, and would be one lock for all clients.
//
// A guard.KeyFunc or guard.KeysFunc, in place of a template, takes a *[http.Request]. [Bind] guards the handlers of a
// struct, with a tag on each.
//
// # Where to place it
//
// Inside the router, around one handler, as above: outside of it there are no path values yet. Inside of authentication,
// so that strangers can't hold locks, and outside of transactions, so that a commit is still under the lock. Recovery
// may stand on either side: a panic releases the lock and goes on. [http.Server.WriteTimeout] must leave room for the
// guard's wait. In front of a whole [http.ServeMux], requests without a route pass untouched; so do, anywhere, those of
// other methods than the guard's, if it has some (guard.Methods).
//
// Path values and routes are those of net/http: [http.Request.PathValue] and Pattern, which chi sets as well. [PathValues] is for
// routers that keep them elsewhere, such as gorilla/mux, and examples/routers has an adapter for echo. Package ginguard is for gin.
// gRPC's gateway, where it calls services in its own process, goes past the interceptors of package interceptor: guard the
// gateway's handler by this package, or let it connect to the server.
//
// # Responses
//
//	ErrKey          400   the handler did not run; the answer names the missing fact. So for a body that is no JSON value
//	                      of the right type; 413 for one over BodyLimit, and 415 for one whose Content-Type the handler may
//	                      read in another way, which names the option for handlers that don't
//	ErrBusy         409   the handler did not run; Retry-After comes from the guard's own recent holds
//	                429   of a rate that is used up, whatever Status says; Retry-After is when it gives the next permit
//	ErrOutage       503   the handler did not run; Retry-After
//	ErrFault        500   the handler did not run: the program or the lock service is at fault, not the request. So for a
//	                      path value that the route does not have, and a body that somebody in front has read, which is
//	                      logged once (slog.Default)
//	ErrUnsupported  500   the handler did not run: the locker has no locks of that kind
//	ErrLost         500   the handler ran; see After a loss
//	ErrReplaced     409   a newer request came while this one waited, or while its handler ran, which has said nothing
//	deadline        504   the handler did not run
//	Skip            204   the handler did not run; with the header Latchkey-Outcome: skipped
//	RunFallback           the handler of [Fallback] answers
//
// [Status] changes the numbers. Bodies are problem details (RFC 9457) and name the guard, never the key; see [Problem]
// and [Respond]. They have the headers that were set in front of the guard. A handler that answers 4xx or 5xx has failed, or says so
// by [Failed]: its event is an error, and a guard.HoldAtLeast gives the lock back at once. Its response stays as it is. A panic
// drops the part that was held back, so that recovery further out can answer. For guards of the service layer, whose errors a handler gets back, [Answer]
// answers by the same table.
//
// Where a newer request takes the place of one whose handler runs ([guard.Replace]), the handler's context ends, and so do its
// reads of the body or of a hijacked connection, with an error that matches [guard.ErrReplaced]: the newer request waits for it
// to return. Its output still reaches the client.
//
// A client that hangs up while it waits leaves the line, and its handler does not run. There is nobody to answer: a
// bare 503 is recorded for logs, and for a client that is still there because the server itself ended the context.
// Over HTTP/1, net/http notices a hang-up only once the body has been read. So a guard that waits reads small bodies
// before, and the handler reads them again; [ReadAhead] does that for larger ones, and [Stream] for none.
//
// # After a loss
//
// A handler whose lock is lost may still run, beside the next holder. Its context ends with a cause that matches
// [guard.ErrLost], and so do the means to do harm: reads of the body and writes to the client fail, also where they are
// blocked, and also on a connection that the handler has hijacked (a websocket). Their errors match guard.ErrLost. (A write that
// the client has not a byte of may take another second.) Only an error of the handler's own, a status of 400 or more, still reaches
// the client.
//
// The client never sees a complete success, nor a connection that is closed without a byte of an answer, for which
// net/http's Transport would send the request again and the work would run twice:
//
//	up to 4 KiB, not flushed       500: they are held back until the lock was given back; up to 1 MiB where the writer can't flush
//	no body (HEAD, 204, 304)       500: held back likewise, also if flushed
//	more, or flushed               broken off: the end is missing, or the last byte of a declared Content-Length
//	hijacked, nothing written yet  500, and the connection ends
//	hijacked                       the connection ends
//	a panic                        500 if nothing was sent, and the panic goes on
//
// So a small response leaves when the handler has returned, even if it was complete before, and the last byte of any
// response of a known length does. Handlers that want the client to have it earlier flush a response of unknown length.
//
// [http.TimeoutHandler] belongs outside of the guard: its handler may run on when its time is over, and a guard around
// it would release the lock under it, so that others run beside it:
//
//	mux.Handle("POST /orders/{id}", http.TimeoutHandler(guarded(settle), time.Second, "too late"))
//
// New's middleware refuses to wrap one: that is logged at once, and each request is answered with 500. Package ginguard refuses
// gin-contrib/timeout behind a guard. Neither can see one that is hidden in other middleware, and the same is true of anything
// else that answers for a handler which still runs.
package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
)

// New returns middleware that runs handlers under g. It is safe for concurrent use and may wrap any number of handlers,
// which then share g's name and options. An error is a mistake in the declaration: it names g, and says where the key
// or the condition does not fit a request. A guard with a guard.Fallback fits functions only.
func New(g *guard.Guard, opts ...Option) (func(http.Handler) http.Handler, error) {
	if g == nil {
		return nil, errors.New("middleware: nil guard")
	}
	name := g.Spec().Name
	c, faults := newConfig(opts)
	if faults != nil {
		faults = fmt.Errorf("middleware: guard %q: %w", name, faults)
	}
	c.offerRequest(g)
	runner, err := adapter.Prepare(g, c.roots(), c.abilities()...)
	if err != nil {
		err = fmt.Errorf("middleware: %w", err)
	}
	if err := errors.Join(faults, err); err != nil {
		return nil, err
	}
	m := &middleware{config: c, guard: name, runner: runner}
	return m.wrap, nil
}

// plan is the meaning of a guard's Specs for requests.
type plan struct {
	runner  adapter.Runner
	names   names    // that templates and the condition use
	waits   bool     // the guard does
	methods []string // those that are guarded; nil for all
}

func newPlan(runner adapter.Runner) *plan {
	p, specs := &plan{runner: runner, names: make(names)}, runner.Specs()
	for _, s := range specs {
		p.names.add(s.Key + " " + s.When + " " + s.LimitFrom + " " + s.LeaseFrom + " " + s.Levels)
	}
	p.waits = slices.ContainsFunc(specs, func(s guard.Spec) bool { return s.Wait != 0 || s.Busy == guard.Replace })
	if methods := specs[0].Methods; methods != "" {
		p.methods = strings.Split(methods, ",")
	}
	return p
}

// current is the plan for the next request.
func (m *middleware) current() *plan {
	p, runner := m.plan.Load(), m.runner.Current()
	if p == nil || p.runner != runner {
		p = newPlan(runner)
		m.plan.Store(p)
	}
	return p
}

// middleware puts a guard in front of any number of handlers.
type middleware struct {
	config
	guard    string
	runner   adapter.Runner
	plan     atomic.Pointer[plan]
	reported sync.Map // the routes of which a routeError was logged
}

// wrap puts the guard in front of next. It returns nil for nil, which the router refuses at start.
func (m *middleware) wrap(next http.Handler) http.Handler {
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
		return nil
	}
	if isTimeoutHandler(next) {
		m.report(context.Background(), errTimeoutHandler)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.refuse(w, r, errTimeoutHandler) })
	}
	mux, _ := next.(*http.ServeMux)
	return &guarded{m, next, mux}
}

// guarded is a handler with the guard in front of it.
type guarded struct {
	*middleware
	next http.Handler
	mux  *http.ServeMux // next, if it is one
}

// ServeHTTP lets a request pass that is none of the guard's: it has another method, or no route in the mux that is guarded, where
// it should neither wait for a lock nor get another status than 404 or 405.
func (g *guarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := g.current()
	passes := p.methods != nil && !slices.Contains(p.methods, r.Method)
	if !passes && g.mux != nil {
		_, pattern := g.mux.Handler(r)
		passes = pattern == ""
	}
	if passes {
		g.next.ServeHTTP(w, r)
		return
	}
	x := &exchange{middleware: g.middleware, next: g.next, facts: facts{config: &g.config, plan: p, w: w, r: r}}
	x.out.reset(w, r)
	defer x.end()
	x.run()
	x.returned = true
}

// exchange is one request and its response.
type exchange struct {
	*middleware
	next     http.Handler // or the fallback, once that runs
	facts    facts
	out      writer
	returned bool // without a panic
}

// run runs the handler under the guard, or answers in its place.
func (x *exchange) run() {
	out, r := &x.out, x.facts.r
	if err := x.readAhead(); err != nil {
		x.fail(out, r, err)
		return
	}
	var instead func(context.Context, error) error
	if x.fallback != nil {
		instead = x.instead
	}
	_, err := x.facts.plan.runner.RunOr(r.Context(), x.facts.root, x.pass, instead)
	switch {
	case err != nil && err == out.failure: //nolint:errorlint // the same; whoever it is returned to answers
	case err != nil:
		x.fail(out, r, err)
	case out.stop == nil: // no handler was called
		out.Header().Set(outcomeHeader, guard.OutcomeSkipped)
		out.WriteHeader(http.StatusNoContent)
	}
}

// pass calls the handler with the request as it came, except for its context and its body.
func (x *exchange) pass(ctx context.Context) error {
	w, r := &x.out, x.facts.r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = x.facts.again(w)
	}
	w.ctx, w.before = ctx, w.ResponseWriter.Header().Clone()
	w.stop = context.AfterFunc(ctx, func() { _ = w.loss() })
	defer x.passed(r)
	x.next.ServeHTTP(w.outward(), r)
	return outcome(ctx, w)
}

// passed comes when the handler that had r has returned, or panicked. From then on no deadline is set behind the server's back.
func (x *exchange) passed(r *http.Request) {
	x.facts.r.MultipartForm = r.MultipartForm // the server removes the files of a form from the request that it knows
	w := &x.out
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.lossLocked()
	w.ctx = nil
	w.stop()
}

// instead is pass for the fallback, whose answer is no failure of the work's.
func (x *exchange) instead(ctx context.Context, refused error) error {
	x.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.fallback(w, r, refused) })
	_ = x.pass(ctx)
	return nil
}

// end comes when the lock was given back. It removes the files of the forms that functions of the application have read. Those of the
// handler's the server removes.
func (x *exchange) end() {
	if !x.returned {
		x.panicked(&x.out, x.facts.r)
	}
	x.out.finish()
	for _, form := range x.facts.forms {
		_ = form.RemoveAll() // as the server does it
	}
}

// statusError is work that failed, as its response says.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the handler answered %d %s", e.status, http.StatusText(e.status))
}

// Failed tells the guard around the handler that w is of that its work has failed with err, though the response does not say so, or
// not yet: it is for adapters to routers whose handlers return errors that are answered further out, and for handlers that answer
// errors with a status of success. Writers between w and the guard that have a method Failed(error) hear of it, too. Without a guard,
// or with a nil err, it does nothing.
func Failed(w http.ResponseWriter, err error) {
	for ; w != nil && err != nil; w = further(w) {
		if between, ok := w.(interface{ Failed(error) }); ok {
			between.Failed(err)
		}
		if out, ok := w.(interface{ failed(error) }); ok {
			out.failed(err)
			return
		}
	}
}

// outcome is what a response says of the work: an error of the client's or the server's is one of the work's own. So is
// silence after the context ended for a newer call, which net/http would take for success.
func outcome(ctx context.Context, out *writer) error {
	switch {
	case out.failure != nil:
		return out.failure
	case out.status >= http.StatusBadRequest:
		return &statusError{out.status}
	case out.status == 0 && errors.Is(context.Cause(ctx), guard.ErrReplaced):
		return context.Cause(ctx)
	}
	return nil
}

// refuse answers a request for a handler that no guard can stand before.
func (m *middleware) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var out writer
	out.reset(w, r)
	defer out.finish()
	m.fail(&out, r, err)
}

// fail answers for a handler that did not run, or that ran and lost its lock. One that answered with an error has the last
// word.
func (m *middleware) fail(w *writer, r *http.Request, err error) {
	m.report(r.Context(), err)
	switch {
	case w.Status() >= http.StatusBadRequest:
		return
	case w.discard():
	case w.cut(err):
		return
	default:
		panic(http.ErrAbortHandler)
	}
	p := m.problem(err)
	if p.Status == 0 {
		w.WriteHeader(http.StatusServiceUnavailable) // in silence, net/http would say 200
		return
	}
	if _, large := errors.AsType[*http.MaxBytesError](err); large && w.major == 1 {
		w.Header().Set("Connection", "close") // nobody wants the rest of the body
	}
	p.Guard, p.Err = m.guard, err
	m.write(w, r, p)
}

// panicked lets a panic go on, without what was held back: recovery further out can answer, and no response is complete whose lock the
// release found lost. After an earlier loss it answers first: a client that finds its connection closed, without a byte of a response,
// may send the request again.
func (m *middleware) panicked(w *writer, r *http.Request) {
	lost := w.lost
	replaceable := w.discard()
	switch {
	case lost == nil:
		w.last = nil
		return
	case !replaceable:
		w.cut(lost)
		return
	}
	lost = &guard.Error{Guard: m.guard, Err: guard.ErrLost, Cause: lost}
	m.fail(w, r, lost)
	if !w.head {
		w.header.Set("Content-Length", strconv.Itoa(len(w.held)))
		w.Header().Set("Content-Length", strconv.Itoa(len(w.held)))
	}
	w.finish()
	_ = http.NewResponseController(w.ResponseWriter).Flush() // as the server is about to close the connection
}
