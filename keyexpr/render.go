package keyexpr

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"
)

// rawText is the result of raw: text that goes into the key as it is.
type rawText string

const upperHex = "0123456789ABCDEF"

// plain tells which bytes of a value go into a key unchanged, whatever follows the hole. Bytes from 0x80 on belong to
// a rune and are judged as such.
var plain = func() (t [256]bool) {
	for c := '!'; c < 0x7f; c++ {
		t[c] = c != '%' && c != '{' && c != '}'
	}
	return t
}()

// appendEscaped appends s so that it can be read back when the literal behind it begins with delim (0 for the end of
// the key): as it is, except for %, braces, white space, control characters, bytes that are no UTF-8, and delim, which
// become %XX.
func appendEscaped(dst []byte, s string, delim rune) []byte {
	clean := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] && rune(c) != delim {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); cleanRune(r, size) && r != delim {
				i += size
				continue
			}
		}
		dst = append(dst, s[clean:i]...)
		for range size {
			dst = append(dst, '%', upperHex[s[i]>>4], upperHex[s[i]&15])
			i++
		}
		clean = i
	}
	return append(dst, s[clean:]...)
}

func cleanRune(r rune, size int) bool {
	return (r != utf8.RuneError || size > 1) && !unicode.IsSpace(r) && !unicode.IsControl(r)
}

// appendValue appends v to a key, escaped. It fails with errNil, errEmpty or another *valueError.
func appendValue(dst []byte, v any, delim rune) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, errNil
	case string:
		return appendText(dst, v, delim)
	case rawText:
		if v == "" {
			return dst, errEmpty
		}
		return append(dst, v...), nil
	}
	return appendReflect(dst, reflect.ValueOf(v), delim)
}

func appendText(dst []byte, s string, delim rune) ([]byte, error) {
	if s == "" {
		return dst, errEmpty
	}
	return appendEscaped(dst, s, delim), nil
}

// appendReflect is appendValue for a value that is not an untyped nil.
func appendReflect(dst []byte, v reflect.Value, delim rune) ([]byte, error) {
	text, err := textOf(v)
	if err != nil {
		return dst, err
	}
	return appendText(dst, text, delim)
}

// appendNumber appends digits. Only a literal that begins with a digit or a minus makes escapes necessary.
func appendNumber(dst, digits []byte, delim rune) []byte {
	if delim != '-' && (delim < '0' || delim > '9') {
		return append(dst, digits...)
	}
	return appendEscaped(dst, string(digits), delim)
}

// leaf is how values of one type get into a key quickest.
type leaf int

const (
	leafAny leaf = iota
	leafString
	leafInt
	leafUint
)

// leafOf returns the leaf for values of type t, which is nil if it is not known.
func leafOf(t reflect.Type) leaf {
	if t == nil {
		return leafAny
	}
	switch kind := t.Kind(); {
	case kind == reflect.String && t != numberType:
		return leafString
	case spells(reflect.PointerTo(t)): // has the methods of t, too
		return leafAny
	case kind >= reflect.Int && kind <= reflect.Int64:
		return leafInt
	case kind >= reflect.Uint && kind <= reflect.Uint64:
		return leafUint
	}
	return leafAny
}

func (l leaf) append(dst []byte, v reflect.Value, delim rune) ([]byte, error) {
	var digits [20]byte
	switch {
	case !v.IsValid():
		return dst, errNil
	case l == leafString:
		return appendText(dst, v.String(), delim)
	case l == leafInt:
		return appendNumber(dst, strconv.AppendInt(digits[:0], v.Int(), 10), delim), nil
	case l == leafUint:
		return appendNumber(dst, strconv.AppendUint(digits[:0], v.Uint(), 10), delim), nil
	}
	return appendReflect(dst, v, delim)
}

// textOf returns the text that stands for v in keys. It never calls methods of nil.
func textOf(v reflect.Value) (string, error) {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return "", errNil
		}
		if v.Kind() == reflect.Pointer && v.Elem().Kind() != reflect.String && spells(v.Type()) {
			break
		}
		v = v.Elem()
	}
	if fault := refusal(v.Type()); fault != "" {
		return "", &valueError{reason: fault}
	}
	if v.Kind() == reflect.String {
		if v.Type() == numberType && !wholeNumber(v.String()) {
			return "", faulty("is a number with many spellings: only whole numbers can be in a key")
		}
		return v.String(), nil
	}
	if spells(v.Type()) {
		return spelling(v.Interface())
	}
	if v.Kind() != reflect.Pointer && spells(reflect.PointerTo(v.Type())) {
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		return spelling(p.Interface())
	}
	return basicText(v)
}

func basicText(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Slice: // of bytes, or it would have been refused
		return hex.EncodeToString(v.Bytes()), nil
	case reflect.Array:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return hex.EncodeToString(b), nil
	}
	return "", faulty("is of type %v, which is no key material", v.Type())
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	stringer      = reflect.TypeFor[fmt.Stringer]()
	timeType      = reflect.TypeFor[time.Time]()
	durationType  = reflect.TypeFor[time.Duration]()
	numberType    = reflect.TypeFor[json.Number]()
)

// spells reports whether values of type t say themselves how they are written.
func spells(t reflect.Type) bool { return t.Implements(textMarshaler) || t.Implements(stringer) }

func spelling(v any) (string, error) {
	if m, ok := v.(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err != nil {
			return "", faulty("of type %T does not marshal to text", v)
		}
		return string(text), nil
	}
	return v.(fmt.Stringer).String(), nil
}

// isList reports whether values of type t are lists rather than ids that are made of bytes or that spell themselves.
func isList(t reflect.Type) bool {
	return (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) &&
		t.Elem().Kind() != reflect.Uint8 && !spells(t) && !spells(reflect.PointerTo(t))
}

// refusal says why values of type t can't be part of a key, and "" if they can. An interface can, until it is known what is in it.
func refusal(t reflect.Type) string {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
		t = t.Elem()
	}
	bare := t
	if t.Kind() == reflect.Pointer {
		bare = t.Elem()
	}
	if _, ok := reflect.PointerTo(bare).MethodByName("ProtoReflect"); ok {
		return fmt.Sprintf("is a message, %v: name one of its fields", bare)
	}
	switch {
	case bare == timeType:
		return "is a time, which has many spellings: use fmtTime(x, \"2006-01-02\")"
	case t.Kind() == reflect.Interface, spells(t), spells(reflect.PointerTo(bare)):
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
		return fmt.Sprintf("is a list, %v: a list makes keys only as the whole template, as in #{map(list, \"item:\" + .ID)}", bare)
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
