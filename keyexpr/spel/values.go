package spel

import (
	"cmp"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The types of Java for values of Go. Types decide what + and equals do there, so that each type of Go
// stands for one of Java, or for two that may differ, which is then refused where they do:
//
//	string                      String
//	a named string              String or an enum: the two differ in ==
//	a named number with String  an enum
//	bool                        boolean
//	int32, int64                int, long
//	int8, int16                 byte, short: the same as int, but in equals and hashCode
//	int, uint…, a number of JSON  int or long: the two differ in overflow, equals and hashCode
//	[]byte                      byte[]
//	slices and arrays           List or an array
//	maps by string              Map; one of any is an object, too
//	[16]byte with String        UUID
//	*big.Int                    BigInteger
//	structs, pointers           an object; nil is null

// typ is the type that is known at start. A value says the rest, by its dynamic type. The two must not
// disagree: code whose typ is textK never gives a named.
type typ struct {
	k       jkind
	t       reflect.Type // nil if it is not known
	elem    *typ         // of a list or map
	why     string       // it is refused
	pointer bool         // values of Go are pointers to t
	message bool         // nil is no null: it is, or is in, a part of a message of protobuf, of which Java has an empty one
}

// jkind is a kind of Java's types. Those from listK on are more than one value.
type jkind int

const (
	anyK     jkind = iota
	nullK          // null
	textK          // String
	nameK          // String or enum
	enumK          //
	boolK          //
	smallK         // byte, short
	intK           // int
	longK          // long
	wholeK         // int or long
	listK          // List or array
	mapK           //
	objectK        //
	bytesK         // byte[]
	otherK         // whose toString is known
	refusedK       // why
)

// The dynamic types of values: nil, string, bool, int32 and int64 are themselves. Each other one has a
// type of its own, so that no two are equal by accident of Go's ==.
type (
	named struct { // String or enum
		text string
		of   reflect.Type
	}
	enum struct {
		name string
		of   reflect.Type
	}
	small int64
	whole int64
	other string
	list  struct {
		of   reflect.Value // of a fact
		elem typ
		made []any // or made by an expression
	}
	mapping struct {
		of   reflect.Value
		elem typ
	}
	object struct{ of reflect.Value }
)

// ours are the dynamic types that Go does not have itself. They come by again where a list that
// an expression has made is gone through.
var ours = map[reflect.Type]bool{
	reflect.TypeFor[named](): true, reflect.TypeFor[enum](): true, reflect.TypeFor[small](): true, reflect.TypeFor[whole](): true,
	reflect.TypeFor[other](): true, reflect.TypeFor[list](): true, reflect.TypeFor[mapping](): true, reflect.TypeFor[object](): true,
}

func (t typ) number() bool { return t.k >= smallK && t.k <= wholeK }

var (
	numberType = reflect.TypeFor[json.Number]()
	bigType    = reflect.TypeFor[big.Int]()
)

// typeOf returns the type in Java of values of Go type t. A type that could be two in Java is one of
// its own here, and refused only where the two differ: a key that reads an int of Go, and only writes
// it, needs no declaration.
func typeOf(t reflect.Type) typ {
	if t != nil && t.Kind() == reflect.Pointer {
		x := typeOf(t.Elem())
		x.pointer = true
		return x
	}
	if t == nil || t.Kind() == reflect.Interface {
		return typ{t: t}
	}
	spells := run.Spells(t) || run.Spells(run.PointerTo(t))
	switch {
	case t == numberType:
		return typ{k: wholeK, t: t}
	case t == bigType:
		return typ{k: otherK, t: t}
	case run.IsTime(t), t.PkgPath() == "time": // a Month of Java is MAY
		return refused(t, "is a time or a duration, which Java spells in its own way: make it a string or a number on both sides")
	}
	switch k := t.Kind(); k {
	case reflect.String:
		if t.PkgPath() == "" {
			return typ{k: textK, t: t}
		}
		return typ{k: nameK, t: t}
	case reflect.Bool:
		return typ{k: boolK, t: t}
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return refused(t, "is a float, which has many spellings: use a whole number or a string")
	case reflect.Slice, reflect.Array:
		return listType(t, spells)
	case reflect.Map:
		if t.Key().Kind() != reflect.String || t.Key().PkgPath() != "" { // a named string may be an enum, by which a text finds nothing
			return refused(t, "is a map whose keys are no texts, or may be enums, which Java may or may not convert")
		}
		elem := typeOf(t.Elem())
		return typ{k: mapK, t: t, elem: &elem}
	case reflect.Struct:
		return typ{k: objectK, t: t}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return refused(t, "has no counterpart in Java")
	}
	if spells {
		return typ{k: enumK, t: t}
	}
	return typ{k: cmp.Or(sizes[t.Kind()], wholeK), t: t}
}

// sizes are the numbers of Go that say how large they are in Java.
var sizes = map[reflect.Kind]jkind{reflect.Int8: smallK, reflect.Int16: smallK, reflect.Int32: intK, reflect.Int64: longK}

// refused keeps the reason for the place where a value is used: a field that nobody reads may be of
// any type.
func refused(t reflect.Type, why string) typ { return typ{k: refusedK, t: t, why: why} }

// listType tells ids from lists: an array of 16 bytes with a String is a UUID, whose spelling is the
// same everywhere. Go's slice does not say whether Java has a List or an array. Both are read in the
// same way by an index and by +.
func listType(t reflect.Type, spells bool) typ {
	switch {
	case t.Elem().Kind() == reflect.Uint8 && spells && t.Kind() == reflect.Array && t.Len() == 16:
		return typ{k: otherK, t: t}
	case spells, t.Name() == "RawMessage":
		return refused(t, "spells itself, and nobody knows how Java does: make it a string on both sides")
	case t.Elem().Kind() == reflect.Uint8:
		return typ{k: bytesK, t: t, elem: &typ{k: smallK}}
	}
	elem := typeOf(t.Elem())
	return typ{k: listK, t: t, elem: &elem}
}

// valueOf converts a value of Go, whose static type is t. A nil slice or map is refused: Jackson makes
// null of an absent list, and protobuf an empty one. A number of JSON may be an Integer or a Long.
func valueOf(st *run.State, v reflect.Value, t typ) (any, error) {
	if v = run.Indirect(v); !v.IsValid() {
		if t.message {
			return nil, run.Faulty("is a part of a message that is not set, for which Java has an empty one, and no null")
		}
		return nil, nil
	}
	if ours[v.Type()] { // of a list that an expression made
		return v.Interface(), nil
	}
	if t.k == anyK {
		if t = typeOf(v.Type()); t.k == longK { // JSON makes an int64 of all numbers
			t.k = wholeK
		}
	}
	if k := v.Kind(); (k == reflect.Slice || k == reflect.Map) && v.IsNil() {
		return nil, run.ErrNilList
	}
	if t.k >= listK {
		if err := st.Spend(sizeOfList); err != nil {
			return nil, err
		}
	}
	switch t.k {
	case textK:
		return v.String(), nil
	case nameK:
		return named{v.String(), v.Type()}, nil
	case boolK:
		return v.Bool(), nil
	case intK:
		return int32(v.Int()), nil
	case longK:
		return v.Int(), nil
	case smallK:
		return small(v.Int()), nil
	case wholeK:
		return wholeOf(v)
	case enumK, otherK:
		return spelled(st, v, t)
	case listK, bytesK:
		return list{of: v, elem: *t.elem}, nil
	case mapK:
		return mapping{v, *t.elem}, nil
	case objectK:
		return object{v}, nil
	}
	return nil, run.Faulty("%s", t.why)
}

// sizeOfList is the size of a list, a map or an object, over and above its elements.
const sizeOfList = 128

// wholeOf refuses a number that no long of Java holds. A number of JSON must be in its own spelling,
// since Java writes the number and not the text.
func wholeOf(v reflect.Value) (any, error) {
	switch {
	case v.CanInt():
		return whole(v.Int()), nil
	case v.CanUint():
		if v.Uint() > 1<<63-1 {
			return nil, run.Faulty("is a number above what Java's long can hold")
		}
		return whole(v.Uint()), nil
	}
	n, err := strconv.ParseInt(v.String()[:min(v.Len(), len("-9223372036854775808"))], 10, 64) // a json.Number may have ten million zeros in front
	if err != nil || strconv.FormatInt(n, 10) != v.String() {
		return nil, run.Faulty("is a number that is no int and no long")
	}
	return whole(n), nil
}

// spelled is what spells itself: an id, or an enum, whose String should be its name in Java, as that of
// stringer and protoc-gen-go is.
func spelled(st *run.State, v reflect.Value, t typ) (any, error) {
	s, err := st.TextOf(v)
	if err == nil && !utf8.ValidString(s) {
		err = errNoJavaText
	}
	if err != nil {
		return nil, err
	}
	switch {
	case t.k == enumK && !isIdentifier(s):
		return nil, run.Faulty("is the name of no constant: of a value that it does not know, Java has another name or none")
	case t.k == enumK:
		return enum{s, v.Type()}, nil
	case t.t != bigType && len(s) != len("00000000-0000-0000-0000-000000000000"):
		return nil, run.Faulty("has 16 bytes, as a UUID of Java has, and another text: make it a string on both sides")
	}
	return other(s), nil
}

var errNoJavaText = run.Faulty("is no UTF-8, which no text of Java is")

// integer returns a number as an int64.
func integer(x any) (n int64, ok bool) {
	switch x := x.(type) {
	case small:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case whole:
		return int64(x), true
	}
	return 0, false
}

// textOf returns the text of what is a String, or would be if it is not an enum.
func textOf(x any) (s string, ok bool) {
	switch x := x.(type) {
	case string:
		return x, true
	case named:
		return x.text, true
	}
	return "", false
}

// goType is what a function of the user's gets for a value, for the check at start.
func goType(t typ) reflect.Type {
	switch t.k {
	case textK, nameK, enumK, otherK:
		return reflect.TypeFor[string]()
	case boolK:
		return reflect.TypeFor[bool]()
	case intK:
		return reflect.TypeFor[int32]()
	case smallK, longK, wholeK:
		return reflect.TypeFor[int64]()
	case listK, mapK, objectK, bytesK:
		if t.t != nil {
			return t.t
		}
	}
	return reflect.TypeFor[any]()
}

// given is a value of Java as a function in Go takes it: texts and numbers without their types of
// Java, and facts as they were. A struct is passed by pointer if it can be.
func given(x any) any {
	switch x := x.(type) {
	case named:
		return x.text
	case enum:
		return x.name
	case other:
		return string(x)
	case small:
		return int64(x)
	case whole:
		return int64(x)
	case list:
		if x.of.IsValid() {
			return x.of.Interface()
		}
		all := make([]any, len(x.made))
		for i, e := range x.made {
			all[i] = given(e)
		}
		return all
	case mapping:
		return x.of.Interface()
	case object:
		if x.of.CanAddr() {
			return x.of.Addr().Interface()
		}
		return x.of.Interface()
	}
	return x
}
