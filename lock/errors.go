package lock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The ways in which taking, keeping and giving back a lock can fail. Match them with errors.Is. Any other error of a
// Locker is an outage: the lock service could not answer.
var (
	// ErrBusy says that others held the lock for all of the time that the caller was ready to wait.
	ErrBusy = errors.New("lock: held by others")
	// ErrLost says that a lock ended before it was released: its lease ran out, it could not be renewed in time, or
	// somebody removed it.
	ErrLost = errors.New("lock: lost")
	// ErrMaxHold says that a lock ended because it had been held for Request.MaxHold. Such an error matches ErrLost too.
	ErrMaxHold = errors.New("lock: held for as long as allowed")
	// ErrNotHeld says that there is nothing to release: the caller does not own the lock, or released it before. The
	// release that reported a loss to the caller counts, too.
	ErrNotHeld = errors.New("lock: not held by this owner")
	// ErrUnsupported says that a Locker does not have the requested Kind, or can't give it beside the kind that is held,
	// which is a *KindError. Retrying can't help.
	ErrUnsupported = errors.New("lock: kind not supported")
	// ErrRefused says that the lock service has answered, and refuses for good: the key holds something else, the user
	// has no permission, the credentials are wrong, or the service does not know the command. That is a fault of the
	// program or of its configuration and no outage: nobody should wait for its end, or go on without the lock. A state
	// that passes by itself, such as a service that is short of memory, starts or has lost its master, is an outage and
	// no refusal.
	ErrRefused = errors.New("lock: refused by the lock service")
	// ErrOverload says that an outage is the caller's own: it sent so much at once that there was no connection in
	// time.
	ErrOverload = errors.New("lock: too many calls at once")
	// ErrReplaced says that a newer call came for the same key. It is the cause with which a turn ends; see the method
	// Replace at [Locker]. It does not match ErrLost: the call holds its locks until it releases them.
	ErrReplaced = errors.New("lock: replaced by a newer call")
)

// BusyError is an ErrBusy with its details.
type BusyError struct {
	// Remaining is how long the present holder may keep the lock if it does not renew it; 0 means not known.
	Remaining time.Duration
	// Waited is how long the caller was in line.
	Waited time.Duration
	// Related says that a holder of the lock is another call under an outer hold of the caller's. This is how a caller
	// that waits for itself can be recognized: it took the lock under that outer hold, and came again without the context of the
	// inner one.
	Related bool
	// Here says that a holder of the lock is a call of this process, which took it by the same Locker. Where it is false, the holder
	// may be anybody, or have gone in the meantime.
	Here bool
	// Holder is the Request.Holder of that call, or empty if it gave none. If there are several calls, it is that of a
	// Related one, or else of any that gave one.
	Holder string
	// Level is the key that was full, of a Request with Levels or a Rate: one of the levels, or Key.
	Level string
	// Rate says that it was the Rate that was used up, and no Level. Remaining is when it gives the next permit, if nobody else gets that.
	Rate bool
	// Elsewhere is who holds the lock by hand and why, where that is known, as of one that `latchkey hold` or redisson's Client.Hold has taken. It is
	// for logs, not for strangers.
	Elsewhere string
}

// HeldBy notes a hold that keeps out the caller with ctx, by its context and its Request.Holder. A [Locker] calls it for each live hold of
// its own, and with no mutex locked, as it runs code of both contexts.
func (e *BusyError) HeldBy(ctx, hold context.Context, holder string) {
	related := !e.Related && Related(ctx, hold)
	if related || !e.Related && e.Holder == "" {
		e.Holder = holder
	}
	e.Here, e.Related = true, e.Related || related
}

// Error says that the lock is held and, where known, for how long it may be, and by whom in this process; or that the rate was used up.
func (e *BusyError) Error() string {
	if e.Rate {
		return fmt.Sprintf("lock: rate used up (waited %v, next permit in %v)", e.Waited, e.Remaining)
	}
	text := fmt.Sprintf("%v (waited %v", ErrBusy, e.Waited)
	if e.Remaining > 0 {
		text += fmt.Sprintf(", remaining lease %v", e.Remaining)
	}
	text += ")"
	who := map[bool]string{true: "another call under the same outer hold", false: "a call of this process"}[e.Related]
	if e.Holder != "" {
		who += " (" + e.Holder + ")"
	}
	if e.Related || e.Here {
		text += ": " + who + "; to re-enter, pass on its context"
	}
	if e.Elsewhere != "" {
		text += ": held by " + e.Elsewhere
	}
	return text
}

// Unwrap returns ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// LostError is an ErrLost with its details.
type LostError struct {
	// Held is how long the lock had been held when it was lost.
	Held time.Duration
	// Reason says why, and may be nil: the last error of a renewal, ErrMaxHold, or the end of the lease.
	Reason error
}

// Error says that the lock was lost, after how long, and why.
func (e *LostError) Error() string {
	if e.Reason == nil {
		return fmt.Sprintf("%v after %v", ErrLost, e.Held)
	}
	return fmt.Sprintf("%v after %v: %v", ErrLost, e.Held, e.Reason)
}

// Unwrap returns ErrLost and, if there is one, the reason.
func (e *LostError) Unwrap() []error {
	if e.Reason == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Reason}
}
