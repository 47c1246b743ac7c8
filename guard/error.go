package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The ways in which a guarded call can fail on the guard's side. Match them with errors.Is; take details with
// errors.AsType[*Error].
var (
	// ErrKey says that the request gave no key: a fact was missing, empty or unusable. Nothing ran. The request is at
	// fault, so retrying it unchanged cannot help, unless the cause says otherwise (a body that could not be read).
	ErrKey = errors.New("guard: no key from this request")
	// ErrBusy says that others held a lock for as long as the guard was ready to wait. Nothing ran; retry later.
	ErrBusy = errors.New("guard: lock held by others")
	// ErrOutage says that the lock service could not answer. Nothing ran; retry later.
	ErrOutage = errors.New("guard: lock service did not answer")
	// ErrLost says that a lock ended while the work ran, so that another holder may have run beside it. Some or all of
	// the work was done: look before retrying. If the work failed too, its error matches as well.
	ErrLost = errors.New("guard: lock lost while the work ran")
	// ErrUnsupported says that the locker does not have the kind of lock that the guard declares, or that another guard
	// holds the key as a kind that does not go with it: see lock.KindError. Nothing ran, and nothing will until a
	// declaration or the locker changes: it is the developer's fault, for which no Policy applies.
	ErrUnsupported = errors.New("guard: kind of lock not supported")
)

// Error is a failure on the guard's side. The work's own errors are never wrapped in one, and neither is the end of the
// caller's context.
type Error struct {
	// Guard is the name of the guard.
	Guard string
	// Err is one of ErrKey, ErrBusy, ErrOutage, ErrLost and ErrUnsupported. It says what happened here, whatever else
	// Cause makes the error match.
	Err error
	// RetryAfter is, when busy, how long the present holder may keep the lock if it does not renew it; 0 is not known.
	RetryAfter time.Duration
	// Cause holds the details: an error of package keyexpr, of the locker, or, for ErrLost, how the lock was lost
	// joined with the work's own error. It may be nil.
	Cause error
}

// Error is text for logs: it names the guard and repeats the cause, which can hold words of the lock service. Answer
// clients with Guard and Err instead.
func (e *Error) Error() string {
	what := strings.TrimPrefix(e.Err.Error(), "guard: ")
	if e.Cause == nil {
		return fmt.Sprintf("guard %q: %s", e.Guard, what)
	}
	return fmt.Sprintf("guard %q: %s: %v", e.Guard, what, e.Cause)
}

// Unwrap returns Err and, if there is one, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}
