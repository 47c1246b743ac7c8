package guard

// outcomeTraits are what logs, spans and metrics make of an outcome.
type outcomeTraits struct {
	// ordinary is that the work ran, as it was to.
	ordinary bool
	// handled is whether a policy or a mode did something about a lock that could not be acquired.
	handled bool
	// failed is a failure of the guard's own, which makes the span an error and has an error.type. The work reports its
	// own error. Refusing a request that is busy, without a key or given up by its caller is the guard's job.
	failed bool
	// message is that of a line in the log, for readers who do not know this package. Without it, the call was a common
	// one.
	message string
}

var traits = map[string]outcomeTraits{
	OutcomeOK:             {ordinary: true},
	OutcomeError:          {ordinary: true},
	OutcomeConditionFalse: {ordinary: true},
	OutcomeOff:            {ordinary: true},
	OutcomeShadow:         {ordinary: true, handled: true, message: "guard: ran beside a shadow of the lock"},
	OutcomeSkipped:        {handled: true, message: "guard: skipped without the lock"},
	OutcomeUnlocked:       {handled: true, message: "guard: ran without the lock"},
	OutcomeFallback:       {handled: true, message: "guard: ran the fallback without the lock"},
	OutcomeElected:        {message: "guard: elected, and leads"},
	OutcomeKey:            {message: "guard: refused, no key from this request"},
	OutcomeBusy:           {message: "guard: refused, held by others"},
	OutcomeDraining:       {message: "guard: refused, about to end"},
	OutcomeReplaced:       {message: "guard: replaced by a newer call"},
	OutcomeCanceled:       {message: "guard: the caller left before the work began"},
	OutcomeLost:           {failed: true, message: "guard: lost the lock while the work ran"},
	OutcomeMaxHold:        {failed: true, message: "guard: ended the work at its max-hold"},
	OutcomeOutage:         {failed: true, message: "guard: refused, the lock service did not answer"},
	OutcomeOverload:       {failed: true, message: "guard: refused, too many calls at once"},
	OutcomeUnsupported:    {failed: true, message: "guard: failed"},
	OutcomeFault:          {failed: true, message: "guard: failed"},
	OutcomePanic:          {failed: true, message: "guard: failed"},
}
