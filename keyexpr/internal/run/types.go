package run

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"time"
)

// The roles of Go's types in a key. They are found by reflection, at start where a type is known, and for each value
// where it is not.

// Leaf is how values of one type get into a key quickest. The kind is found at start, by type.
// It spares the renderer a look at the type of each value.
type Leaf int

// The leaves.
const (
	LeafAny Leaf = iota
	LeafString
	LeafInt
	LeafUint
	LeafLookup // the path is a name in a lookup root, and nothing else
)

// LeafAt is LeafOf the type of what is at the end of p. A header by its name is the second most
// common value, and a way of its own spares the reflect.Value of a text that has no address.
func LeafAt(p *Path, t reflect.Type) Leaf {
	if len(p.Steps) == 1 && p.Steps[0].Lookup {
		return LeafLookup
	}
	return LeafOf(t)
}

// LeafOf returns the leaf for values of type t, which is nil if it is not known. A type that spells itself does so,
// whatever it is made of.
func LeafOf(t reflect.Type) Leaf {
	if t == nil {
		return LeafAny
	}
	switch kind := t.Kind(); {
	// A json.Number is looked at for its spelling, and Raw is not escaped: both are strings that must
	// not go the way of strings.
	case kind == reflect.String && t != numberType && t != rawType:
		return LeafString
	case Spells(PointerTo(t)), IsValuer(t): // has the methods of t, too
		return LeafAny
	case kind >= reflect.Int && kind <= reflect.Int64:
		return LeafInt
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return LeafUint
	}
	return LeafAny
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	stringer      = reflect.TypeFor[fmt.Stringer]()
	timeType      = reflect.TypeFor[time.Time]()
	numberType    = reflect.TypeFor[json.Number]()
	bigFloatType  = reflect.TypeFor[big.Float]()
	rawType       = reflect.TypeFor[Raw]()
)

// Uncompiled reports whether t is a type of source code (internal/gotype). There are no values of it.
func Uncompiled(t reflect.Type) bool {
	_, ok := t.(pointable)
	return ok
}

type pointable interface{ PointerTo() reflect.Type }

// PointerTo is reflect.PointerTo, also for types of source code.
func PointerTo(t reflect.Type) reflect.Type {
	if t, ok := t.(pointable); ok {
		return t.PointerTo()
	}
	return reflect.PointerTo(t)
}

// Spells reports whether values of type t say themselves how they are written. Both are standard
// interfaces that ids already have: UUIDs, network addresses, protobuf enums, numbers of any
// size.
func Spells(t reflect.Type) bool { return says(t) && !swallows(t) }

func says(t reflect.Type) bool { return t.Implements(textMarshaler) || t.Implements(stringer) }

// swallows reports whether the methods of a struct may be those of something that it embeds beside other fields, which would
// be left out: two values that differ in them would be one key.
func swallows(t reflect.Type) bool {
	for range maxPointers { // a type can embed a pointer to itself
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return false
		}
		lent := false
		for f := range t.Fields() {
			lent = lent || lends(f)
		}
		if !lent || t.NumField() > 1 {
			return lent
		}
		t = t.Field(0).Type
	}
	return false
}

// lends reports whether the struct around f may spell itself as f does.
func lends(f reflect.StructField) bool {
	of, to := f.Type, PointerTo(f.Type)
	return f.Anonymous && (says(of) || says(to) || of.Implements(valuer) || to.Implements(valuer))
}

// maxBits is the size of the largest number that is written out. To do so takes the square of
// the size.
const maxBits = 1 << 12

// sizeOf returns the size of a number that can be of any size. JSON has 1e1000000 in nine bytes.
// Other types of such numbers are the program's own, and so is the time that they take.
func sizeOf(v any) int {
	switch n := v.(type) {
	case *big.Int:
		return n.BitLen()
	case *big.Rat:
		return max(n.Num().BitLen(), n.Denom().BitLen())
	}
	return 0
}

