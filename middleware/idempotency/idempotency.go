// Package idempotency answers a request that a client sends again with the outcome of the first one, after the IETF
// draft "The Idempotency-Key HTTP Header Field".
//
//	var pay = guard.Must(guard.New(client, guard.Name("order.pay"), guard.Key("pay:#{idempotency}")))
//
//	once := guard.Must(idempotency.New(pay, guard.Must(idempotency.NewRedis(rdb, "shop:")), callerOf))
//	mux.Handle("POST /orders/{id}/pay", once(handler))
//
// The client chooses a key for each thing that it wants done, and sends it with each attempt:
//
//	Idempotency-Key: "8e03978e-40d5-43e8-bc93-6894a57f9324"
//
// The handler runs under the guard. Before it runs, a record of the request is begun in a [Store]; after it, its answer
// is stored there. A client that sends the request again gets that answer, byte for byte, with the header
// Idempotency-Replayed: true.
//
// # The rule
//
// An answer below 500 without a Retry-After is stored and repeated. An answer of 500 or more, or with a Retry-After, asks the client to come
// again: it is not stored, and the handler runs again. So an answer 500 must mean that the work may be done once more, and an answer 429 needs
// its Retry-After. An error that is answered further out, such as one in gin's c.Errors, counts as a 500; see [middleware.Failed].
//
// Where there is no answer to trust, the record stays begun, and a repeat gets the answer that the outcome is unknown.
// So it is after a panic, a lost lock, the death of the process, or a client that went away before the handler had
// begun to answer or while it streamed (it had flushed). With [Repeatable], the handler runs again instead.
//
// # Answers
//
//	first request            the handler's own
//	repeat                   that of the first, with Idempotency-Replayed: true
//	no key, a malformed one  400   [ErrKey]; without a key, the handler runs if [Optional] says so
//	no caller                401   [ErrCaller]
//	body over the limit      413   [ErrBody]; see [BodyLimit]
//	same key, other request  422   [ErrReused]; a request is its method, its path with the query, and its body
//	in flight                409   [ErrInFlight], with Retry-After; a guard with a Wait waits for the answer before
//	outcome unknown          409   [ErrUnknown]
//	answer over 1 MiB        409   [ErrTooLarge]; the first answer has Idempotency-Stored: false, if its size is known when it begins
//	store out of reach       503   [ErrStore], with Retry-After; nothing ran
//
// All others are those of package middleware, as are the form of the errors and [middleware.Respond], for which there
// is [With]. A lost lock is one of them: the client learns of it, and from its repeat that the outcome is unknown.
//
// # The key of the guard
//
// The guard keeps a request and its repeats apart, so all of them must have one key. Best is #{idempotency}, a fact that this package adds:
// a digest of caller and key. A key such as order:#{path.id} also keeps different requests for one order apart. That a record was
// begun and its lock is free is what says that its process died; so the guard is refused if it lets several in at once, and where it has not
// taken its lock (switched off, by a policy or a condition), a record that was begun says nothing: the outcome is unknown, also with [Repeatable].
//
// Requests of other methods than POST and PATCH, and those without a key, if [Optional], go to the handler under the guard and nothing more. Their
// fact idempotency is random: they exclude nobody.
//
// # Where to place it
//
// Inside the router, around one handler, and inside of authentication, which says who the caller is. Keys are never shared between callers.
// Recovery belongs outside: inside, it makes a 500 of a panic, which would be repeated. For gin there is ginguard.From:
//
//	r.POST("/orders/:id/pay", authenticate, ginguard.From(once), pay)
package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// settleTime bounds how long an answer may take to be stored, for which the client and the lock wait.
const settleTime = 5 * time.Second

// New returns middleware that runs handlers under g, and once for each key of a caller, with what it knows in s. It is
// safe for concurrent use and may wrap any number of handlers, among which a key is for one request. The caller is the
// sender of a request: the subject of its token, or the tenant; never a claim of the client without proof. If it
// returns an error or nothing, the request is answered with 401. It must not read the body.
func New(g *guard.Guard, s Store, caller func(*http.Request) (string, error), opts ...Option) (func(http.Handler) http.Handler, error) {
	k := &keeper{store: s, caller: caller, keep: 24 * time.Hour, headers: strings.Fields(keptHeaders), bodyLimit: 1 << 20}
	for _, o := range opts {
		if k.check(o == nil, "nil option"); o != nil {
			o.apply(k)
		}
	}
	k.check(g == nil, "nil guard: make one by guard.New, with a key such as pay:#{idempotency}")
	k.check(s == nil, "nil store: give one of NewRedis, or of NewMemory where there is one process")
	k.check(caller == nil, "nil caller: give a function that says who sent a request, by what authentication knows")
	k.check(k.keep < time.Second, "KeepFor(%v): a repeat comes later than that; give at least 1s", k.keep)
	k.check(k.bodyLimit < 1, "BodyLimit(%d): give at least 1 byte", k.bodyLimit)
	for i, name := range k.headers {
		k.headers[i] = http.CanonicalHeaderKey(name)
		k.check(name == "" || slices.Contains(strings.Fields(bareHeaders), k.headers[i]), "Headers: %q is for one answer and can't be repeated", name)
	}
	if g != nil {
		k.name = g.Spec().Name
		shared := slices.Contains([]lock.Kind{lock.Read, lock.Permit}, g.Spec().Kind)
		k.check(shared, "guard %q lets several in at once, and a key is for one: give an exclusive guard", k.name)
	}
	err := errors.Join(k.faults...)
	if err == nil {
		own := []middleware.Option{middleware.WithFacts("idempotency", fact), middleware.Respond(k.respond)}
		k.guarded, err = middleware.New(g, append(slices.Clip(k.with), own...)...)
	}
	if err != nil {
		return nil, fmt.Errorf("idempotency: %w", err)
	}
	k.answer, err = middleware.NewAnswer(k.with...)
	return k.wrap, err
}

