package guard

import (
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// Policy says what becomes of a call whose lock could not be had. Its text form, as in tags and configuration, is
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
	// Calls of all guards with this policy and the same locker are replaced, at the same key, also in other processes that
	// share its locks: see the method Replace of the locker, which must have one. Other holders are not told, and are waited
	// for. A call replaces others before it waits. So one that gives up, or gets no answer, may have ended them for nothing.
	// A call under the work of another one for the same key is a part of it, and replaces nobody.
	//
	// It is for busy locks only, of kinds that one call holds at a time.
	Replace
)

var policyNames = [...]string{"fail", "skip", "run-unlocked", "fallback", "replace"}

var policyList = strings.Join(policyNames[:], ", ")

func (p Policy) valid() bool { return p >= 0 && int(p) < len(policyNames) }

// String returns the text form of p.
func (p Policy) String() string {
	if !p.valid() {
		return fmt.Sprintf("policy(%d)", int(p))
	}
	return policyNames[p]
}

// MarshalText returns the text form of p, or an error for a value that is no policy.
func (p Policy) MarshalText() ([]byte, error) {
	if !p.valid() {
		return nil, fmt.Errorf("guard: unknown policy %d, valid are %s", int(p), policyList)
	}
	return []byte(policyNames[p]), nil
}

// UnmarshalText sets p from its text form. The error for any other text suggests the nearest.
func (p *Policy) UnmarshalText(text []byte) error {
	for i, name := range policyNames {
		if name == string(text) {
			*p = Policy(i)
			return nil
		}
	}
	return fmt.Errorf("unknown policy %q%s", text, suggest.Ending(string(text), policyNames[:]))
}
