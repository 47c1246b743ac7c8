package keyexpr

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	digest "hash"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The digest of a value. Each value begins with a letter for its kind, so that it never has the bytes of one of another
// kind. Kinds with several parts or bytes say their number first:
//
//	value  = "n"                              nil, what points to nothing, and what spells nothing
//	       | "s" length bytes                 text, and what spells itself, as a hole would have it
//	       | "i" length digits                whole numbers, one spelling for all their types
//	       | "f" 8 bytes                      floats, by their bits; -0 is 0, and all that are no number are one
//	       | "t" | "F"                        true, false
//	       | "b" length bytes                 bytes
//	       | "l" count value…                 lists
//	       | "m" count (value value)…         maps, in the order of their keys' bytes
//	       | "r" length type (value value)…   structs: the name of the type, and each exported or embedded field by its Go name;
//	                                          messages by their getters
//
// Lengths and counts are written as Go's binary.AppendUvarint does. TestHashEncoding holds the bytes.

// wantHashable refuses types that have nothing to hash: they would all have one hash.
func (c *compilation) wantHashable(n ast.Node, t typ) {
	if t.null {
		c.fail(n, "nil has nothing to hash")
	}
	if t.t != nil {
		if why := unhashable(t.t, map[reflect.Type]bool{}); why != "" {
			c.fail(n, "%s %s", c.source(n), why)
		}
	}
}

// unhashable says why values of type t can't be hashed, for what is in them as well. A type can hold itself, in a pointer or a
// list. It is looked at once, and taken for hashable on the way back.
func unhashable(t reflect.Type, seen map[reflect.Type]bool) string {
	t = deref(t)
	if why := notHashed(t); why != "" || seen[t] || spellsItself(t) {
		return why
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map:
		return cmp.Or(unhashable(t.Key(), seen), unhashable(t.Elem(), seen))
	case reflect.Slice, reflect.Array:
		return unhashable(t.Elem(), seen)
	case reflect.Struct:
		for _, f := range hashed(t) {
			if why := unhashable(f.Type, seen); why != "" {
				return fmt.Sprintf("has a field %s that %s", f.Name, why)
			}
		}
	}
	return ""
}

// notHashed says why a value of type t can't be hashed, whatever is in it.
func notHashed(t reflect.Type) string {
	k := t.Kind()
	never := []reflect.Kind{reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128}
	switch {
	case slices.Contains(never, k), k == reflect.Slice && t.Name() == "RawMessage", run.IsTime(t), t == bigFloatType:
		return run.Refusal(t)
	case k == reflect.Struct && !spellsItself(t) && len(hashed(t)) == 0 && len(getters(t)) == 0:
		return fmt.Sprintf("is a struct without exported fields, %v: there is nothing to hash", t)
	}
	return ""
}

// hashed returns the fields of struct t that are hashed: those that are exported, and what is embedded, which lends it fields or a text.
// Tags don't matter. A field that JSON leaves out tells two requests apart as well as any other.
func hashed(t reflect.Type) (fields []reflect.StructField) {
	for f := range t.Fields() {
		if f.IsExported() || f.Anonymous {
			fields = append(fields, f)
		}
	}
	return fields
}

// getters returns the methods that read a protobuf message without exported fields, in order: those that return its
// fields, and those that report which of them are set. Getters return a default for a field that is not set, which is
// why Has counts as well: a name that is empty and one that was not sent are two requests.
func getters(t reflect.Type) (methods []string) {
	if !run.IsMessage(t) {
		return nil
	}
	for m := range run.PointerTo(t).Methods() {
		reads := strings.HasPrefix(m.Name, "Get") || strings.HasPrefix(m.Name, "Has")
		if reads && m.Name != "GetUnknown" && m.Type.NumIn() == 1 && m.Type.NumOut() == 1 {
			methods = append(methods, m.Name)
		}
	}
	return methods
}

