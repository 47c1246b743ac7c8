package guard

import (
	"slices"
	"time"
)

// How a guarded call ended, as Event.Outcome and as an attribute of spans and metrics.
const (
	OutcomeOK             = "ok"              // the work ran under the lock and succeeded
	OutcomeError          = "error"           // the work ran under the lock and returned an error
	OutcomePanic          = "panic"           // the work, or the locker, panicked or ended its goroutine
	OutcomeConditionFalse = "condition_false" // the condition was false: the work ran without a lock
	OutcomeSkipped        = "skipped"         // no lock: nothing ran, as Skip says
	OutcomeUnlocked       = "unlocked"        // no lock: the work ran without it, as RunUnlocked says
	OutcomeOff            = "off"             // switched off: the work ran without a lock
	OutcomeShadow         = "shadow"          // in shadow mode: the work ran without the lock, beside a measurement
	OutcomeFallback       = "fallback"        // no lock: the fallback ran instead of the work
	OutcomeKey            = "key"             // ErrKey
	OutcomeBusy           = "busy"            // ErrBusy
	OutcomeOutage         = "outage"          // ErrOutage
	OutcomeOverload       = "overload"        // ErrOutage that is lock.ErrOverload
	OutcomeUnsupported    = "unsupported"     // ErrUnsupported
	OutcomeFault          = "fault"           // ErrFault
	OutcomeLost           = "lost"            // ErrLost, but for MaxHold
	OutcomeMaxHold        = "max_hold"        // ErrLost because the work ran for MaxHold
	OutcomeDraining       = "draining"        // ErrDraining
	OutcomeReplaced       = "replaced"        // ErrReplaced
	OutcomeCanceled       = "canceled"        // the caller's context ended before the work could start

	OutcomeElected = "elected" // a Lead begins, which observers learn beside the end of each call; adapter.Outcomes does not list it
)

var outcomes = [...]string{
	OutcomeOK, OutcomeError, OutcomePanic, OutcomeConditionFalse, OutcomeOff, OutcomeShadow,
	OutcomeSkipped, OutcomeUnlocked, OutcomeFallback,
	OutcomeKey, OutcomeBusy, OutcomeOutage, OutcomeOverload, OutcomeUnsupported, OutcomeFault, OutcomeLost, OutcomeMaxHold,
	OutcomeDraining, OutcomeReplaced, OutcomeCanceled,
}

// Outcomes is adapter.Outcomes.
func (adapter) Outcomes() []string { return slices.Clone(outcomes[:]) }

// Event describes one guarded call, or the election of a Lead. It has no key in it, but the texts of its errors can
// quote the request or the lock service.
type Event struct {
	// Guard is the name of the guard, Template its key template, which is empty for a KeyFunc.
	Guard, Template string
	// Outcome is one of the Outcome constants.
	Outcome string
	// Wait is the time spent to get, or to fail to get, the locks.
	Wait time.Duration
	// Held is the time from having all locks until they were given back; 0 if the call never had them all.
	Held time.Duration
	// Keys is how many keys the call wanted; 0 if it did not get as far.
	Keys int
	// Fact names the fact that was missing or unusable when there was no key; see Error.Fact.
	Fact string
	// Refused is the *Error that says why the locks could not be had, also where Skip, RunUnlocked, a fallback or the
	// mode Shadow keep it from the caller; nil otherwise.
	Refused error
	// Err is what the call returned: nil for success and for a panic.
	Err error
	// Release is the error of giving the locks back, or nil. It fails the call only where it matches lock.ErrLost;
	// other locks end by themselves with their lease.
	Release error
	// Lead says that the call is one of Lead, which stands again: nobody else gets its error.
	Lead bool

	keys   *[]string // only for Log; a pointer, so that printing an Event does not show them
	behind *Event    // of the next guard in a Stack; likewise
}
