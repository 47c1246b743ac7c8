package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/guard"
)

// failure is a way in which a guard ends a request, and how that is answered.
type failure struct {
	err    error
	name   string // of err in package guard, and what Problem.Type ends in
	title  string
	detail string
	status int
	retry  bool // whether repeating the request can help
	others func(status int) bool
}

// failures is the one table of answers, also for guards of the service layer (Answer).
var failures = [...]failure{
	{guard.ErrKey, "ErrKey", "No lock key in the request",
		"%s is missing, empty, there twice, spelt in other letters or of the wrong kind.",
		http.StatusBadRequest, false, func(s int) bool { return s/100 == 4 }},
	{guard.ErrBusy, "ErrBusy", "Locked by another request",
		"Another request kept the lock for as long as this one could wait. Nothing was done; retry later.",
		http.StatusConflict, true, func(s int) bool { return slices.Contains([]int{409, 423, 429, 503}, s) }},
	{guard.ErrOutage, "ErrOutage", "No answer from the lock service",
		"The lock service did not answer. Nothing was done; retry later.",
		http.StatusServiceUnavailable, true, serverError},
	{guard.ErrLost, "ErrLost", "Lock lost",
		"The lock ended before the work did, which may be done in part or in full: look before retrying.",
		http.StatusInternalServerError, false, serverError},
	{guard.ErrReplaced, "ErrReplaced", "Replaced by a newer request",
		"A newer request took the place of this one, of which some may be done.",
		http.StatusConflict, false, func(s int) bool { return s/100 == 4 }},
	{guard.ErrFault, "ErrFault", "The server could not lock",
		"The server is at fault, and not this request. Nothing was done; retrying will not help until it is mended.",
		http.StatusInternalServerError, false, serverError},
	{guard.ErrUnsupported, "ErrUnsupported", "The server could not lock",
		"The server asks its lock service for what that does not have. Nothing was done; retrying will not help until it is mended.",
		http.StatusInternalServerError, false, serverError},
}

func serverError(status int) bool { return status/100 == 5 }

// statuses is the status of each failure.
type statuses [len(failures)]int

func defaultStatuses() (s statuses) {
	for i, f := range failures {
		s[i] = f.status
	}
	return s
}

func (s *statuses) replace(failure error, status int) error {
	var names []string
	for i, f := range failures {
		names = append(names, "guard."+f.name)
		switch {
		case !errors.Is(failure, f.err):
		case !f.others(status):
			return fmt.Errorf("status %d does not say what guard.%s means: see Status", status, f.name)
		default:
			s[i] = status
			return nil
		}
	}
	return fmt.Errorf("status of %q: give one of %s", fmt.Sprint(failure), strings.Join(names, ", "))
}

// problem returns the answer to err. A zero Status stands for a caller that has gone.
func (c *config) problem(err error) Problem {
	// An *Error comes first: its cause may be a context error too, as when the lock service timed out.
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return c.refusal(e)
	}
	if p, ok := bodyProblem(err); ok {
		return p
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return plain(http.StatusGatewayTimeout, "The time for this request ended before it had the lock. Nothing was done.")
	case errors.Is(err, context.Canceled):
		return Problem{}
	}
	return plain(http.StatusInternalServerError, "")
}

// refusal is the problem of a guard's error. Where there was no key because of the body, that says more.
func (c *config) refusal(e *guard.Error) Problem {
	if errors.Is(e.Err, guard.ErrKey) {
		if p, ok := bodyProblem(e.Cause); ok {
			return p
		}
	}
	for i, f := range failures {
		if !errors.Is(e.Err, f.err) {
			continue
		}
		p := Problem{Type: docs + f.name, Title: f.title, Status: c.statuses[i], Detail: f.detail}
		if errors.Is(f.err, guard.ErrKey) {
			p.Fact, p.Detail = e.Fact, fmt.Sprintf(f.detail, subject(e.Fact))
		}
		if p.Level = e.Level; e.Rate {
			p.Title, p.Status = "Too many requests", http.StatusTooManyRequests
			p.Detail = "As many requests as may within this time have begun already. Nothing was done; retry later."
		}
		if errors.Is(e.Cause, guard.ErrDraining) {
			p.Title, p.Detail = "Server is about to stop", "This server lets no new requests in. Nothing was done; retry."
		}
		if f.retry {
			p.RetryAfter = max(e.RetryAfter, time.Second)
		}
		return p
	}
	return plain(http.StatusInternalServerError, "")
}

func subject(fact string) string {
	if fact == "" {
		return "A value that the lock needs"
	}
	return "The lock needs " + fact + ", which"
}
