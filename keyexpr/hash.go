package keyexpr

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What hash digests. Everything begins with a letter for its kind, so that no value has the
// bytes of one of another kind, and says its length before what can have several:
//
//	value  = "n"                              nil, and what points to nothing
//	       | "s" length bytes                 text, and what spells itself, as a hole would have it
//	       | "i" length digits                whole numbers, one spelling for all their types
//	       | "f" 8 bytes                      floats, by their bits; -0 is 0, and all that are no number are one
//	       | "t" | "F"                        true, false
//	       | "b" length bytes                 bytes
//	       | "l" count value…                 lists
//	       | "m" count (value value)…         maps, in the order of their keys' bytes
//	       | "r" length type (value value)…   structs: the name of the type, and each exported field by its Go name;
//	                                          messages by their getters
//
// Lengths and counts are written as Go's binary.AppendUvarint does. TestHashEncoding holds the bytes.

// checkHash refuses types that have nothing to hash: they would all have one hash.
func checkHash(c *compilation, x *ast.CallNode, args []typ) typ {
	if args[0].null {
		c.fail(x.Arguments[0], "hash: nil has nothing to hash")
	}
	if args[0].t != nil {
		if why := unhashable(args[0].t, map[reflect.Type]bool{}); why != "" {
			c.fail(x.Arguments[0], "hash: the argument %s", why)
		}
	}
	return typ{t: stringType}
}

// unhashable says why values of type t have nothing to hash, and "" if they have. A type can
// hold itself, in a pointer or a list. It is looked at once, and taken for hashable on the way
// back.
func unhashable(t reflect.Type, seen map[reflect.Type]bool) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if seen[t] {
		return ""
	}
	seen[t] = true
	if why := run.Refusal(t); t.Kind() == reflect.Func || t.Kind() == reflect.Chan || t.Kind() == reflect.UnsafePointer || t == bigFloatType || isTimeRefusal(t) {
		return why
	}
	if spellsItself(t) {
		return ""
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return unhashable(t.Elem(), seen)
	case reflect.Map:
		if why := unhashable(t.Key(), seen); why != "" {
			return why
		}
		return unhashable(t.Elem(), seen)
	case reflect.Struct:
		l := layoutOf(t)
		if len(l.fields) == 0 && len(l.methods) == 0 {
			return nothingToHash(t)
		}
		for _, f := range l.fields {
			if why := unhashable(f.Type, seen); why != "" {
				return fmt.Sprintf("has a field %s that %s", f.Name, why)
			}
		}
	}
	return ""
}

// All values of such a type would have one hash, and all requests one lock.
func nothingToHash(t reflect.Type) string {
	return fmt.Sprintf("is a struct without exported fields, %v: there is nothing to hash", t)
}

// layout is what of a struct is hashed: its fields, or the methods that read them. Which of the
// two it is depends on the type alone.
type layout struct {
	fields  []reflect.StructField
	methods []string
}

func layoutOf(t reflect.Type) *layout {
	l := &layout{fields: hashed(t)}
	if len(l.fields) == 0 {
		l.methods = getters(t)
	}
	return l
}

// hashed returns the fields of struct t that are hashed: those that are exported, and embedded
// structs, whose fields may be. Tags don't matter. A field that JSON leaves out tells two
// requests apart as well as any other: to hash what JSON says would make one lock of them.
func hashed(t reflect.Type) (fields []reflect.StructField) {
	for f := range t.Fields() {
		if f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct {
			fields = append(fields, f)
		}
	}
	return fields
}

func isTimeRefusal(t reflect.Type) bool { return t.Kind() == reflect.Struct && run.IsTime(t) }

// spellsItself reports whether a hole would take values of type t as they spell themselves.
// Messages do, for people only. A text is one whatever it can do, so that an enum of strings has
// the hash of its text.
func spellsItself(t reflect.Type) bool {
	if _, message := run.PointerTo(t).MethodByName("ProtoReflect"); message && t.Kind() == reflect.Struct {
		return false
	}
	return t.Kind() != reflect.String && t.Kind() != reflect.Interface && (run.Spells(t) || run.Spells(run.PointerTo(t)))
}

