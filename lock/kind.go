package lock

import "fmt"

// Kind is a sort of lock. Its text form, as in configuration and tags, is the lower-case name: "exclusive", "fair" and
// so on.
//
// Kinds come in three families: exclusive, fair, fenced and spin locks, which exclude each other; read and write locks;
// and permits. A key is for one family. A [Locker] refuses a request of another family than the holders of the key have
// with a [KindError], at once and also if the request would wait.
type Kind uint8

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

// Reenter decides whether a call may take a key as kind wanted while its ancestors hold that key as the kinds held. It
// returns nil if the call re-enters, and otherwise a [KindError] as the reason to refuse the call at once.
//
// All kinds of a family re-enter each other, with one exception: under nothing but read locks, a call can't have the
// write lock. It would wait for itself. Without any held kinds, Reenter returns nil.
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

// KindError says that a key can't be taken as one kind while it is held as another. It matches [ErrUnsupported].
//
// Held is a kind of the holder's family, and not always the very kind: some services can't distinguish them.
type KindError struct {
	Held, Wanted Kind
}

// Error names both kinds and says what to do.
func (e *KindError) Error() string {
	if e.Held == Read && e.Wanted == Write {
		return "lock: wanted as write, but this call holds it as read and would wait for itself: " +
			"release the read lock first, or take the write lock from the start"
	}
	return fmt.Sprintf("lock: wanted as %v, but held as %v: use kinds of one family for a key", e.Wanted, e.Held)
}

// Unwrap returns ErrUnsupported.
func (e *KindError) Unwrap() error { return ErrUnsupported }

// String returns the text form of k.
func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return kindNames[k]
}

// MarshalText returns the text form of k, or an error for a value that is no kind.
func (k Kind) MarshalText() ([]byte, error) {
	if int(k) >= len(kindNames) {
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