// spelling prefers MarshalText, as encoding/json does: what a String says is for people, and may
// leave out what differs. How long it takes is the type's own affair, but for numbers; what it
// returns takes some memory even where it is not used. A marshaler may fail, and its error may
// have the value in it.
func (st *State) spelling(v any) (string, error) {
	size := sizeOf(v)
	// A client that sends 1e1000000 into a *big.Rat has sent nine bytes, and would get a million
	// digits for them.
	if size > maxBits {
		return "", Faulty("is a number of more than %d bits", maxBits)
	}
	if err := st.Step(1 + size/8); err != nil {
		return "", err
	}
	if err := st.Spend(64 + size/2); err != nil {
		return "", err
	}
	if m, ok := v.(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return "", Faulty("of type %T does not marshal to text", v)
		}
		return string(text), nil
	}
	return v.(fmt.Stringer).String(), nil
}

// IsList reports whether values of type t are lists rather than ids that are made of bytes or
// that spell themselves. A [16]byte without methods is bytes as well, and is spelt in hex.
func IsList(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) &&
		t.Elem().Kind() != reflect.Uint8 && !Spells(t) && !Spells(PointerTo(t))
}

// IsTime reports whether t is a time, or a struct that has become one by embedding it: it would
// marshal to the time, and leave out its other fields. One instant has as many spellings as
// there are zones and precisions, of which two services choose two.
func IsTime(t reflect.Type) bool {
	if t == timeType {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Time")
	// A field of the name alone is no reason. A struct with a field Time that it does not embed has
	// methods of its own, or none.
	return ok && f.Anonymous && (f.Type == timeType || f.Type == reflect.PointerTo(timeType))
}

// IsMessage reports whether t is a message of protobuf, or a pointer to one.
func IsMessage(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	_, ok := PointerTo(t).MethodByName("ProtoReflect")
	return ok
}

// Refusal says why values of type t can't be part of a key, and "" if they can. An interface
// can, until it is known what is in it. The sentences say what to write, and stand behind the
// source of a hole: "req.At is a time, …". A message is refused before its String is looked at,
// as that is for people and changes from run to run on purpose.
func Refusal(t reflect.Type) string {
	// A pointer to a text is how a request says that a field may be missing. A pointer to a struct is
	// kept, as many types spell themselves only by their pointer.
	if t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
		t = t.Elem()
	}
	bare := t
	if t.Kind() == reflect.Pointer {
		bare = t.Elem()
	}
	if IsMessage(bare) {
		return fmt.Sprintf("is a message, %v: name one of its fields", bare)
	}
	switch {
	case bare == bigFloatType:
		return "is a float, big.Float, which has many spellings: use a whole number or a string"
	case IsTime(bare):
		return "is a time, which has many spellings: use fmtTime(x, \"2006-01-02\")"
	case t.PkgPath() == "encoding/json" && t.Name() == "RawMessage": // of source code as well
		return "is JSON as it was sent, which has many spellings: hash what is decoded from it"
	case IsValuer(bare) && nullable(bare) != "" && !Spells(PointerTo(bare)):
		return nullable(bare)
	case IsValuer(bare) && bare.Kind() == reflect.Struct:
		return ""
	case t.Kind() == reflect.Interface, Spells(t), Spells(PointerTo(bare)):
		return ""
	}
	switch bare.Kind() {
	case reflect.String, reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return ""
	case reflect.Slice, reflect.Array:
		if bare.Elem().Kind() == reflect.Uint8 {
			return ""
		}
		return fmt.Sprintf("is a list, %v: a list makes keys only as a hole of its own, as in item:#{map(list, .ID)}", bare)
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("is a float, %v, which has many spellings: use a whole number or a string", bare)
	case reflect.Func:
		return "is a function: call it"
	case reflect.Struct:
		return fmt.Sprintf("is a struct, %v: name one of its fields", bare)
	case reflect.Map:
		return fmt.Sprintf("is a map, %v: name one of its entries", bare)
	}
	return fmt.Sprintf("is of type %v, which is no key material", bare)
}

// Bytes returns those of a slice or array of bytes, also of a named type. The method of reflect panics for an array that has no
// address, and reflect.Copy for elements of a named type.
func Bytes(v reflect.Value) []byte {
	if v.Kind() == reflect.Array {
		p := reflect.New(v.Type()).Elem()
		p.Set(v)
		v = p
	}
	return v.Bytes()
}
