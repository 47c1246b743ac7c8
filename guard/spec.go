package guard

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/lock"
)

// Forever as a Spec.Wait waits for as long as the caller's context lasts.
const Forever time.Duration = math.MaxInt64

// Spec is the declaration of a guard: plain data that can be printed, compared and kept in a file. Every spelling
// (options, tags, rules) fills one in. Its zero value tries once for an exclusive lock that is renewed until the work
// is done, and refuses the call if it can't have it; only Name and Key must be given.
type Spec struct {
	// Name names the guard in errors, spans and metrics. Func and Bind have a default for it.
	Name string
	// Key is the template of the keys, as package keyexpr describes it. A template of list type gives several keys,
	// which are taken all or not at all.
	Key string
	// When is a condition over the same facts as Key. Where it is false, the work runs without a lock. Empty is always.
	When string
	// Kind is the sort of lock; the zero value is lock.Exclusive.
	Kind lock.Kind
	// Wait bounds the time spent waiting for all locks of a call together: 0 tries once, Forever waits for as long as
	// the caller's context lasts.
	Wait time.Duration
	// Lease ends each lock by itself after that time; 0 renews it until the work is done.
	Lease time.Duration
	// LeaseFrom reads the Lease from each request, in place of Lease: "#{order.Timeout}". It is a template of one hole, which
	// makes a time.Duration. MaxHold bounds it.
	LeaseFrom string
	// MaxHold ends the work's context, and with it the lock, after that time, however often the lock was renewed.
	// 0 sets no bound.
	MaxHold time.Duration
	// Hold keeps each lock for at least that long, counted from when it was taken, if the work succeeds: once per
	// interval. Work that fails gives the lock back at once. 0 always does.
	Hold time.Duration
	// Limit is how many may hold a lock.Permit at once. Other kinds have none. 0 sets no bound beside a Rate.
	Limit int
	// LimitFrom reads the Limit from each request, in place of Limit: "#{plan.Slots}". It is a template of one hole, which
	// makes a whole number from 1 to 10,000. Each call goes by its own.
	LimitFrom string
	// Levels are one or two more keys that a lock.Permit takes beside Key, all or none, between commas: "20 of all" lets 20 calls run at once,
	// whatever their Key, and "#{plan.Slots} of tenant:#{tenant}" reads both its limit and its key from each request, as LimitFrom and Key do. A comma
	// of a key is #{","}. A key may read nothing of the request. Levels need a Limit, which is that of Key, and a Key that is no list.
	Levels string
	// Rate bounds how often calls with a Key begin, however long they take: "10/1m" is ten within a minute, at most 10,000,000 within a year. It makes
	// the kind lock.Permit. Without a Limit, nothing is held, so there is no Lease, MaxHold or Hold. A call uses up its permit also where it then
	// fails, or has no lock of a guard behind it in a Stack.
	Rate string
	// Burst is how many calls the Rate lets begin at once, within the time in which it gives that many, in whole milliseconds: 1 of 10/1m spaces them
	// by 6s, and 20 may begin within 2m. 0 is the number of the Rate.
	Burst int
	// Waiters is how many calls of this process may wait for a key. One more is busy at once. 0 sets no bound.
	Waiters int
	// Busy says what to do when others held a lock for all of Wait.
	Busy Policy
	// Outage says what to do when the lock service could not answer.
	Outage Policy
	// Args names the arguments of a function that Bind guards, between commas and without its context: "from,to". The
	// names are the facts of Key and When. Without it, a function has one argument, which is the fact req.
	Args string
	// Methods are the methods of HTTP that a guard is for, between commas: "POST,PUT". Other requests pass without a lock.
	// Empty is all.
	Methods string
	// OneKey says that a Key which reads nothing of the request is meant: one lock for all calls, as for a nightly job.
	// Without it such a Key is an error, unless the guarded function has no request (struct{}).
	OneKey bool
	// Switchable says that the guard may be switched off, or to shadow mode, while the program runs.
	Switchable bool

	zeros fields // have their zero value because a text says so, as in wait=0
}

// Validate reports every fault of s that shows without knowing the facts, the syntax of templates and of When included, as
// errors that are joined. Name and Key may be missing, as tags and adapters can fill them in later.
func (s Spec) Validate() error {
	return s.errors(append(append(s.faults(), s.gaps()...), s.checkTemplates()...))
}

// errors joins faults, each as an error that says which guard it is about.
func (s Spec) errors(faults []error) error {
	for i, fault := range faults {
		faults[i] = s.errorf("%w", fault)
	}
	return errors.Join(faults...)
}

// faults describes the fields whose value alone is wrong, and those that exclude each other.
func (s Spec) faults() (f faults) {
	for _, a := range attributes {
		fault := a.fault(&s)
		f.check(fault != "", "%s", fault)
	}
	keys := s.keys()
	f.check(len(slices.Compact(slices.Sorted(slices.Values(keys)))) < len(keys), "levels need keys of their own, and not one of %q twice", keys)
	_, err := s.rate()
	f.check(s.Burst > 0 && err != nil, "burst=%d: %w", s.Burst, err)
	f.check(s.zeros&fieldBurst != 0, "burst of 0: give at least 1")
	f.check(s.Kind != lock.Permit && s.bounded(), "levels and a rate belong to kind permit, not to kind %v", s.Kind)
	f.check(s.Kind != lock.Permit && (s.Limit > 0 || s.LimitFrom != ""), "limit %.0d%s belongs to kind permit, not to kind %v", s.Limit, s.LimitFrom, s.Kind)
	f.check(s.MaxHold > 0 && s.Lease > s.MaxHold, "lease %v is over max-hold %v, which would end it first", s.Lease, s.MaxHold)
	f.check(s.Busy == Replace && (s.Kind == lock.Read || s.Kind == lock.Permit),
		"busy=replace is for kinds that one call holds at a time, not for kind %v", s.Kind)
	f.check(s.Outage == Replace, "outage=replace: only a busy lock has a holder to replace")
	return f
}

