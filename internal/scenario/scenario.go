// Package scenario has the one table of what guards do, whichever way they stand before the work: in front of a
// function, a handler of net/http or gin, or a method of gRPC. Each way is a [Driver], and [Run] plays the whole table
// with it, in bubbles of testing/synctest. Callers learn the outcome in other words in each place (an error, a status,
// a code), so the table speaks of a [Class], and the events must be the same to the last duration.
package scenario

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
)

// Class is the outcome of a guarded call as its caller sees it.
type Class string

// The classes. A test driver makes one of an error, a status or a code.
const (
	Done        Class = "done"        // the work succeeded
	Skipped     Class = "skipped"     // nothing ran, and that is no failure
	Fell        Class = "fell"        // the fallback ran
	Failed      Class = "failed"      // the work's own error
	Panicked    Class = "panicked"    // the panic reached the caller
	BadKey      Class = "bad key"     // ErrKey
	Busy        Class = "busy"        // ErrBusy
	Unavailable Class = "unavailable" // ErrOutage
	Broken      Class = "broken"      // ErrFault or ErrUnsupported
	Lost        Class = "lost"        // ErrLost
	Replaced    Class = "replaced"    // ErrReplaced
	Late        Class = "late"        // the caller's deadline
	Gone        Class = "gone"        // the caller's context was cancelled
	Unknown     Class = "unknown"     // none of these, which fails every scenario
)

// ErrOwn is the work's own error, which a driver maps to Failed.
var ErrOwn = errors.New("the work's own error")

// Of returns the class of an error that a guarded function returned. It is not for Skipped and Fell.
func Of(err error) Class {
	if e, ok := errors.AsType[*guard.Error](err); ok {
		return ofGuard(e)
	}
	switch {
	case err == nil:
		return Done
	case errors.Is(err, ErrOwn):
		return Failed
	case errors.Is(err, context.DeadlineExceeded):
		return Late
	case errors.Is(err, context.Canceled):
		return Gone
	}
	return Unknown
}

func ofGuard(e *guard.Error) Class {
	for sentinel, class := range map[error]Class{
		guard.ErrKey: BadKey, guard.ErrBusy: Busy, guard.ErrOutage: Unavailable,
		guard.ErrFault: Broken, guard.ErrUnsupported: Broken, guard.ErrLost: Lost, guard.ErrReplaced: Replaced,
	} {
		if errors.Is(e.Err, sentinel) {
			return class
		}
	}
	return Unknown
}

// Work is the work that a driver runs under the guard.
type Work func(ctx context.Context) error

// Call makes one call with an id, which is what the driver's Fact reads, and returns what its caller gets to know. A panic
// of the work it lets pass.
type Call func(ctx context.Context, id string) Class

// A Mount puts work behind a guard over l with these options.
type Mount func(t *testing.T, l lock.Locker, opts []guard.Option, work Work) Call

// Driver is one way in which a guard stands before the work.
type Driver struct {
	// Fact is the name of the id in templates: req.ID.
	Fact string
	// Mount mounts without a fallback.
	Mount Mount
	// Fallback mounts with one, whose class is Fell. It is nil where there is none.
	Fallback Mount
	// SilentSkip says that the caller can't distinguish Skipped from Done.
	SilentSkip bool
	// Client says that calls come from a client, which itself gives up when its context ends, whatever the server does.
	Client bool
}

// Run plays the table with d.
func Run(t *testing.T, d Driver) {
	for _, s := range slices.Concat(table, scripts) {
		if s.fallback && d.Fallback == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) { play(t, d, &s) })
	}
}