// spellsItself reports whether a hole would take values of type t as they spell themselves. Messages do, for people only. A text
// is one whatever it can do, so that an enum of strings has the hash of its text.
func spellsItself(t reflect.Type) bool {
	k := t.Kind()
	return k != reflect.String && k != reflect.Interface && !run.IsMessage(t) && (run.Spells(t) || run.Spells(run.PointerTo(t)))
}

// hash digests a value that is too long, too private or too composite for a key. Its result is 32 hex digits. Two
// values with one digest of 16 bytes take 2^64 tries to find, for somebody who looks for them.
func hash(st *run.State, args []any) (any, error) {
	if args[0] == nil {
		return nil, run.ErrNil
	}
	if isEmpty(args[0]) {
		return nil, run.ErrEmpty
	}
	e := encoder{st: st, sum: sha256.New()}
	if err := e.value(run.Indirect(reflect.ValueOf(args[0])), 0); err != nil {
		return nil, err
	}
	e.sum.Write(e.buf)
	return hex.EncodeToString(e.sum.Sum(nil)[:16]), nil
}

// encoder writes values in the only way that there is to write them.
type encoder struct {
	st  *run.State
	sum digest.Hash // takes what is in buf when it is full; nil for an entry of a map, whose bytes are sorted
	buf []byte
}

const fullBuffer = 4096

func (e *encoder) count(kind byte, n int) {
	e.buf = binary.AppendUvarint(append(e.buf, kind), uint64(n))
}

// text takes bytes as they are. JSON replaces what is no UTF-8, so that "\xff" and "\xfe" would have one hash.
func (e *encoder) text(kind byte, s string) error {
	e.count(kind, len(s))
	return e.raw(s)
}

func (e *encoder) raw(s string) error {
	if err := e.st.Spend(len(s) + 10); err != nil {
		return err
	}
	for len(s) > 0 {
		n := min(len(s), fullBuffer)
		e.buf, s = append(e.buf, s[:n]...), s[n:]
		if e.sum != nil && len(e.buf) >= fullBuffer {
			e.sum.Write(e.buf)
			e.buf = e.buf[:0]
		}
	}
	return nil
}

// value charges before it looks, and counts the depth with each pointer, so that a value which points to itself ends as an error.
// A typed nil pointer and an untyped nil are one: which of them an interface holds is nothing that a request says.
func (e *encoder) value(v reflect.Value, depth int) error {
	if depth > maxDepth {
		return run.Faulty("goes too deep, or in a circle")
	}
	if err := cmp.Or(e.st.Step(4), e.st.Spend(10)); err != nil {
		return err
	}
	v = run.Tame(v)
	points := v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer
	if !v.IsValid() || points && v.IsNil() || v.Kind() == reflect.Struct && v.CanInterface() && run.Nothing(v) {
		e.buf = append(e.buf, 'n')
		return nil
	}
	if v.Kind() == reflect.Interface || points && (!v.CanInterface() || !spellsItself(v.Type().Elem())) {
		return e.value(v.Elem(), depth+1)
	}
	if why := notHashed(v.Type()); why != "" {
		return &run.Fault{Reason: why}
	}
	if points || v.CanInterface() && spellsItself(v.Type()) {
		s, err := e.st.TextOf(v)
		if depth > 0 && (errors.Is(err, run.ErrNil) || errors.Is(err, run.ErrEmpty)) {
			e.buf, err = append(e.buf, 'n'), nil
		} else if err == nil {
			err = e.text('s', s)
		}
		return err
	}
	return e.kind(v, depth+1)
}

