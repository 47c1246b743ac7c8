package run

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Following paths. The end of one is a reflect.Value and no interface, since an interface around a string
// is an allocation. An invalid value is nil, whatever was nil on the way: a pointer, an interface, an
// entry that is not there.

// Path is an expression that only follows fields, entries and elements. It starts at a root or,
// if Elem is set, at the element that a loop is at. It is plain data, so that a compiler can
// look at it: whether it is one header, where it starts, and whether to go on along it.
type Path struct {
	Root  int // index into the roots of the source
	Elem  bool
	Up    int // how many loops further out the element is
	Steps []Step
}

// Step goes from a value to one of its parts. Lookup, Fetch or neither is set: then it is a
// field. Which of the three it is was decided at start, by types. A step that fetches has to
// look at the value for each request.
type Step struct {
	Src      string // what came before, for messages
	Optional bool   // nil here makes the whole path nil: ?.
	Field    int    // of a struct of a known type
	Lookup   bool   // By is the name in a lookup root
	Fetch    bool   // an entry or element, or anything of a value whose type is not known at start
	By       any    // what to fetch: a string, or what the keys of a map are made of
	Method   string // of the value, without arguments
	Strict   bool   // a nil map is an error, and not a map without entries
	// Others are names that the entry may have as well. If it is under one of them, it is an error that there is none under By.
	Others []string
}

// Follow returns the value at the end of the path; an invalid one stands for nil. elems are the
// elements of the loops around, the innermost last.
func (p *Path) Follow(from *Source, elems []reflect.Value) (reflect.Value, error) {
	steps := p.Steps
	var v reflect.Value
	switch {
	case p.Elem:
		v = elems[len(elems)-1-p.Up]
	case len(steps) > 0 && steps[0].Lookup:
		s, ok, err := from.look(p)
		if err != nil {
			return v, err
		}
		// An empty header is a value here, and is refused where it would become text. A condition may well
		// ask whether it is empty. A name that is not there is nil.
		if steps = steps[1:]; ok {
			v = reflect.ValueOf(s)
		}
	default:
		at, err := from.root(p.Root)
		if err != nil {
			return reflect.Value{}, err
		}
		v = at.value
	}
	return Walk(v, steps)
}

// Walk goes steps from v, of which none is a lookup. An invalid value is nil.
func Walk(v reflect.Value, steps []Step) (reflect.Value, error) {
	for i := range steps {
		s := &steps[i]
		if s.Method != "" {
			var err error
			if v, err = receiver(v, s); err == nil && v.IsValid() {
				v, err = method(v, s)
			}
			if err != nil || !v.IsValid() {
				return v, err
			}
			continue
		}
		if v.Kind() == reflect.Pointer {
			v = v.Elem() // which is enough for nearly all
		}
		if k := v.Kind(); k == reflect.Pointer || k == reflect.Interface {
			v = Indirect(v)
		}
		if !v.IsValid() {
			if s.Optional {
				return v, nil
			}
			return v, Faulty("can't go on: %s is nil", s.Src)
		}
		if !s.Fetch {
			v = v.Field(s.Field)
			continue
		}
		if s.Strict && v.Kind() == reflect.Map && v.IsNil() {
			return reflect.Value{}, ErrNilList
		}
		of := v
		var err error
		if v, err = Entry(of, s.By); err != nil {
			return reflect.Value{}, err
		}
		if !v.IsValid() && slices.ContainsFunc(s.Others, func(name string) bool { x, _ := Entry(of, name); return x.IsValid() }) {
			return v, Faulty("has no entry %v, but one of that name in another spelling: declare its type", s.By)
		}
	}
	return v, nil
}

// maxPointers is how many pointers and interfaces may lie on top of each other. A type can point
// to itself. Sixteen are more than any request has.
const maxPointers = 16

