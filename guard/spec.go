package guard

import (
	"errors"
	"fmt"
	"math"
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
	// Limit is how many may hold a lock.Permit at once. Other kinds have none.
	Limit int
	// LimitFrom reads the Limit from each request, in place of Limit: "#{plan.Slots}". It is a template of one hole, which
	// makes a whole number from 1 to 10,000. Each call goes by its own.
	LimitFrom string
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
func (s Spec) faults() (faults []error) {
	for _, a := range attributes {
		if fault := a.fault(&s); fault != "" {
			faults = append(faults, errors.New(fault))
		}
	}
	check := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(s.Kind != lock.Permit && (s.Limit > 0 || s.LimitFrom != ""), "limit %.0d%s belongs to kind permit, not to kind %v", s.Limit, s.LimitFrom, s.Kind)
	check(s.MaxHold > 0 && s.Lease > s.MaxHold, "lease %v is over max-hold %v, which would end it first", s.Lease, s.MaxHold)
	check(s.Busy == Replace && (s.Kind == lock.Read || s.Kind == lock.Permit), "busy=replace is for kinds that one call holds at a time, not for kind %v", s.Kind)
	check(s.Outage == Replace, "outage=replace: only a busy lock has a holder to replace")
	return faults
}

// gaps describes the fields that lack another one. A tag may still fill it in.
func (s Spec) gaps() (faults []error) {
	if s.Kind == lock.Permit && s.Limit < 1 && s.LimitFrom == "" {
		faults = append(faults, fmt.Errorf("kind permit needs a limit of at least 1, not %d", s.Limit))
	}
	if s.Waiters > 0 && s.Wait == 0 && s.Busy != Replace {
		faults = append(faults, errors.New("waiters without wait: nobody waits"))
	}
	return faults
}

// checkTemplates reports mistakes of syntax.
func (s Spec) checkTemplates() (faults []error) {
	if s.Key != "" {
		if err := keyexpr.Check(s.Key); err != nil {
			faults = append(faults, fmt.Errorf("key: %w", err))
		} else if name := attributeIn(s.Key); name != "" {
			faults = append(faults, fmt.Errorf("key: %s would be a part of the key: in a tag it stands behind a semicolon, and else it is an option", name))
		}
	}
	if s.When != "" {
		if err := keyexpr.CheckCondition(s.When); err != nil {
			faults = append(faults, fmt.Errorf("when: %w", err))
		}
	}
	return faults
}

// attributeIn finds the text of an attribute in that of a key, which was copied from a tag into an option: nobody would wait.
func attributeIn(key string) string {
	var text strings.Builder
	for t := (tagParser{text: key}); ; t.pos++ {
		_, bare := t.literal()
		text.WriteString(bare)
		if t.pos == len(key) {
			break
		}
		text.WriteByte(';')
	}
	lost, _ := findStray(text.String(), key, false)
	return lost.name
}

// imply fills in the kind that a limit is for.
func (s *Spec) imply() {
	if given := s.given(); given&fieldLimit != 0 && given&fieldKind == 0 {
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
	faults := s.gaps()
	if s.Name == "" {
		faults = append(faults, errors.New("give guard.Name, for errors, spans and metrics"))
	}
	if s.Key == "" && !hasKeyFunc {
		faults = append(faults, errors.New("no key: give guard.Key"))
	}
	return faults
}

// request is what s asks of a locker, but for the key, and for what is read from requests.
func (s *Spec) request() lock.Request {
	r := lock.Request{Kind: s.Kind, Wait: s.Wait, Lease: s.Lease, MaxHold: s.MaxHold, Limit: s.Limit, Holder: fmt.Sprintf("guard %q", s.Name)}
	if s.Wait == Forever || s.Wait == 0 && s.Busy == Replace {
		r.Wait = -1
	}
	return r
}
