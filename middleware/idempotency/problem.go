package idempotency

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/middleware"
)

// docs begins the type of a problem, which ends in the name of one of the errors below.
const docs = "https://pkg.go.dev/github.com/latchkey-go/latchkey/middleware/idempotency#"

// The ways in which a request is refused. They are the Err of its [middleware.Problem], and their names end its Type.
var (
	// ErrKey says that the request has no key where it must have one, more than one, or one that is malformed. A key is a string of RFC 8941,
	// in quotes; or without them, if it has no spaces, quotes, commas, semicolons or backslashes. It has 1 to 255 characters of printable ASCII.
	ErrKey = refuse("ErrKey", http.StatusBadRequest, 0, "No usable Idempotency-Key",
		"The header Idempotency-Key is missing, there twice or malformed. Nothing was done.")
	// ErrCaller says that the sender of the request is not known.
	ErrCaller = refuse("ErrCaller", http.StatusUnauthorized, 0, "No caller",
		"It is not known who sent this request, and keys belong to a caller. Nothing was done.")
	// ErrBody says that the body is larger than BodyLimit, or could not be read. Nothing ran.
	ErrBody = refuse("ErrBody", http.StatusRequestEntityTooLarge, 0, "Body too large",
		"The body is larger than a request with an Idempotency-Key may have, or could not be read to its end. Nothing was done.")
	// ErrReused says that the caller has sent another request with this key before. Nothing ran.
	ErrReused = refuse("ErrReused", http.StatusUnprocessableEntity, 0, "Idempotency-Key of another request",
		"Another request came with this key before. Nothing was done for this one; give it a key of its own.")
	// ErrInFlight says that the first request with this key, or another one that the guard keeps apart from it, is being worked on. Nothing ran
	// for this one; retry later.
	ErrInFlight = refuse("ErrInFlight", http.StatusConflict, time.Second, "In flight",
		"A request with this key, or one that excludes it, is being worked on. Nothing was done for this one; retry later.")
	// ErrUnknown says that a request with this key was begun, and that nobody knows what came of it: the work was done in full, in part or
	// not at all. Look before asking for it with a new key.
	ErrUnknown = refuse("ErrUnknown", http.StatusConflict, 0, "Outcome unknown",
		"A request with this key was begun, and may be done in full, in part or not at all: look before sending it with a new key.")
	// ErrTooLarge says that the request is done, and that its answer was too large to be kept.
	ErrTooLarge = refuse("ErrTooLarge", http.StatusConflict, 0, "Answer not kept",
		"The request with this key is done. Its answer was too large to be kept.")
	// ErrStore says that the [Store] did not answer. Nothing ran; retry later.
	ErrStore = refuse("ErrStore", http.StatusServiceUnavailable, time.Second, "No answer from the store",
		"The store of answers did not answer. Nothing was done; retry later.")
)

// refusal is an error, and how it is answered.
type refusal struct{ p middleware.Problem }

func refuse(name string, status int, retry time.Duration, title, detail string) error {
	return &refusal{middleware.Problem{Type: docs + name, Title: title, Status: status, Detail: detail, RetryAfter: retry}}
}

func (e *refusal) Error() string { return "idempotency: " + e.p.Title }

// Problem implements the method that middleware.Answer looks for.
func (e *refusal) Problem() middleware.Problem { return e.p }

// fail answers for a handler that did not run. An error that says nothing else is the store's.
func (k *keeper) fail(w http.ResponseWriter, r *http.Request, err error) {
	e, ok := errors.AsType[*refusal](err)
	if !ok {
		err = fmt.Errorf("%w: %w", ErrStore, err)
		e, _ = errors.AsType[*refusal](err)
	}
	p := e.p
	p.Guard, p.Err = k.name, err
	k.answer(w, r, &refusal{p})
}

// respond is the Respond of the guard, which says what a busy lock means here. A limit or a rate that is used up keeps
// its answer.
func (k *keeper) respond(w http.ResponseWriter, r *http.Request, p middleware.Problem) {
	e, ok := errors.AsType[*guard.Error](p.Err)
	if ok && errors.Is(e.Err, guard.ErrBusy) && !e.Rate && e.Level == "" && requestOf(r.Context()) != nil {
		busy, _ := errors.AsType[*refusal](ErrInFlight)
		p.Type, p.Title, p.Detail, p.Err = busy.p.Type, busy.p.Title, busy.p.Detail, fmt.Errorf("%w: %w", ErrInFlight, p.Err)
	}
	k.answer(w, r, &refusal{p})
}