// kind writes a value that does not spell itself. Whole numbers of all types are one kind: an id that becomes an int64 keeps its
// locks. A float is another, so that 7 and 7.0 differ as they do in Go. It is written by its bits, but for the two zeros, which
// are equal, and for what is no number, which has many bit patterns.
func (e *encoder) kind(v reflect.Value, depth int) error {
	switch k := v.Kind(); k {
	case reflect.String:
		if v.Type() == numberType { // of JSON, and not whole in its only spelling
			return run.Faulty("has a number with many spellings")
		}
		return e.text('s', v.String())
	case reflect.Bool:
		e.buf = append(e.buf, map[bool]byte{true: 't', false: 'F'}[v.Bool()])
	case reflect.Float32, reflect.Float64:
		f := v.Float() + 0                              // -0 is 0
		if f == math.Trunc(f) && math.Abs(f) <= 1<<53 { // as JSON has whole numbers
			return e.text('i', fmt.Sprint(int64(f)))
		}
		if f != f {
			f = math.NaN()
		}
		e.buf = binary.BigEndian.AppendUint64(append(e.buf, 'f'), math.Float64bits(f))
	case reflect.Slice, reflect.Array:
		return e.list(v, depth)
	case reflect.Map:
		return e.mapOf(v, depth)
	case reflect.Struct:
		return e.structOf(v, depth)
	default:
		if v.CanInt() {
			return e.text('i', strconv.FormatInt(v.Int(), 10))
		}
		return e.text('i', strconv.FormatUint(v.Uint(), 10))
	}
	return nil
}

// list writes arrays as slices, and []byte by itself: "a" as text and as bytes are two values.
func (e *encoder) list(v reflect.Value, depth int) error {
	n := v.Len()
	if v.Type().Elem().Kind() == reflect.Uint8 {
		if err := e.st.Spend(2 * n); err != nil {
			return err
		}
		return e.text('b', string(run.Bytes(v)))
	}
	if err := e.st.List(n); err != nil {
		return err
	}
	e.count('l', n)
	for i := range n {
		if err := e.value(v.Index(i), depth); err != nil {
			return err
		}
	}
	return nil
}

// mapOf charges for all entries before the first is written: to find out that a map of a million is too much must not take a
// million steps. The order of a map changes from run to run. No key's bytes begin with another key's, so that entries sort as
// their keys do, and there need be no order between values of different types.
func (e *encoder) mapOf(v reflect.Value, depth int) error {
	n := v.Len()
	if err := cmp.Or(e.st.List(4*n), e.st.Sort(n)); err != nil {
		return err
	}
	entries := make([]string, 0, n)
	for it := v.MapRange(); it.Next(); {
		entry := encoder{st: e.st}
		if err := cmp.Or(entry.value(it.Key(), depth), entry.value(it.Value(), depth)); err != nil {
			return err
		}
		entries = append(entries, string(entry.buf))
	}
	slices.Sort(entries)
	e.count('m', n)
	for _, entry := range entries {
		if err := e.raw(entry); err != nil {
			return err
		}
	}
	return nil
}

// structOf writes the name of the type in front, so that two structs with the same fields differ; and fields by name and not by
// place, so that moving one in the source keeps the locks. A message without fields is read through its pointer, since a copy
// would have a mutex that is nobody's.
func (e *encoder) structOf(v reflect.Value, depth int) error {
	if err := e.text('r', v.Type().String()); err != nil {
		return err
	}
	fields := hashed(v.Type())
	for _, f := range fields {
		if err := cmp.Or(e.text('s', f.Name), e.value(v.FieldByIndex(f.Index), depth)); err != nil {
			return err
		}
	}
	if len(fields) > 0 {
		return nil
	}
	if !v.CanAddr() || !run.IsMessage(v.Type()) {
		return run.Faulty("has a value of type %v whose fields can't be read", v.Type())
	}
	for _, name := range getters(v.Type()) {
		x, err := run.Walk(v.Addr(), []run.Step{{Method: name}})
		if err = cmp.Or(err, e.text('s', name)); err != nil {
			return err
		}
		if err := e.value(x, depth); err != nil {
			return err
		}
	}
	return nil
}

// maxDepth is how deep values may lie in each other. Requests are flatter. A deeper one was made to be.
const maxDepth = 64
