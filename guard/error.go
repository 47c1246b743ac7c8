package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// The ways in which a guarded call can fail on the guard's side. Match them with errors.Is; take details with
// errors.AsType[*Error]. Those that package lock has too are the same values.
var (
	// ErrKey says that the request gave no key, or neither a limit nor a lease that it should give: a fact was missing, empty or
	// unusable. Nothing ran. The request is at fault, so retrying it unchanged cannot help. A function of a template or a KeyFunc
	// says so by an error that matches ErrKey or keyexpr.ErrValue.
	ErrKey = errors.New("guard: no key from this request")
	// ErrBusy is lock.ErrBusy: others held a lock, or its rate was used up, for as long as the guard was ready to wait. Nothing ran; retry later.
	ErrBusy = lock.ErrBusy
	// ErrOutage says that the lock service, or a service that a function of a template or a KeyFunc asked and whose error
	// matches ErrOutage, could not answer. Nothing ran; retry later. It matches lock.ErrOverload, too, where this process asked for too
	// much at once.
	ErrOutage = errors.New("guard: lock service did not answer")
	// ErrLost is lock.ErrLost: a lock ended while the work ran, so that another holder may have run beside it. Some or all
	// of the work was done: look before retrying. If the work failed too, its error matches as well. The work's context
	// ends with the same error as its cause.
	ErrLost = lock.ErrLost
	// ErrUnsupported is lock.ErrUnsupported: the locker does not have the kind of lock that the guard declares, another guard holds the key as
	// a kind that does not go with it (see lock.KindError), or the request makes two keys of a guard with levels the same. Nothing ran, and
	// nothing will until a declaration or the locker changes: it is the developer's fault, for which no Policy applies.
	ErrUnsupported = lock.ErrUnsupported
	// ErrFault says that the program or the lock service is at fault: a function of a template, a KeyFunc or a fact failed
	// in a way that is neither the request's nor an outage, or the lock service refused for good (lock.ErrRefused).
	// Nothing ran, no Policy applies, and retrying cannot help until somebody has mended it.
	ErrFault = errors.New("guard: fault of the program or of the lock service")
	// ErrReplaced is lock.ErrReplaced: a newer call came for the same key, as the policy Replace says. The work's context ended
	// with it as the cause, or the call was still waiting and nothing ran. It does not match ErrLost: the lock was held until
	// the work had returned, and nobody ran beside it. Work that returns nil nevertheless was done, and is no error.
	ErrReplaced = lock.ErrReplaced
	// ErrDraining says that the program is about to end and lets no new calls in; see Registry.Drain. An error that matches it matches
	// ErrOutage too, so adapters answer it as one: try again, elsewhere. No Policy applies.
	ErrDraining = errors.New("guard: draining, no new calls")
)

// Error is a failure on the guard's side. The work's own errors are never wrapped in one, and neither is the end of the
// caller's context.
type Error struct {
	// Guard is the name of the guard.
	Guard string
	// Err is one of ErrKey, ErrBusy, ErrOutage, ErrLost, ErrUnsupported, ErrFault and ErrReplaced. It says what happened here, whatever
	// else Cause makes the error match.
	Err error
	// Fact names the fact that was missing or unusable, where that is known: req.OrderID, header["X-Tenant"]. It is the
	// template's own text and never a value of the request, so it may go to the client.
	Fact string
	// RetryAfter is, when busy, when trying again is likely to help; 0 is not known.
	RetryAfter time.Duration
	// Level is, when busy, the template of the key that was full, where the guard has levels: "all", "tenant:{#{req.Tenant}}", or that of its Key. It is
	// never a value of the request, so it may go to the client. It is empty where that is not known.
	Level string
	// Rate says, when busy, that the rate was used up. RetryAfter is when it gives the next permit then, if nobody else gets that.
	Rate bool
	// Cause holds the details: an error of package keyexpr, of the locker, or, for ErrLost, how the lock was lost
	// joined with the work's own error. It may be nil.
	Cause error
}

// Error is text for logs: it names the guard and repeats the cause, which can hold words of the lock service. Answer
// clients with Guard, Err and Fact instead.
func (e *Error) Error() string {
	switch {
	case e.Cause == nil:
		return fmt.Sprintf("guard %q: %s", e.Guard, e.what())
	case errors.Is(e.Cause, e.Err) && e.Level == "": // which says the same in more words
		return fmt.Sprintf("guard %q: %s", e.Guard, strings.TrimPrefix(e.Cause.Error(), "guard: "))
	}
	return fmt.Sprintf("guard %q: %s: %v", e.Guard, e.what(), e.Cause)
}

// what describes the failure in words that fit a guard.
func (e *Error) what() string {
	switch {
	case e.Rate:
		return "rate used up"
	case e.Level != "":
		return fmt.Sprintf("level %q is full", e.Level)
	case errors.Is(e.Err, ErrBusy):
		return "lock held by others"
	case errors.Is(e.Err, ErrLost):
		return "lock lost while the work ran"
	case errors.Is(e.Err, ErrUnsupported):
		return "kind of lock not supported"
	case errors.Is(e.Err, ErrReplaced):
		return "replaced by a newer call"
	}
	return strings.TrimPrefix(e.Err.Error(), "guard: ")
}

// Unwrap returns Err and, if there is one, Cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// classify finds out whose fault it is that there is no key or no condition. Bad values are the client's, and errors
// without a name of ours are the program's.
func classify(err error) (outcome string, sentinel error) {
	switch {
	case errors.Is(err, ErrOutage):
		return outage(err), ErrOutage
	case errors.Is(err, errLevels):
		return OutcomeUnsupported, ErrUnsupported
	case errors.Is(err, ErrKey), errors.Is(err, keyexpr.ErrValue):
		return OutcomeKey, ErrKey
	}
	return OutcomeFault, ErrFault
}

// outage is the outcome of an ErrOutage with that cause.
func outage(cause error) string {
	if errors.Is(cause, lock.ErrOverload) {
		return OutcomeOverload
	}
	return OutcomeOutage
}

// factOf returns the name of the fact that err is about, or an empty text.
func factOf(err error) string {
	if about, ok := errors.AsType[interface {
		error
		Fact() string
	}](err); ok {
		return about.Fact()
	}
	return ""
}

// early is a loss before the work ran, of one lock while others were waited for. It does not match ErrLost, which says
// that some of the work was done.
type early struct{ loss error }

func (e *early) Error() string        { return e.loss.Error() }
func (e *early) Is(target error) bool { return target != ErrLost && errors.Is(e.loss, target) }

// lostWork is a loss during work that failed too. Work that heeds the loss mostly returns it: the text has it once.
type lostWork struct{ loss, work error }

func (e *lostWork) Error() string {
	loss, work := e.loss.Error(), e.work.Error()
	if strings.Contains(work, loss) {
		return work
	}
	return loss + "; the work failed: " + work
}

func (e *lostWork) Unwrap() []error { return []error{e.loss, e.work} }
