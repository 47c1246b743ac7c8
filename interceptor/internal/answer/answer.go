// Package answer has the one table of answers to the failures of a guard, for gRPC and Connect.
package answer

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/latchkey-go/latchkey/guard"
)

// Domain is the domain of each ErrorInfo.
const Domain = "latchkey"

// retryLater is the RetryInfo of a call that may be repeated when nobody knows when.
const retryLater = time.Second

// Code is a status code, as gRPC and Connect number them.
type Code uint32

// The codes that are in use.
const (
	Canceled         Code = 1
	InvalidArgument  Code = 3
	DeadlineExceeded Code = 4
	Exhausted        Code = 8
	Aborted          Code = 10
	Internal         Code = 13
	Unavailable      Code = 14
)

// Answer is what the caller gets to know. Its text is for people, and neither it nor the details hold a key, a value, or
// anything that the lock service said.
type Answer struct {
	Code    Code
	Message string
	Details []proto.Message
}

// Kind is a way in which a guard ends a call.
type Kind struct {
	code   Code
	reason string // in ErrorInfo
	retry  bool   // whether repeating the call can help
}

// All kinds.
var (
	BadKey = Kind{InvalidArgument, "LOCK_KEY", false}
	Busy   = Kind{Aborted, "LOCK_BUSY", true}
	Rate   = Kind{Exhausted, "LOCK_RATE", true}
	Outage = Kind{Unavailable, "LOCK_OUTAGE", true}
	Lost   = Kind{Internal, "LOCK_LOST", false}
	Fault  = Kind{Internal, "LOCK_FAULT", false}
	Newer  = Kind{Aborted, "LOCK_REPLACED", false}
	Misuse = Kind{Internal, "LOCK_MISUSE", false}
)

// Of returns the answer to an error of a guard.
func Of(e *guard.Error) Answer {
	switch is := func(target error) bool { return errors.Is(e.Err, target) }; {
	case is(guard.ErrKey):
		return badKey(e)
	case is(guard.ErrBusy) && e.Rate:
		return New(Rate, e.Guard, "its rate is used up", e.RetryAfter)
	case is(guard.ErrBusy) && e.Level != "":
		return New(Busy, e.Guard, fmt.Sprintf("its level %q is full", e.Level), e.RetryAfter)
	case is(guard.ErrBusy):
		return New(Busy, e.Guard, "its lock is held by others", e.RetryAfter)
	case is(guard.ErrOutage):
		return New(Outage, e.Guard, "the lock service did not answer", e.RetryAfter)
	case is(guard.ErrLost):
		return New(Lost, e.Guard, lostText, 0)
	case is(guard.ErrReplaced):
		return New(Newer, e.Guard, newerText, 0)
	case is(guard.ErrUnsupported):
		return New(Misuse, e.Guard, "the lock service can't do what it declares", 0)
	default:
		return New(Fault, e.Guard, "the server could not make its key or ask for its lock", 0)
	}
}

const (
	lostText  = "its lock was lost while the call was handled"
	newerText = "a newer call took its place"
)

// Ended is the answer to a call whose handler still runs, and whose context has ended with cause: its lock was lost, or a
// newer call has come. It is not ok for any other cause, of which the transport knows what to say.
func Ended(cause error, name string) (a Answer, ok bool) {
	switch {
	case errors.Is(cause, guard.ErrLost):
		return New(Lost, name, lostText, 0), true
	case errors.Is(cause, guard.ErrReplaced):
		return New(Newer, name, newerText, 0), true
	}
	return a, false
}

// badKey names the fact that is missing, also as a field of the request.
func badKey(e *guard.Error) Answer {
	if e.Fact == "" {
		return New(BadKey, e.Guard, "the request gives no key", 0)
	}
	a := New(BadKey, e.Guard, fmt.Sprintf("the request gives no key: %s is missing or unusable", e.Fact), 0)
	a.Details = append(a.Details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{{
		Field:       strings.TrimPrefix(e.Fact, "req."),
		Description: "missing or unusable in the key of a lock",
		Reason:      BadKey.reason,
	}}})
	return a
}

// New makes the answer of a kind for the guard of this name.
func New(k Kind, name, text string, retryAfter time.Duration) Answer {
	a := Answer{Code: k.code, Message: fmt.Sprintf("guard %q: %s", name, text)}
	a.Details = append(a.Details, &errdetails.ErrorInfo{Reason: k.reason, Domain: Domain, Metadata: map[string]string{"guard": name}})
	if k.retry {
		a.Details = append(a.Details, &errdetails.RetryInfo{RetryDelay: durationpb.New(cmp.Or(retryAfter, retryLater))})
	}
	return a
}

// Find returns the guard's error that err is or wraps. It is nil if there is none, and if a status of the handler's own
// comes first on the way to it: then that is what the handler wants to answer.
func Find(err error, isStatus func(error) bool) *guard.Error {
	e, _ := find(err, isStatus)
	return e
}

// find looks at err and what it wraps, in the order of errors.Is, until something decides.
func find(err error, isStatus func(error) bool) (e *guard.Error, decided bool) {
	if err == nil {
		return nil, false
	}
	if isStatus(err) {
		return nil, true
	}
	switch err := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
	case *guard.Error:
		return err, true
	case interface{ Unwrap() error }:
		return find(err.Unwrap(), isStatus)
	case interface{ Unwrap() []error }:
		for _, err := range err.Unwrap() {
			if e, decided := find(err, isStatus); decided {
				return e, true
			}
		}
	}
	return nil, false
}
