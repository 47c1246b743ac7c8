package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/latchkey-go/latchkey/lock"
)

// The exit statuses of this program, other than those of the command that it ran. They are those of sysexits.h and of
// timeout(1) where these have one that fits. README.md has the same table, and a test compares the two.
const (
	statusOK       = 0
	statusFound    = 1   // doctor found a fault, show and free found no lock
	statusUsage    = 64  // EX_USAGE
	statusData     = 65  // EX_DATAERR: a template, or a file with facts
	statusNoAnswer = 69  // EX_UNAVAILABLE
	statusInternal = 70  // EX_SOFTWARE
	statusBusy     = 75  // EX_TEMPFAIL
	statusLost     = 76  // EX_PROTOCOL
	statusRefused  = 77  // EX_NOPERM
	statusMaxHold  = 124 // timeout(1)'s
	statusNoExec   = 126 // the shell's: not executable
	statusNotFound = 127 // the shell's: no such command
	statusSignal   = 128 // and the signal's number
)

// exit is an error that ends the program with a status.
type exit struct {
	status int
	event  string // a word for programs that read the messages: "busy"
	err    error  // nil says nothing
}

func (e *exit) Error() string {
	if e.err == nil {
		return e.event
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exit{statusUsage, "usage", fmt.Errorf(format, args...)}
}

func faulty(err error) error { return &exit{statusData, "data", err} }

// interrupted is why a wait ended: a signal came.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return "ended by signal: " + i.signal.String() }

// exitOf finds the status for an error of any command.
func exitOf(err error) *exit {
	if e, ok := errors.AsType[*exit](err); ok {
		return e
	}
	if i, ok := errors.AsType[interrupted](err); ok {
		number, _ := i.signal.(syscall.Signal)
		return &exit{statusSignal + int(number), "signal", err}
	}
	switch {
	case errors.Is(err, lock.ErrBusy):
		return &exit{statusBusy, "busy", err}
	case errors.Is(err, lock.ErrMaxHold):
		return &exit{statusMaxHold, "max-hold", err}
	case errors.Is(err, lock.ErrLost):
		return &exit{statusLost, "lost", err}
	case errors.Is(err, lock.ErrRefused), errors.Is(err, lock.ErrUnsupported):
		return &exit{statusRefused, "refused", err}
	case errors.Is(err, context.Canceled), isFile(err):
		return &exit{statusInternal, "internal", err}
	}
	return &exit{statusNoAnswer, "no-answer", err}
}

// isFile reports whether an error is of a file, such as a full disk behind the output.
func isFile(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}