// Indirect follows pointers and interfaces to the value, which is invalid if one of them is nil, or if
// they go round in a circle. A circle is nil to everything that follows: there is no value at its end.
func Indirect(v reflect.Value) reflect.Value {
	for range maxPointers {
		if v.Kind() != reflect.Pointer && v.Kind() != reflect.Interface {
			return v
		}
		v = v.Elem()
	}
	return reflect.Value{}
}

// Entry returns the value found in v under by, a string or an integer: an entry of a map, an element of a
// list, or a field of a struct. An entry that is not in a map is nil, an invalid value: all requests
// without it would share a key if it were "" or 0. It calls nothing, whatever the value is: a step is a
// look and not an act.
func Entry(v reflect.Value, by any) (reflect.Value, error) {
	switch v.Kind() {
	case reflect.Map:
		return mapEntry(v, by)
	case reflect.Slice, reflect.Array:
		i, err := Integer(by)
		if err != nil {
			return reflect.Value{}, err
		}
		if i < 0 {
			i += int64(v.Len())
		}
		// An error and not nil: a template that says [0] means that there is one, and all requests with no
		// line would share the key of none.
		if i < 0 || i >= int64(v.Len()) {
			return reflect.Value{}, Faulty("asks a list of %d elements for number %v", v.Len(), by)
		}
		return Tame(v.Index(int(i))), nil
	case reflect.Struct:
		return structEntry(v, by)
	}
	return reflect.Value{}, Faulty("has no fields or entries: it is of type %v", v.Type())
}

// structEntry finds a field of a struct whose type was not known at start, by its Go name. An
// alias is not looked for. It would cost a search of all fields for each request, and what was
// meant can't be checked at start.
func structEntry(v reflect.Value, by any) (reflect.Value, error) {
	name, ok := by.(string)
	if !ok {
		return reflect.Value{}, Faulty("asks a struct, %v, for a field by %T", v.Type(), by)
	}
	f, ok := v.Type().FieldByName(name)
	if !ok || !f.IsExported() {
		return reflect.Value{}, Faulty("asks %v for a field that it does not have", v.Type())
	}
	// FieldByIndex would panic on an embedded pointer that is nil. Which one that is depends on the
	// request, so that it can't be found out at start.
	field, err := v.FieldByIndexErr(f.Index)
	if err != nil {
		return reflect.Value{}, Faulty("can't go on: an embedded struct is nil")
	}
	return Tame(field), nil
}

// mapEntry has its own way for what JSON becomes, which is most maps. A number that does not fit
// the type of the keys finds nothing, rather than the entry of the number that it would wrap
// around to. A key that can't be compared would make Go panic.
func mapEntry(v reflect.Value, by any) (reflect.Value, error) {
	// MapIndex copies the entry to the heap for each look. An index of Go's own doesn't.
	if m, ok := reflect.TypeAssert[map[string]any](v); ok {
		if name, ok := by.(string); ok {
			if err, ok := m[name].(error); ok { // which an adapter has put there in place of a value that it refuses
				return reflect.Value{}, err
			}
			return Tame(reflect.ValueOf(m[name])), nil
		}
	}
	key := reflect.ValueOf(by)
	if !key.IsValid() {
		return reflect.Value{}, ErrNil
	}
	want := v.Type().Key()
	if key.Type() != want && !SameSort(key.Type(), want) {
		return reflect.Value{}, Faulty("asks a map by %v for an entry by %v", want, key.Type())
	}
	// A map by any, as YAML becomes, is read by the key as it is: converted to an interface, the key would
	// not come back.
	if key.Type() != want && want.Kind() != reflect.Interface {
		// 300 in a map by uint8 would find the entry of 44, and two tenants would share a lock.
		fitting, ok := Convert(key, want)
		if !ok { // there can be no such entry
			return reflect.Value{}, nil
		}
		key = fitting
	}
	if !key.Comparable() {
		return reflect.Value{}, Faulty("asks a map for an entry by %v, which can't be compared", key.Type())
	}
	return Tame(v.MapIndex(key)), nil
}

