package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// Policy says what happens to a call that could not get its lock. Its text form, as in tags and configuration, is
// "fail", "skip", "run-unlocked", "fallback" or "replace".
type Policy int

const (
	// Fail refuses the call with ErrBusy or ErrOutage.
	Fail Policy = iota
	// Skip drops the call: the work does not run, and the caller sees zero results and a nil error.
	Skip
	// RunUnlocked runs the work without the lock. Choose it only where running twice at once is better than not at all.
	RunUnlocked
	// RunFallback runs the fallback instead of the work. Giving one, as by Fallback, sets it where no other policy is given.
	RunFallback
	// Replace lets the newest call win: it ends the work of the call that holds the lock, and of those that wait for it,
	// whose contexts end with the cause ErrReplaced. Then it waits until they have let go, for Wait, or for as long as the
	// caller if there is no Wait: two never run at once. Work that ignores its context is bounded by Lease or MaxHold only.
	//
	// Calls of all guards with this policy and the same locker are replaced, at the same key, also in other processes
	// that share its locks: see the method Replace of the locker, which must have one. Other holders are not notified;
	// the call waits for them. A call replaces others before it waits. So one that gives up, or gets no answer, may
	// have ended them for nothing. A call under the work of another one for the same key is a part of it, and replaces
	// nobody.
	//
	// It is for busy locks only, of kinds that one call holds at a time.
	Replace
)

var policyNames = [...]string{"fail", "skip", "run-unlocked", "fallback", "replace"}

var policyList = strings.Join(policyNames[:], ", ")

var policyTexts = textForms[Policy]{"policy", policyNames[:], ", valid are " + policyList}

func (p Policy) valid() bool { return policyTexts.valid(p) }

// String returns the text form of p.
func (p Policy) String() string { return policyTexts.text(p) }

// MarshalText returns the text form of p, or an error for a value that is no policy.
func (p Policy) MarshalText() ([]byte, error) { return policyTexts.marshal(p) }

// UnmarshalText sets p from its text form. The error for any other text suggests the nearest.
func (p *Policy) UnmarshalText(text []byte) error { return policyTexts.unmarshal(p, text) }

// textForms are those of a type whose values are numbered from 0.
type textForms[T ~int] struct {
	what  string // the values are
	names []string
	hint  string // at the end of an error about a number
}

func (t *textForms[T]) valid(v T) bool { return v >= 0 && int(v) < len(t.names) }

func (t *textForms[T]) text(v T) string {
	if !t.valid(v) {
		return fmt.Sprintf("%s(%d)", t.what, int(v))
	}
	return t.names[v]
}

func (t *textForms[T]) marshal(v T) ([]byte, error) {
	if !t.valid(v) {
		return nil, fmt.Errorf("guard: unknown %s %d%s", t.what, int(v), t.hint)
	}
	return []byte(t.names[v]), nil
}

func (t *textForms[T]) unmarshal(v *T, text []byte) error {
	i := slices.Index(t.names, string(text))
	if i < 0 {
		return fmt.Errorf("unknown %s %q%s", t.what, text, suggest.Ending(string(text), t.names))
	}
	*v = T(i)
	return nil
}
