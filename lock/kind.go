package lock

import "fmt"

// Kind is a sort of lock. Its text form, as in configuration and tags, is the lower-case name: "exclusive", "fair" and
// so on.
//
// A key is for one family of kinds: for exclusive, fair, fenced and spin locks, which exclude each other; for read and
// write locks; or for permits. A Locker refuses what belongs to another family than the holder of the key with a
// [KindError].
type Kind int

const (
	Exclusive Kind = iota // one owner at a time, re-entrant
	Fair                  // Exclusive, served in the order of arrival
	Read                  // shared with other readers of the key
	Write                 // excludes readers and writers of the key
	Fenced                // Exclusive with a fencing token
	Spin                  // Exclusive, waiting by polling
	Permit                // up to Limit owners at a time
)

var kindNames = [...]string{"exclusive", "fair", "read", "write", "fenced", "spin", "permit"}

// Family returns the kind that stands for the family of k: Exclusive, Write or Permit.
func (k Kind) Family() Kind {
	switch k {
	case Read, Write:
		return Write
	case Permit:
		return Permit
	}
	return Exclusive
}

// Reenter decides what becomes of a call that wants a key as kind wanted, under holds of that key as the given kinds. It
// returns nil if the call re-enters: all kinds of a family re-enter each other, but for a reader who wants to write. That
// one would wait for itself. The error is a [KindError].
func Reenter(wanted Kind, held ...Kind) error {
	var refusal error
	for _, k := range held {
		if k.Family() == wanted.Family() && (wanted != Write || k == Write) {
			return nil
		}
		refusal = &KindError{Held: k, Wanted: wanted}
	}
	return refusal
}

// KindError is why a key can't be taken as one kind while it is held as another one. It matches [ErrUnsupported].
type KindError struct {
	Held, Wanted Kind
}

// Error names both kinds and says what to do.
func (e *KindError) Error() string {
	if e.Held == Read && e.Wanted == Write {
		return "lock: this call holds the read lock and would wait for itself as a writer: release the read lock first, or take the write lock from the start"
	}
	return fmt.Sprintf("lock: wanted as %v, but held as %v: use locks of one family for a key", e.Wanted, e.Held)
}

// Unwrap returns ErrUnsupported.
func (e *KindError) Unwrap() error { return ErrUnsupported }

// String returns the text form of k.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return kindNames[k]
}

// MarshalText returns the text form of k, or an error for a value that is no kind.
func (k Kind) MarshalText() ([]byte, error) {
	if k < 0 || int(k) >= len(kindNames) {
		return nil, fmt.Errorf("lock: unknown kind %d", int(k))
	}
	return []byte(kindNames[k]), nil
}

// UnmarshalText sets k from its text form.
func (k *Kind) UnmarshalText(text []byte) error {
	for i, name := range kindNames {
		if name == string(text) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("lock: unknown kind %q, want one of %v", text, kindNames)
}