// getters returns the methods that read a protobuf message without exported fields, in order:
// what its fields are, and which of them are set. It is empty for any other type. Messages of
// the opaque API have no exported fields. Their getters return a default for what is not set,
// which is why Has is asked as well: a name that is empty and one that was not sent are two
// requests.
func getters(t reflect.Type) (methods []string) {
	p := run.PointerTo(t)
	if t.Kind() != reflect.Struct {
		return nil
	}
	if _, ok := p.MethodByName("ProtoReflect"); !ok {
		return nil
	}
	for m := range p.Methods() {
		reads := strings.HasPrefix(m.Name, "Get") || strings.HasPrefix(m.Name, "Has")
		if reads && m.Name != "GetUnknown" && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			methods = append(methods, m.Name)
		}
	}
	return methods
}

// hash digests what is too long, too private or too composite for a key. Its result is 32 hex
// digits. Two values with one digest of 16 bytes take 2^64 tries to find, for somebody who looks
// for them.
func hash(st *run.State, args []any) (any, error) {
	if args[0] == nil {
		return nil, run.ErrNil
	}
	if isEmpty(args[0]) {
		return nil, run.ErrEmpty
	}
	e := encoder{st: st}
	if err := e.value(reflect.ValueOf(args[0]), 0); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(e.buf)
	return hex.EncodeToString(sum[:hashLen/2]), nil
}

const hashLen = 32

// encoder writes values in the only way that there is to write them. It is a buffer and not a
// running digest, as maps sort the bytes of their entries. The budget bounds it.
type encoder struct {
	st  *run.State
	buf []byte
}

func (e *encoder) count(kind byte, n int) {
	e.buf = binary.AppendUvarint(append(e.buf, kind), uint64(n))
}

// The bytes are taken as they are. JSON replaces what is no UTF-8, so that "\xff" and "\xfe" had
// one hash.
func (e *encoder) text(kind byte, s string) error {
	if err := e.st.Spend(2*len(s) + 10); err != nil { // append may copy what is there
		return err
	}
	e.count(kind, len(s))
	e.buf = append(e.buf, s...)
	return nil
}

// value charges before it looks, and counts the depth with each pointer, so that a value which
// points to itself ends as an error. A typed nil pointer and an untyped nil are one: which of
// them an interface holds is nothing that a request says.
func (e *encoder) value(v reflect.Value, depth int) error {
	if depth > maxDepth {
		return run.Faulty("goes too deep, or in a circle")
	}
	if err := e.st.Step(4); err != nil {
		return err
	}
	if err := e.st.Spend(10); err != nil {
		return err
	}
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer && !spellsItself(v.Type().Elem()) {
		if v.IsNil() {
			break
		}
		if v = v.Elem(); v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			return e.value(v, depth+1)
		}
	}
	if !v.IsValid() || (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil() {
		e.buf = append(e.buf, 'n')
		return nil
	}
	if t := v.Type(); run.IsTime(t) {
		return &run.Fault{Reason: run.Refusal(t)}
	}
	if t := v.Type(); v.Kind() == reflect.Pointer || spellsItself(t) {
		s, err := e.st.TextOf(v)
		if err != nil {
			return err
		}
		return e.text('s', s)
	}
	return e.kind(v, depth)
}

