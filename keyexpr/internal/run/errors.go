package run

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"
)

// ErrValue is keyexpr.ErrValue.
var ErrValue = errors.New("keyexpr: unusable value")

// Fault is a fault of a value. Its text may go to logs and answers: it never holds the value.
type Fault struct{ Reason string }

func (e *Fault) Error() string { return e.Reason }

// Faulty makes a *Fault.
func Faulty(format string, args ...any) error {
	return &Fault{Reason: fmt.Sprintf(format, args...)}
}

// What is wrong with most values that are refused.
var (
	ErrNil   = Faulty("is nil; if it may be, write what stands for it: ?? \"none\"")
	ErrEmpty = Faulty("is empty")
	// ErrNilList is that of a language in which null is no list.
	ErrNilList = Faulty("is nil, which may be null or empty elsewhere: make it an empty list or map")
	// ErrNoText is that of a function on texts.
	ErrNoText = Faulty("has nil where a string is wanted")
)

// FactError is an error of Facts or of a Lookup, kept apart from faults of values.
type FactError struct {
	Root string
	Err  error
}

func (e *FactError) Error() string { return fmt.Sprintf("root %s: %v", e.Root, e.Err) }
func (e *FactError) Unwrap() error { return e.Err }

// CallError is an error of a user's function.
type CallError struct {
	Name string
	Err  error
}

func (e *CallError) Error() string { return fmt.Sprintf("function %s: %v", e.Name, e.Err) }
func (e *CallError) Unwrap() error { return e.Err }

// PanicError is a panic of a method or function that an expression calls. Its text is for logs: it holds what the panic
// was given, and where it happened.
type PanicError struct {
	Value any
	Place string // file and line
}

func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v (at %s)", e.Value, e.Place) }

// Recovered makes an error of what recover returned, in the function that called it.
func Recovered(value any) *PanicError {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	panicking := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicking = true // what panicked is called before the runtime takes over
		case panicking, !more:
			return &PanicError{value, fmt.Sprintf("%s:%d", f.File, f.Line)}
		}
		if !more {
			return &PanicError{value, "an unknown place"}
		}
	}
}

// Blame turns the error of an expression into the one that Expand and Eval return. What is not known to be free of
// values is left out.
func Blame(src string, err error) error {
	src = Abridge(strings.TrimSpace(src))
	if fact, ok := errors.AsType[*FactError](err); ok {
		return fmt.Errorf("keyexpr: %s: %w", src, fact)
	}
	if call, ok := errors.AsType[*CallError](err); ok {
		return fmt.Errorf("keyexpr: %s: %w", src, call)
	}
	if value, ok := errors.AsType[*Fault](err); ok {
		return fmt.Errorf("%w: %s %s", ErrValue, src, value.Reason)
	}
	if p, ok := errors.AsType[*PanicError](err); ok {
		return fmt.Errorf("%w: %s %w", ErrValue, src, p)
	}
	return fmt.Errorf("%w: %s fails for this request", ErrValue, src)
}

// Abridge shortens a text that is too long for one line of a log.
func Abridge(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