// An Option changes one thing about the middleware. Where options contradict each other, the last wins.
type Option interface{ apply(*keeper) }

type optionFunc func(*keeper)

func (f optionFunc) apply(k *keeper) { f(k) }

const (
	keptHeaders = "Cache-Control Content-Disposition Content-Encoding Content-Language Content-Location Content-Type Etag Last-Modified Link Location Vary"
	// bareHeaders are those of one connection, of one answer, or of one client.
	bareHeaders = "Connection Content-Length Date Idempotency-Replayed Idempotency-Stored Keep-Alive Retry-After Set-Cookie Trailer Transfer-Encoding Upgrade"
)

// Optional lets requests without a key through: they run under the guard, and a repeat of one runs again.
func Optional() Option { return optionFunc(func(k *keeper) { k.optional = true }) }

// Repeatable says that the handler may run again after it was cut short, at any point. So a request whose outcome is unknown is not
// answered with [ErrUnknown] when it comes again, but runs once more. It is for handlers whose work does nothing the second time: a write of
// the same row, a call of a service that has a key of its own.
func Repeatable() Option { return optionFunc(func(k *keeper) { k.repeatable = true }) }

// KeepFor is how long a record is kept, from when it is begun, and again from when the answer is stored. Without it that is a day. After that
// time a repeat is a new request.
func KeepFor(d time.Duration) Option { return optionFunc(func(k *keeper) { k.keep = d }) }

// Headers adds to the headers of an answer that are repeated. Without it, these are Cache-Control, Content-Disposition, Content-Encoding,
// Content-Language, Content-Location, Content-Type, ETag, Last-Modified, Link, Location and Vary. A cookie is never repeated, nor is what
// belongs to a connection.
func Headers(names ...string) Option {
	return optionFunc(func(k *keeper) { k.headers = append(k.headers, names...) })
}

// BodyLimit bounds the body of a request with a key, in bytes: it is read before the handler runs, which reads it again. Without it, that is
// 1 MiB. A larger body is answered with 413.
func BodyLimit(n int64) Option { return optionFunc(func(k *keeper) { k.bodyLimit = n }) }

// With gives options to the guard's own middleware: facts for its key, [middleware.Status] and [middleware.Respond] for its answers and for
// those of this package.
func With(opts ...middleware.Option) Option {
	return optionFunc(func(k *keeper) { k.with = append(k.with, opts...) })
}

// keeper is the middleware that New makes, for any number of handlers.
type keeper struct {
	name    string // of the guard
	store   Store
	caller  func(*http.Request) (string, error)
	guarded func(http.Handler) http.Handler
	answer  func(http.ResponseWriter, *http.Request, error) bool

	optional, repeatable bool
	keep                 time.Duration
	headers              []string
	bodyLimit            int64
	with                 []middleware.Option
	faults               []error
}

func (k *keeper) check(bad bool, format string, args ...any) {
	if bad {
		k.faults = append(k.faults, fmt.Errorf(format, args...))
	}
}

// wrap puts the guard in front of next. It refuses the handlers that package middleware refuses: nil, and an
// http.TimeoutHandler.
func (k *keeper) wrap(next http.Handler) http.Handler {
	plain := k.guarded(next)
	if _, refuses := plain.(http.HandlerFunc); plain == nil || refuses {
		return plain
	}
	first := k.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { k.run(w, r, next) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost && r.Method != http.MethodPatch || k.optional && len(r.Header["Idempotency-Key"]) == 0 {
			plain.ServeHTTP(w, r)
			return
		}
		k.serve(w, r, first)
	})
}

// serve looks for the record of a request without a lock, so that repeats of finished requests wait for nobody.
func (k *keeper) serve(w http.ResponseWriter, r *http.Request, first http.Handler) {
	q, err := k.read(w, r)
	var found Record
	if err == nil {
		found, err = k.store.Begin(r.Context(), q.key, Record{}, 0)
	}
	if err != nil || found.Print != "" && (found.Print != q.print || found.Status != 0) {
		k.repeat(w, r, q, found, err)
		return
	}
	inner := r.WithContext(context.WithValue(r.Context(), requestKey{}, q))
	inner.Body = q.again
	defer func() { r.MultipartForm = inner.MultipartForm }() // whose files the server removes
	first.ServeHTTP(w, inner)
}