// SameSort reports whether values of both types are strings, or of both whole numbers, or
// otherwise interchangeable. A number is no string, though Go converts one to the other:
// string(65) is "A".
func SameSort(from, to reflect.Type) bool {
	if from.AssignableTo(to) {
		return true
	}
	whole := func(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 }
	return from.Kind() == reflect.String && to.Kind() == reflect.String || whole(from) && whole(to)
}

// Convert converts v to another type of the same sort, and reports whether it fits. It converts
// there and back. A number that comes back as itself has lost nothing, unless its sign was one
// of its bits.
func Convert(v reflect.Value, to reflect.Type) (reflect.Value, bool) {
	x := v.Convert(to)
	return x, x.Convert(v.Type()).Equal(v) && negative(x) == negative(v)
}

// An unsigned number never is, whatever its bits are.
func negative(v reflect.Value) bool { return v.CanInt() && v.Int() < 0 }

// Tame turns a json.Number that is a whole number into an integer, so that conditions can
// compare it. It looks at the length first: a number of ten million digits is read once for each
// time that a loop comes by.
func Tame(v reflect.Value) reflect.Value {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.String || v.Type() != numberType || v.Len() > maxDigits || !wholeNumber(v.String()) {
		return v
	}
	// Signed comes first, as what is calculated with must fit an int64. Only what is above stays
	// unsigned.
	if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
		return reflect.ValueOf(i)
	}
	if u, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
		return reflect.ValueOf(u)
	}
	return v
}

// wholeNumber reports whether s is a whole number in its only spelling. JSON knows 1, 1.0, 1e0
// and 10e-1 for one number. Two of them in two requests would make two keys, and so all but the
// first are refused.
func wholeNumber(s string) bool {
	if s == "0" {
		return true
	}
	digits := strings.TrimPrefix(s, "-")
	return digits != "" && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
}

// Integer returns a whole number as an int64. A uint64 above it is refused rather than wrapped
// around: its wrapped form is some other request's number.
func Integer(x any) (int64, error) {
	v := Indirect(reflect.ValueOf(x))
	switch {
	case !v.IsValid():
		return 0, Faulty("has nil where a whole number is wanted")
	case v.CanInt():
		return v.Int(), nil
	case !v.CanUint():
		return 0, Faulty("has a value of type %v where a whole number is wanted", v.Type())
	case v.Uint() > 1<<63-1:
		return 0, Faulty("has a number that is too large to calculate with")
	}
	return int64(v.Uint()), nil
}

// Aliases returns the Go names of the fields of struct t that name may stand for: by JSON, by
// protobuf, or in another case. All that fit are returned, for the caller to refuse more than
// one. To take the first would make the order of fields in a struct part of a key.
func Aliases(t reflect.Type, name string) (fields []string) {
	for _, f := range reflect.VisibleFields(t) {
		if f.IsExported() && f.Tag.Get("expr") == "" && hasAlias(f, name) && !slices.Contains(fields, f.Name) {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

// hasAlias compares JSON and protobuf names as they are, and Go names in any spelling. A name
// that fits two fields is an error of the caller's, never the first of them. A field with an
// expr tag has told the engine what it is called.
func hasAlias(f reflect.StructField, name string) bool {
	if json, _, _ := strings.Cut(f.Tag.Get("json"), ","); json == name && json != "-" {
		return true
	}
	for option := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if option == "name="+name || option == "json="+name {
			return true
		}
	}
	return Fold(f.Name) == Fold(name)
}

// Fold makes the usual spellings of a name alike: OrderID, orderId, order_id.
func Fold(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }

// Getter returns the method of t that reads a field which can only be reached so, as in opaque
// protobuf messages. It is found by the name that protoc makes of a field, GetOrderId or
// GetOrderID, as generators differ.
func Getter(t reflect.Type, name string) (method string, ok bool) {
	for m := range t.Methods() {
		if Fold(m.Name) == "get"+Fold(name) && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			return m.Name, true
		}
	}
	return "", false
}