// kind writes a value that does not spell itself. Whole numbers of all types are one kind: an id
// that becomes an int64 keeps its locks. A float is another, so that 7 and 7.0 differ as they do
// in Go. A bool and a text have kinds of their own: true and "true" are two facts, and JSON of
// no declared type has both.
func (e *encoder) kind(v reflect.Value, depth int) error {
	switch k := v.Kind(); k {
	case reflect.String:
		return e.text('s', v.String())
	case reflect.Bool:
		if v.Bool() {
			e.buf = append(e.buf, 't')
		} else {
			e.buf = append(e.buf, 'F')
		}
		return nil
	// A float has no key of its own, as it has many spellings. Its bits are one, but for the two zeros,
	// which are equal, and for what is no number, which has many bit patterns.
	case reflect.Float32, reflect.Float64:
		f := v.Float()
		switch {
		case f == 0:
			f = 0 // without a sign
		case f != f:
			f = math.NaN()
		}
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, 'f'), math.Float64bits(f))
		return nil
	case reflect.Slice, reflect.Array:
		return e.list(v, depth)
	case reflect.Map:
		return e.mapOf(v, depth)
	case reflect.Struct:
		return e.structOf(v, depth)
	}
	if v.CanInt() || v.CanUint() {
		return e.text('i', fmt.Sprint(basic(v.Interface())))
	}
	return run.Faulty("has a value of type %v, which can't be hashed", v.Type())
}

// list writes arrays as slices, and []byte by itself: "a" as text and as bytes are two values. A
// []byte is not gone through by element, which would be a list of numbers and twenty times as
// long.
func (e *encoder) list(v reflect.Value, depth int) error {
	n := v.Len()
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if err := e.st.Spend(3*n + 10); err != nil {
			return err
		}
		e.count('b', n)
		e.buf = append(e.buf, run.Bytes(v)...)
		return nil
	}
	if err := e.st.List(n); err != nil {
		return err
	}
	e.count('l', n)
	for i := range n {
		if err := e.value(v.Index(i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// mapOf charges for all entries before the first is written: to find out that a map of a million
// is too much must not take a million steps. The order of a map changes from run to run. Sorting
// bytes needs no order between values of different types.
func (e *encoder) mapOf(v reflect.Value, depth int) error {
	n := v.Len()
	if err := e.st.List(4 * n); err != nil {
		return err
	}
	if err := e.st.Sort(n); err != nil {
		return err
	}
	entries := make([][]byte, 0, n)
	for it := v.MapRange(); it.Next(); {
		entry := encoder{st: e.st}
		if err := entry.value(it.Key(), depth+1); err != nil {
			return err
		}
		if err := entry.value(it.Value(), depth+1); err != nil {
			return err
		}
		entries = append(entries, entry.buf)
	}
	// No key's bytes begin with another key's, so that entries sort as their keys do.
	slices.SortFunc(entries, bytes.Compare)
	e.count('m', n)
	for _, entry := range entries {
		if err := e.st.Spend(len(entry)); err != nil {
			return err
		}
		e.buf = append(e.buf, entry...)
	}
	return nil
}

// structOf writes the name of the type in front, so that two structs with the same fields
// differ; and fields by name and not by place, so that moving one in the source keeps the locks.
// Without the name, a Refund{ID: "7"} would have the hash of an Order{ID: "7"} in one field of
// type any.
func (e *encoder) structOf(v reflect.Value, depth int) error {
	t := v.Type()
	l := layoutOf(t)
	if len(l.fields) == 0 && len(l.methods) == 0 {
		return &run.Fault{Reason: nothingToHash(t)}
	}
	if err := e.text('r', t.String()); err != nil {
		return err
	}
	if len(l.methods) > 0 {
		return e.message(v, l.methods, depth)
	}
	for _, f := range l.fields {
		if err := e.text('s', f.Name); err != nil {
			return err
		}
		if err := e.value(v.FieldByIndex(f.Index), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// message writes a protobuf message, which is only ever read through a pointer. The message is
// called by its pointer, since all of its methods are on that, and those of a copy would lock a
// mutex that is nobody's.
func (e *encoder) message(v reflect.Value, methods []string, depth int) error {
	if !v.CanAddr() {
		return run.Faulty("has a message, %v, that is no pointer", v.Type())
	}
	for _, name := range methods {
		if err := e.text('s', name); err != nil {
			return err
		}
		x, err := run.Walk(v.Addr(), []run.Step{{Method: name}})
		if err != nil {
			return err
		}
		if err := e.value(x, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is how deep values may lie in each other. Requests are flatter. What is deeper was made to be.
const maxDepth = 64
