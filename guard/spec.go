package guard

import (
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
	// MaxHold ends the work's context, and with it the lock, after that time, however often the lock was renewed.
	// 0 sets no bound.
	MaxHold time.Duration
	// Limit is how many may hold a lock.Permit at once. Other kinds have none.
	Limit int
	// Busy says what to do when others held a lock for all of Wait.
	Busy Policy
	// Outage says what to do when the lock service could not answer.
	Outage Policy
	// OneKey says that a Key which reads nothing of the request is meant: one lock for all calls, as for a nightly job.
	// Without it such a Key is an error, unless the guarded function has no request (struct{}).
	OneKey bool
}

// Validate reports every fault of s that shows without knowing the facts, the syntax of Key and When included. Name and
// Key may be missing, as tags and adapters can fill them in later.
func (s Spec) Validate() error {
	if faults := s.faults(); len(faults) > 0 {
		return s.errorf("%s", strings.Join(faults, "; "))
	}
	if s.Key != "" {
		if err := keyexpr.Check(s.Key); err != nil {
			return s.errorf("key: %w", err)
		}
	}
	if s.When != "" {
		if err := keyexpr.CheckCondition(s.When); err != nil {
			return s.errorf("when: %w", err)
		}
	}
	return nil
}

// faults describes the fields whose value alone is wrong, and the pairs that exclude each other.
func (s Spec) faults() []string {
	var faults []string
	check := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	_, kindErr := s.Kind.MarshalText()
	check(kindErr != nil, "unknown kind %d, valid are 0 to %d", int(s.Kind), int(lock.Permit))
	check(s.Wait < 0, "negative wait %v (use Forever to wait as long as the caller)", s.Wait)
	check(s.Lease < 0, "negative lease %v (0 renews the lock until the work is done)", s.Lease)
	for _, d := range []struct {
		name string
		time.Duration
	}{{"wait", s.Wait}, {"lease", s.Lease}, {"max-hold", s.MaxHold}} {
		n := d.Nanoseconds()
		check(n > 0 && d.Duration < time.Millisecond, "%s %v is under 1ms: a bare number counts nanoseconds, write %d*time.Second", d.name, d.Duration, n)
	}
	check(s.MaxHold < 0, "negative max-hold %v (0 sets no bound)", s.MaxHold)
	check(s.Kind == lock.Permit && s.Limit < 1, "kind permit needs a limit of at least 1, not %d", s.Limit)
	check(s.Kind != lock.Permit && s.Limit != 0, "limit %d belongs to kind permit, not to kind %v", s.Limit, s.Kind)
	check(!s.Busy.valid(), "unknown busy policy %d, valid are %s", int(s.Busy), policyList)
	check(!s.Outage.valid(), "unknown outage policy %d, valid are %s", int(s.Outage), policyList)
	return faults
}

// errorf makes a start-up error that says which guard it is about.
func (s Spec) errorf(format string, args ...any) error {
	label := "guard without a name"
	if s.Name != "" {
		label = fmt.Sprintf("guard %q", s.Name)
	}
	return fmt.Errorf(label+": "+format, args...)
}

// complete reports what is still missing now that no tag can add to s anymore.
func (s Spec) complete(hasKeyFunc bool) error {
	if s.Name == "" {
		return s.errorf("give guard.Name")
	}
	if s.Key == "" && !hasKeyFunc {
		return s.errorf("no key: give guard.Key")
	}
	return nil
}
