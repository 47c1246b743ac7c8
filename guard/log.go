package guard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/internal/clock"
)

// Log writes a line to l for each call, at a level that says who should look:
//
//	ERROR  the guard could not do its job: lost, max_hold, outage, overload, unsupported, fault, panic
//	WARN   the guard did not do its job, as a Policy let it: unlocked; skipped, fallback and shadow, unless the lock was
//	       only busy; a lock could not be given back
//	INFO   the guard did its job, and the work did not run: busy, key, canceled, draining, replaced; skipped, fallback and
//	       shadow with a lock that was busy; of Lead, that it was elected, and that its work has ended
//	DEBUG  all else
//
// A line has the guard, the outcome, the times spent waiting and holding, the name of a missing fact, and the reason
// with the words of the lock service. It never has a key of the call, which is <key> where those words have it by itself or quoted; use
// LogKeys where the log may hold personal data.
//
// An outage at night is not to fill a disk: of one guard, outcome and level, at most 10 lines are written a minute. The
// last of them says for how long no more follow (pause), and the next one how many were left out (omitted). Metrics
// have them all. Lines of DEBUG are not bounded: they are for seeing each call.
func Log(l *slog.Logger) Option { return logTo(l, false) }

// LogKeys is Log with the keys of each call. Keys hold values that the template reads from the request, such as the
// number of a customer.
func LogKeys(l *slog.Logger) Option { return logTo(l, true) }

func logTo(l *slog.Logger, keys bool) Option {
	return optionFunc(func(c *config) {
		if l == nil || l.Handler() == nil {
			c.fault("Log without a logger: slog.Default() is one")
			return
		}
		own := &logger{Logger: l, keys: keys, recent: make(map[lineKind]lineCount)}
		c.observers = append(c.observers, own.log)
		c.wantKeys, c.log = true, l
	})
}

// logger is an observer that writes events to a log.
type logger struct {
	*slog.Logger
	keys bool

	mu     sync.Mutex
	recent map[lineKind]lineCount
}

// A logger writes so many lines of a kind within linePeriod.
const (
	linesKept  = 10
	linePeriod = time.Minute
)

// lineKind groups the lines that share a bound.
type lineKind struct {
	guard, outcome string
	level          slog.Level // as lines that matter less would use up the room of others
}

// lineCount counts the lines of one kind, from the first of a period.
type lineCount struct {
	since time.Duration // by the clock
	lines int           // also those that are left out
}

// keep reports whether to write a line of e. It also returns how many lines were left out before it, and, for the last
// one of a period, the rest of that period.
func (l *logger) keep(e *Event, level slog.Level) (omitted int, pause time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind, at := lineKind{e.Guard, e.Outcome, level}, clock.Now()
	n, known := l.recent[kind]
	if !known || at-n.since >= linePeriod {
		omitted, n = max(0, n.lines-linesKept), lineCount{since: at}
	}
	if n.lines++; n.lines == linesKept {
		pause = n.since + linePeriod - at
	}
	l.recent[kind] = n
	return omitted, pause, n.lines <= linesKept
}

func (l *logger) log(ctx context.Context, e Event) {
	level := logLevel(&e)
	if !l.Enabled(ctx, level) {
		return
	}
	omitted, pause := 0, time.Duration(0)
	if level > slog.LevelDebug {
		var ok bool
		if omitted, pause, ok = l.keep(&e, level); !ok {
			return
		}
	}
	l.LogAttrs(ctx, level, logMessage(&e), l.attributes(&e, omitted, pause)...)
}

// attributes are what a line says of e, and of those that are left out.
func (l *logger) attributes(e *Event, omitted int, pause time.Duration) []slog.Attr {
	attrs := []slog.Attr{slog.String("guard", e.Guard), slog.String("outcome", e.Outcome)}
	add := func(said bool, a slog.Attr) {
		if said {
			attrs = append(attrs, a)
		}
	}
	if l.keys && e.keys != nil {
		attrs = append(attrs, slog.Any("keys", *e.keys))
	}
	add(e.Keys > 0, slog.Duration("wait", e.Wait))
	add(e.Held > 0, slog.Duration("held", e.Held.Round(time.Microsecond)))
	add(e.Fact != "", slog.String("fact", e.Fact))
	if reason := e.reason(); reason != nil {
		attrs = append(attrs, slog.String("reason", l.words(reason, e)))
	}
	if e.Release != nil {
		attrs = append(attrs, slog.String("release", l.words(e.Release, e)))
	}
	add(omitted > 0, slog.Int("omitted", omitted))
	add(pause > 0, slog.Duration("pause", pause.Round(time.Millisecond)))
	return attrs
}

// words is the text of err. Lock services quote keys in their errors, which have no place in this log unless asked for.
func (l *logger) words(err error, e *Event) string {
	if l.keys {
		return err.Error()
	}
	var keys []string
	for ; e != nil; e = e.behind {
		if e.keys != nil {
			keys = append(keys, *e.keys...)
		}
	}
	return redact(err.Error(), keys)
}

// reason is why a call did not run as declared. The work's own error is none: whoever gets it knows what to do. Nobody gets that of a Lead.
func (e *Event) reason() error {
	switch {
	case e.Refused != nil:
		return e.Refused
	case traits[e.Outcome].ordinary && !e.Lead:
		return nil
	}
	return e.Err
}

func logLevel(e *Event) slog.Level {
	outcome := traits[e.Outcome]
	switch {
	case outcome.failed:
		return slog.LevelError
	case e.Release != nil, e.Outcome == OutcomeUnlocked, outcome.handled && traits[e.refusedBy()].failed:
		return slog.LevelWarn
	case outcome.ordinary && e.Refused == nil && !e.Lead:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func logMessage(e *Event) string {
	switch message := traits[e.Outcome].message; {
	case message != "":
		return message
	case e.Lead:
		return "guard: leads no more"
	}
	return "guard: call"
}