// gaps describes the fields that lack another one. A tag may still fill it in.
func (s Spec) gaps() (f faults) {
	limited := s.Limit > 0 || s.LimitFrom != ""
	f.check(s.Levels != "" && !limited, "levels without limit: give that of the key itself")
	unlimited := s.Kind == lock.Permit && !limited && s.Levels == ""
	f.check(unlimited && (s.Rate == "" || s.zeros&fieldLimit != 0), "kind permit needs a limit of at least 1, not %d, or a rate", s.Limit)
	f.check(unlimited && s.Rate != "" && (s.Hold > 0 || s.Lease > 0 || s.LeaseFrom != "" || s.MaxHold > 0),
		"rate without limit holds nothing: leave hold, lease and max-hold out")
	f.check(s.Burst > 0 && s.Rate == "", "burst without rate")
	f.check(s.Waiters > 0 && s.Wait == 0 && s.Busy != Replace, "waiters without wait: nobody waits")
	return f
}

// faults collects errors.
type faults []error

func (f *faults) check(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// checkTemplates reports mistakes of syntax.
func (s Spec) checkTemplates() (f faults) {
	for i, key := range s.keys() {
		name := [...]string{"key", "levels", "levels"}[i]
		if err := keyexpr.Check(key); err != nil && key != "" {
			f.check(true, "%s: %w", name, err)
		} else if lost, ok := findStray(bareText(key), key, false); ok {
			f.check(true, "%s: %s would be a part of the key: in a tag it stands behind a semicolon, and else it is an option", name, lost.name)
		}
	}
	if s.When != "" {
		err := keyexpr.CheckCondition(s.When)
		f.check(err != nil, "when: %w", err)
	}
	return f
}

// bareText is text with dots for its holes.
func bareText(text string) string {
	var b strings.Builder
	for t := (tagParser{text: text}); ; t.pos++ {
		_, bare := t.literal()
		b.WriteString(bare)
		if t.pos == len(text) {
			return b.String()
		}
		b.WriteByte(';')
	}
}

// imply fills in the kind that a limit, levels and a rate are for.
func (s *Spec) imply() {
	if given := s.given(); given&(fieldLimit|fieldLevels|fieldRate) != 0 && given&fieldKind == 0 {
		s.Kind = lock.Permit
	}
}

// errorf makes a start-up error that says which guard it is about.
func (s Spec) errorf(format string, args ...any) error {
	label := "guard without a name"
	if s.Name != "" {
		label = fmt.Sprintf("guard %q", s.Name)
	}
	return fmt.Errorf("%s: %w", label, fmt.Errorf(format, args...))
}

// missing describes what s still lacks now that no tag can add to it anymore.
func (s Spec) missing(hasKeyFunc bool) []error {
	f := s.gaps()
	f.check(s.Name == "", "give guard.Name, for errors, spans and metrics")
	f.check(s.Key == "" && !hasKeyFunc, "no key: give guard.Key")
	return f
}

// request returns the request to a locker, without the key and the values that are read from requests.
func (s *Spec) request() lock.Request {
	r := lock.Request{Kind: s.Kind, Wait: s.Wait, Lease: s.Lease, MaxHold: s.MaxHold, Limit: s.Limit, Holder: fmt.Sprintf("guard %q", s.Name)}
	r.Rate, _ = s.rate()
	if s.Wait == Forever || s.Wait == 0 && s.Busy == Replace {
		r.Wait = -1
	}
	return r
}

// rate returns Rate and Burst for a locker: as many as may begin at once, within the time in which Rate gives that
// many.
func (s *Spec) rate() (r lock.Rate, err error) {
	if s.Rate == "" {
		return r, nil
	}
	number, duration, _ := strings.Cut(s.Rate, "/")
	n, _ := strconv.Atoi(number)
	per, _ := parseDuration(duration)
	permits := cmp.Or(s.Burst, n)
	interval := float64(per) / float64(time.Millisecond) * float64(permits) / float64(n) // or no number, for n of 0
	if n < 1 || max(n, permits) > 10_000_000 || !(interval >= 1 && interval <= 365*24*60*60*1000) {
		return r, fmt.Errorf("bad rate %q, want calls, a slash and a duration, as in 10/1m: at most 10,000,000 within 1ms to a year", s.Rate)
	}
	return lock.Rate{Permits: permits, Interval: time.Duration(math.Ceil(interval)) * time.Millisecond}, nil
}

// bounded reports whether s has levels or a rate, which few lockers serve.
func (s *Spec) bounded() bool { return s.Levels != "" || s.Rate != "" }

// keys are the templates of the keys of s, with those of its levels last.
func (s *Spec) keys() []string {
	keys := []string{s.Key}
	levels, _ := splitLevels(s.Levels)
	for _, l := range levels {
		keys = append(keys, l.key)
	}
	return keys
}
