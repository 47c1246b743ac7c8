package run

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Three things can be wrong with a request, and three different people want to know. A value that is
// unusable is the client's, and matches ErrValue. A fact that is unavailable is the adapter's. A function
// that fails is the program's. None of the texts holds a value of the request, since keys are made of
// data that identify people. A panic is the exception: only its value says what went wrong.

// ErrValue is keyexpr.ErrValue. It stands here so that the last stage can make errors which
// match it. The other way round, this package would import its user.
var ErrValue = errors.New("keyexpr: unusable value")

// Fault is a fault of a value. Its text may go to logs and answers: it never holds the value.
// That is what makes it a type: everything else that goes wrong in an expression, such as an
// error of strconv, may have the value in its text, and Blame leaves it out.
type Fault struct{ Reason string }

// Error returns the reason.
func (e *Fault) Error() string { return e.Reason }

// Faulty makes a *Fault. The arguments are types, numbers and names of the template. None of
// them is a value of the request.
func Faulty(format string, args ...any) error {
	return &Fault{Reason: fmt.Sprintf(format, args...)}
}

// The faults of most values that are refused. They are values and not types, as many of them are made for
// each request that is refused.
var (
	ErrNil   = Faulty("is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text")
	ErrEmpty = Faulty("is empty")
	// ErrNilList is that of a language in which null is no list.
	ErrNilList = Faulty("is nil, which may be null or empty elsewhere: make it an empty list or map")
	// ErrNoText is that of a function on texts.
	ErrNoText = Faulty("has nil where a string is wanted")
)

// OutsideError is an error of what is not ours: of a fact, which is named as in root body, or of a function of the user's. It
// is returned wrapped, as it is not the fault of the request.
type OutsideError struct {
	What string
	Err  error
}

// Error names what has failed.
func (e *OutsideError) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Err) }

// Unwrap returns the error itself.
func (e *OutsideError) Unwrap() error { return e.Err }

// PanicError is a panic of a method or function that an expression calls. Its text is for logs:
// it holds what the panic was given, and where it happened. Without the place, the log would say
// that some method of some type got a nil pointer.
type PanicError struct {
	Value any
	Place string // file and line
}

// Error returns the value and the place.
func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v (at %s)", e.Value, e.Place) }

// Recovered makes an error of what recover returned, in the function that called it. The frames
// are those of the goroutine that panicked, as recover runs in its deferred function. The first
// frame behind those of the runtime is the one that panicked, for a nil pointer as well as for a
// call of panic.
func Recovered(value any) *PanicError {
	// 64 frames reach past the runtime's own and those of reflection. The stack behind them is the
	// server's, and as long as it likes.
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	for panicking, more := false, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.HasPrefix(f.Function, "runtime.") {
			panicking = true // what panicked is called before the runtime takes over
		} else if panicking {
			return &PanicError{value, fmt.Sprintf("%s:%d", f.File, f.Line)}
		}
	}
	return &PanicError{value, "an unknown place"}
}

// Blamed is an error of a hole. Its source names the fact that is missing or unusable, and is the
// template's own text: it may go to the client, which the rest of the error may not.
type Blamed struct {
	src string
	err error
}

// Error returns what the error of the hole says.
func (e *Blamed) Error() string { return e.err.Error() }

// Unwrap returns the error of the hole.
func (e *Blamed) Unwrap() error { return e.err }

// Fact returns the source of the hole, such as req.OrderID or header["X-Tenant"], abridged.
func (e *Blamed) Fact() string { return e.src }

// BlameHole is Blame for one hole of several. The error names the hole.
func BlameHole(src string, err error) error {
	return &Blamed{Abridge(strings.TrimSpace(src)), Blame(src, err)}
}

// Blame turns the error of an expression into the one that Expand and Eval return. It leaves out texts
// that may hold values. The order matters where one error wraps another: a fact's error stays one, also
// if a user's function has requested the fact. The source of the hole is named, since a template has
// several, and abridged, since it may be long.
func Blame(src string, err error) error {
	src = Abridge(strings.TrimSpace(src))
	if outside, ok := errors.AsType[*OutsideError](err); ok {
		return fmt.Errorf("keyexpr: %s: %w", src, outside)
	}
	if value, ok := errors.AsType[*Fault](err); ok {
		return fmt.Errorf("%w: %s %s", ErrValue, src, value.Reason)
	}
	if p, ok := errors.AsType[*PanicError](err); ok {
		// Both are wrapped. ErrValue says whose fault it is, and the log finds the value and the place in
		// the *PanicError. No answer may be made of this text.
		return fmt.Errorf("%w: %s %w", ErrValue, src, p)
	}
	// The error is dropped and not wrapped: whoever prints a chain would print the value with it.
	return fmt.Errorf("%w: %s fails for this request", ErrValue, src)
}

// Abridge shortens a text that is too long for one line of a log. It cuts between runes, so that
// what goes into a log is UTF-8.
func Abridge(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