// run runs the handler, now that the guard has let the request in, unless another one has run it.
func (k *keeper) run(w http.ResponseWriter, r *http.Request, next http.Handler) {
	ctx := r.Context()
	q := requestOf(ctx)
	mine := Record{Print: q.print, Owner: rand.Text()}
	found, err := k.begin(ctx, q.key, mine)
	if err != nil || found.Owner != mine.Owner {
		k.repeat(w, r, q, found, err)
		return
	}
	out := &recorder{ResponseWriter: w, ctx: ctx, names: k.headers}
	next.ServeHTTP(out, r)
	if answer, ok := out.answer(mine); ok {
		if err := k.settle(ctx, q.key, answer); err != nil {
			slog.WarnContext(ctx, "idempotency: an answer was not stored: to a repeat, its outcome is unknown", "guard", k.name, "error", err)
		}
	}
}

// begin begins a record, or returns that of another request with this key. One that was begun by a process that died, as the lock is
// held here, makes room if the work is repeatable.
func (k *keeper) begin(ctx context.Context, key string, mine Record) (Record, error) {
	found, err := k.store.Begin(ctx, key, mine, k.keep)
	dead := err == nil && found.Status == 0 && found.Owner != mine.Owner && found.Print == mine.Print
	if dead && k.repeatable && guard.RequireHeld(ctx, k.name) == nil {
		if err = k.settle(ctx, key, Record{Owner: found.Owner}); err == nil {
			found, err = k.store.Begin(ctx, key, mine, k.keep)
		}
	}
	if err != nil { // it may have been begun nevertheless, and nothing ran
		_ = k.settle(ctx, key, Record{Owner: mine.Owner})
	}
	return found, err
}

// settle ends the record that was begun, also for a client that has gone.
func (k *keeper) settle(ctx context.Context, key string, answer Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	return k.store.Finish(ctx, key, answer, k.keep)
}

// repeat answers a request in place of the handler: by what was found, or because there was an error.
func (k *keeper) repeat(w http.ResponseWriter, r *http.Request, q *request, found Record, err error) {
	switch {
	case err != nil:
	case found.Print != q.print:
		err = ErrReused
	case found.Status == 0:
		err = ErrUnknown
	case found.TooLarge:
		err = ErrTooLarge
	}
	if err != nil {
		k.fail(w, r, err)
		return
	}
	for name, values := range found.Header {
		w.Header()[name] = slices.Clone(values)
	}
	w.Header().Set("Idempotency-Replayed", "true")
	w.WriteHeader(found.Status)
	if len(found.Body) > 0 {
		_, _ = w.Write(found.Body) // fails if the client has gone
	}
}

// request describes a request with a key.
type request struct {
	key   string        // of its record
	print string        // its fingerprint
	again io.ReadCloser // its body, for the handler
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	q, _ := ctx.Value(requestKey{}).(*request)
	return q
}

// fact is the root idempotency of templates. A request without a record has one of its own.
func fact(r *http.Request) (string, error) {
	if q := requestOf(r.Context()); q != nil {
		return q.key, nil
	}
	return rand.Text(), nil
}

// read reads the whole request.
func (k *keeper) read(w http.ResponseWriter, r *http.Request) (*request, error) {
	key := parseKey(r.Header["Idempotency-Key"])
	if key == "" {
		return nil, ErrKey
	}
	caller, err := k.caller(r)
	if err != nil || caller == "" {
		return nil, errors.Join(ErrCaller, err)
	}
	q, body := &request{key: digest([]byte(caller), []byte(key)), again: r.Body}, []byte(nil)
	if r.Body != nil && r.Body != http.NoBody {
		if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, k.bodyLimit)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBody, err)
		}
		q.again = io.NopCloser(bytes.NewReader(body))
	}
	route := cmp.Or(r.RequestURI, r.URL.RequestURI()) // as the client has sent it, whatever a router made of it
	q.print = digest([]byte(r.Method), []byte(route), body)
	return q, nil
}

// keyText is a string of RFC 8941, which has a backslash before quotes and backslashes, or what many clients send in place of one.
var keyText = regexp.MustCompile(`^(?:"((?:[ !#-\[\]-~]|\\["\\]){1,255})"|([!#-+\--:<-\[\]-~]{1,255}))$`)

var unescape = strings.NewReplacer(`\"`, `"`, `\\`, `\`)

// parseKey returns an empty text for a value that is no key. Two keys have a comma between them, which fits none.
func parseKey(values []string) string {
	m := keyText.FindStringSubmatch(strings.Join(values, ","))
	if m == nil {
		return ""
	}
	return unescape.Replace(m[1]) + m[2]
}

// digest is one of the parts, of which none can pass for two.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
