package guard

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// Log writes a line to l for each call, at a level that says who should look:
//
//	ERROR  the guard could not do its job: lost, max_hold, outage, unsupported, fault, panic
//	WARN   the work did not run, or ran without the lock, and the caller may not know: skipped, unlocked, fallback,
//	       shadow with a lock that was not free; a lock could not be given back
//	INFO   the caller was told to come back or to mend its request: busy, key, canceled, draining
//	DEBUG  all else
//
// A line has the guard, the outcome, the times spent waiting and holding, the name of a missing fact, and the reason
// with the words of the lock service. It never has a key, which is <key> where those words quote it; use LogKeys where the
// log may hold personal data.
func Log(l *slog.Logger) Option { return logTo(l, false) }

// LogKeys is Log with the keys of each call. Keys hold what the template reads of the request, such as the number of a
// customer.
func LogKeys(l *slog.Logger) Option { return logTo(l, true) }

func logTo(l *slog.Logger, keys bool) Option {
	if l == nil {
		return Observe(nil) // which is refused when the guard is made
	}
	return optionFunc(func(c *config) {
		c.observers = append(c.observers, (&logger{l, keys}).log)
		c.wantKeys = true
	})
}

// logger is an observer that writes events to a log.
type logger struct {
	*slog.Logger
	keys bool
}

func (l *logger) log(ctx context.Context, e Event) {
	level := logLevel(&e)
	if !l.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("guard", e.Guard), slog.String("outcome", e.Outcome)}
	if l.keys && e.keys != nil {
		attrs = append(attrs, slog.Any("keys", *e.keys))
	}
	if e.Keys > 0 {
		attrs = append(attrs, slog.Duration("wait", e.Wait))
	}
	if e.Held > 0 {
		attrs = append(attrs, slog.Duration("held", e.Held.Round(time.Microsecond)))
	}
	if e.Fact != "" {
		attrs = append(attrs, slog.String("fact", e.Fact))
	}
	if reason := e.reason(); reason != nil {
		attrs = append(attrs, slog.String("reason", l.words(reason, &e)))
	}
	if e.Release != nil {
		attrs = append(attrs, slog.String("release", l.words(e.Release, &e)))
	}
	l.LogAttrs(ctx, level, logMessage(e.Outcome), attrs...)
}

// words is the text of err. Lock services quote keys in their errors, which have no place in this log unless asked for.
func (l *logger) words(err error, e *Event) string {
	text := err.Error()
	if l.keys || e.keys == nil {
		return text
	}
	for _, key := range *e.keys {
		text = strings.ReplaceAll(text, key, "<key>")
	}
	return text
}

// reason is why a call did not run as declared. The work's own error is none: whoever gets it knows what to do.
func (e *Event) reason() error {
	switch {
	case e.Refused != nil:
		return e.Refused
	case ordinary(e.Outcome):
		return nil
	}
	return e.Err
}

func logLevel(e *Event) slog.Level {
	switch {
	case failed(e.Outcome):
		return slog.LevelError
	case e.Release != nil, e.Refused != nil && handled(e.Outcome):
		return slog.LevelWarn
	case ordinary(e.Outcome):
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// ordinary reports whether outcome is that the work ran, as it was to.
func ordinary(outcome string) bool {
	switch outcome {
	case OutcomeOK, OutcomeError, OutcomeConditionFalse, OutcomeOff, OutcomeShadow:
		return true
	}
	return false
}

// logMessage says in words what outcome means, for those who have not read this package.
func logMessage(outcome string) string {
	switch outcome {
	case OutcomeSkipped:
		return "guard: skipped without the lock"
	case OutcomeUnlocked:
		return "guard: ran without the lock"
	case OutcomeFallback:
		return "guard: ran the fallback without the lock"
	case OutcomeShadow:
		return "guard: ran beside a shadow of the lock"
	case OutcomeDraining:
		return "guard: refused, about to end"
	case OutcomeReplaced:
		return "guard: replaced by a newer call"
	case OutcomeLost:
		return "guard: lost the lock while the work ran"
	case OutcomeMaxHold:
		return "guard: ended the work at its max-hold"
	case OutcomeBusy:
		return "guard: refused, held by others"
	case OutcomeKey:
		return "guard: refused, no key from this request"
	case OutcomeCanceled:
		return "guard: the caller left before the work began"
	case OutcomeOutage:
		return "guard: refused, the lock service did not answer"
	case OutcomeUnsupported, OutcomeFault, OutcomePanic:
		return "guard: failed"
	}
	return "guard: call"
}
