package middleware

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// docs begins the type of a problem: what the documentation says about the guard's error is true of the problem.
const docs = "https://pkg.go.dev/github.com/latchkey-go/latchkey/guard#"

// outcomeHeader says why a response without a body is one: the guard's word for what happened.
const outcomeHeader = "Latchkey-Outcome"

// Problem is an error response: problem details as in RFC 9457. Its JSON form is the body that is sent, and never
// holds the key.
type Problem struct {
	// Type tells problems apart: a URI that ends in # and the name of the guard's error, such as #ErrBusy. It is
	// about:blank where Status says it all.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Guard is the name of the guard.
	Guard string `json:"guard"`
	// Fact is what the request lacks, in the words of the template: header.Tenant, body.order.id. It is never a value of
	// the request. It is empty where that is not known, or where the request is not at fault.
	Fact string `json:"fact,omitempty"`
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

// bodyProblem is the problem of a body that can't be used, whatever the guard makes of it.
func bodyProblem(err error) (Problem, bool) {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return plain(http.StatusRequestEntityTooLarge, fmt.Sprintf("The body is larger than %d bytes.", e.Limit)), true
	}
	if e, ok := errors.AsType[*typeError](err); ok {
		p := plain(http.StatusUnsupportedMediaType, e.reason)
		p.Fact = e.fact
		return p, true
	}
	if !errors.Is(err, errBody) {
		return Problem{}, false
	}
	p := plain(http.StatusBadRequest, "The body could not be read as one JSON value.")
	p.Fact = "body"
	mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && mistyped.Field != "":
		p.Fact, p.Detail = "body."+mistyped.Field, fmt.Sprintf("The body's member %s is of the wrong type.", mistyped.Field)
	case ok:
		p.Detail = "The body is a JSON value of the wrong type."
	case errors.Is(err, errEmptyBody):
		p.Detail = "The body is empty."
	case errors.Is(err, errTwins):
		p.Detail = "The body has an object with one name twice, or with two names that differ only in case."
	case errors.Is(err, errForm):
		p.Fact, p.Detail = "form", "The body could not be read as a form."
	}
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
// The error may be wrapped. Other errors, the service's own and the end of the request's context among them, are the
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
	e, ok := errors.AsType[*guard.Error](err)
	if !ok {
		return false
	}
	if out := record(w); !out.Written() {
		p := c.refusal(e)
		p.Guard, p.Err = e.Guard, err
		c.write(out, r, p, headersOf(w, "Content-Encoding"))
	}
	return true
}

// write sends p as a response, with the headers that outer has.
func (c *config) write(w response, r *http.Request, p Problem, outer http.Header) {
	p.prepare(w.Header(), outer)
	out := &problemWriter{response: w, status: p.Status}
	c.respond(out, r, p)
	out.decide()
}

// bodyHeaders speak of the body, or of the success, that a problem takes the place of.
var bodyHeaders = []string{
	"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
	"Content-Range", "Etag", "Expires", "Last-Modified", "Location",
}

// headersOf returns those headers of w that middleware further out may have set for whatever comes, such as one that
// compresses it. It is nil if there are none.
func headersOf(w http.ResponseWriter, names ...string) (outer http.Header) {
	for name, values := range w.Header() {
		if slices.Contains(names, name) && name != "Content-Length" {
			if outer == nil {
				outer = make(http.Header)
			}
			outer[name] = values
		}
	}
	return outer
}

// prepare sets the headers of p, and drops those that a handler meant for a body which is not sent. Those of outer are not
// the handler's.
func (p *Problem) prepare(h, outer http.Header) {
	for _, name := range bodyHeaders {
		h.Del(name)
	}
	maps.Copy(h, outer)
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatFloat(math.Ceil(p.RetryAfter.Seconds()), 'f', 0, 64))
	}
}

// problemWriter is a response whose status is that of a problem unless another one is written. With the status that
// net/http supposes, a function for Respond that writes a body only, or nothing, would answer 200.
type problemWriter struct {
	response
	status  int
	decided bool
}

func (w *problemWriter) WriteHeader(status int) {
	w.decided = w.decided || status >= http.StatusOK
	w.response.WriteHeader(status)
}

func (w *problemWriter) Write(p []byte) (int, error) {
	w.decide()
	return w.response.Write(p)
}

// decide writes the status if none was.
func (w *problemWriter) decide() {
	if !w.decided && !w.Written() {
		w.WriteHeader(w.status)
	}
}

// Flush is what http.NewResponseController finds, too.
func (w *problemWriter) Flush() {
	w.decide()
	_ = http.NewResponseController(w.response).Flush() // a writer that can't flush has nothing to hold back
}

func (w *problemWriter) Unwrap() http.ResponseWriter { return w.response }

// respond is the default of option Respond.
func respond(w http.ResponseWriter, r *http.Request, p Problem) {
	body, err := json.Marshal(p)
	if err != nil { // unreachable: strings and a number
		body = nil
	}
	w.WriteHeader(p.Status)
	if r == nil || r.Method != http.MethodHead { // tests of handlers answer without a request
		_, _ = w.Write(append(body, '\n')) // fails if the client has gone
	}
}
