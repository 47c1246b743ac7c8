package middleware

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// docs begins the type of a problem: what the documentation says about the guard's error is true of the problem.
const docs = "https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#"

// outcomeHeader says why a response without a body is one: the guard's word for what happened.
const outcomeHeader = "Latchkey-Outcome"

// Problem is an error response: problem details as in RFC 9457. Its JSON form is the body that is sent, and never
// holds the key.
type Problem struct {
	// Type identifies the kind of problem: a URI that ends in # and the name of the guard's error, such as #ErrBusy. It
	// is about:blank where Status says it all.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Guard is the name of the guard.
	Guard string `json:"guard"`
	// Fact names the fact that the request lacks, in the words of the template: header.Tenant, body.order.id. It is
	// never a value of the request. It is empty where that is not known, or where the request is not at fault.
	Fact string `json:"fact,omitempty"`
	// Level is the template of the key that was full, of a guard with levels: "all", or "tenant:#{claims.Tenant}". It
	// is never a value of the request, and empty where it is not known.
	Level string `json:"level,omitempty"`
	// RetryAfter is sent as the header of that name, in whole seconds. It is at least a second where trying again makes
	// sense, and otherwise 0.
	RetryAfter time.Duration `json:"-"`
	// Err is what happened, for logs: its text may hold words of the lock service.
	Err error `json:"-"`
}

// plain is a problem of which status says it all.
func plain(status int, detail string) Problem {
	return Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// bodyError says that there is no key because of the body, and how that is answered.
type bodyError struct {
	status       int
	fact, detail string
}

func (e *bodyError) Error() string { return "middleware: unusable body: " + e.detail }
func (e *bodyError) Unwrap() error { return keyexpr.ErrValue }

// unusable is the error of a body that is no JSON value, or not one of the right type.
func unusable(err error) error {
	e := &bodyError{http.StatusBadRequest, "body", "The body could not be read as one JSON value."}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		e.detail = "The body is a JSON value of the wrong type."
		if mistyped.Field != "" {
			e.fact, e.detail = "body."+mistyped.Field, fmt.Sprintf("The body's member %s is of the wrong type.", mistyped.Field)
		}
	}
	return fmt.Errorf("%w: %w", e, err)
}

// bodyProblem is the problem of a body that can't be used, whatever the guard makes of it.
func bodyProblem(err error) (Problem, bool) {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return plain(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", e.Limit)), true
	}
	e, ok := errors.AsType[*bodyError](err)
	if !ok {
		return Problem{}, false
	}
	p := plain(e.status, e.detail)
	p.Fact = e.fact
	return p, true
}

// Answer answers for err if a guard has refused or lost the call that returned it, as middleware would, and reports
// whether it did. It is for handlers that call guarded functions of the service layer:
//
//	receipt, err := orders.Pay(r.Context(), req)
//	if middleware.Answer(w, r, err) {
//		return
//	}
//
// The error may be wrapped. An error that has a method Problem() Problem is answered by that, so that errors of other packages look
// like those of guards. Other errors, the service's own and the end of the request's context among them, are the
// caller's to answer. Nothing is written over a response that was begun, where w says so.
func Answer(w http.ResponseWriter, r *http.Request, err error) bool {
	c, _ := newConfig(nil) // there is nothing in it to be wrong
	return c.answer(w, r, err)
}

// NewAnswer returns an Answer with options: Status and Respond. An error is a mistake in them.
func NewAnswer(opts ...Option) (func(w http.ResponseWriter, r *http.Request, err error) bool, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, errors.Join(errors.New("middleware: NewAnswer"), err)
	}
	return c.answer, nil
}

func (c *config) answer(w http.ResponseWriter, r *http.Request, err error) bool {
	p, ok := c.known(err)
	if !ok {
		return false
	}
	if r == nil { // as in tests of handlers
		r = new(http.Request)
	}
	var out writer
	out.reset(w, r)
	defer out.finish()
	if !out.Written() {
		for _, name := range bodyHeaders {
			w.Header().Del(name)
		}
		p.Err = cmp.Or(p.Err, err)
		c.write(&out, r, p)
	}
	return true
}

// known is the problem of an error that has one, or of a guard's.
func (c *config) known(err error) (p Problem, ok bool) {
	if own, ok := errors.AsType[interface {
		error
		Problem() Problem
	}](err); ok {
		return own.Problem(), true
	}
	e, ok := errors.AsType[*guard.Error](err)
	if ok {
		p = c.refusal(e)
		p.Guard = e.Guard
	}
	return p, ok
}

// bodyHeaders are those that a handler may have set for a body which is not sent. Content-Encoding is not one of them: middleware
// further out sets it for whatever comes.
var bodyHeaders = []string{
	"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Language", "Content-Length", "Content-Range", "Etag", "Expires",
	"Last-Modified", "Location",
}

// write sends p as a response. Its status goes out with whatever is written, or with nothing.
func (c *config) write(w *writer, r *http.Request, p Problem) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatFloat(math.Ceil(p.RetryAfter.Seconds()), 'f', 0, 64))
	}
	w.implied = p.Status
	c.respond(w.outward(), r, p)
	if !w.Written() {
		w.WriteHeader(p.Status)
	}
}

// respond is the default of option Respond.
func respond(w http.ResponseWriter, r *http.Request, p Problem) {
	body, err := json.Marshal(p)
	if err != nil { // unreachable: strings and a number
		body = nil
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(body, '\n')) // fails if the client has gone
	}
}
