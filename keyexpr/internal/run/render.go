package run

import (
	"encoding/hex"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// How values become text. There is one spelling for each value, so that one fact makes one key: numbers in
// decimals, bytes in hex, and a value that can marshal itself as it does that. A value with several
// spellings, such as a float or a time, was refused at start, or is refused here if its type was not
// known.
//
// Escapes are those of URLs, with capital letters. They are made of what a value must not
// contain at the place where it stands, and of nothing else: ordinary ids look in the key as
// they look everywhere.

// Raw is text that goes into the key as it is. It is a type, so that a value which was marked in
// the middle of an expression still knows it at the end.
type Raw string

const upperHex = "0123456789ABCDEF"

// Escape appends values so that they can be read back from a key: as they are, except for %,
// braces, white space, control characters, bytes that are no UTF-8, and the runes that may
// follow the value, which become %XX. Which bytes are plain is decided at start, as a table. For
// nearly all values a look at them is all there is to do.
type Escape struct {
	plain  [256]bool // the bytes that are left alone; those from 0x80 on belong to a rune and are judged as such
	runes  []rune    // from 0x80 on that are escaped
	digits bool      // some of 0 to 9 or the minus are
}

// Before returns the Escape of a value behind which the literal begins with one of these runes.
// Braces are escaped since a value in front of a hash tag could open another one, and move the
// key to a slot of its choice. White space and control characters are escaped for those who read
// keys, and for protocols of lines.
func Before(runes []rune) *Escape {
	e := &Escape{}
	for c := '!'; c < 0x7f; c++ {
		// All else of ASCII that can be seen. Only characters that may follow the value are taken out
		// next: an id with a slash keeps it, unless the template has one behind it.
		e.plain[c] = c != '%' && c != '{' && c != '}'
	}
	// digits is set if a digit or a sign is special, as otherwise a number needs no look at its bytes.
	for _, r := range runes {
		if r < utf8.RuneSelf {
			e.plain[r] = false
			e.digits = e.digits || r == '-' || r >= '0' && r <= '9'
		} else {
			e.runes = append(e.runes, r)
		}
	}
	return e
}

// Append appends s escaped. Nothing is allocated for a value that needs no escape, but the room
// in the key.
func (e *Escape) Append(dst []byte, s string) []byte {
	for i := range len(s) {
		if !e.plain[s[i]] {
			return e.append(append(dst, s[:i]...), s[i:])
		}
	}
	return append(dst, s...)
}

// append is Append from the first byte on that is not plain. Long texts get room first: to
// let the buffer grow on the way would copy each of them several times.
func (e *Escape) append(dst []byte, s string) []byte {
	if len(s) > longText {
		dst = slices.Grow(dst, 3*len(s))
	}
	clean := 0
	for i := 0; i < len(s); {
		c := s[i]
		if e.plain[c] {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); e.leaves(r, size) {
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

// longText is from where on a text is charged, and gets room, as if all of it were escaped.
const longText = 1024

// leaves reports whether a rune beyond ASCII stays as it is. White space beyond ASCII is escaped
// like a blank: somebody who reads keys can't see the difference.
func (e *Escape) leaves(r rune, size int) bool {
	if slices.Contains(e.runes, r) {
		return false
	}
	return (r != utf8.RuneError || size > 1) && !unicode.IsSpace(r) && !unicode.IsControl(r)
}

// Unescape undoes any Escape. It fails for an escape that is none. It takes more than an Escape makes,
// such as %3a and %61, as it does not know which Escape was used. A caller that must know whether s is the
// one spelling of a value escapes the value again and compares, as Match does: two spellings of one key
// would be two locks.
func Unescape(s string) (string, bool) {
	text, err := url.PathUnescape(s)
	return text, err == nil
}

// Text appends a text that must not be empty; a nil Escape leaves it as it is. It is where every
// value of a key comes by, and so where an empty one is refused and a long one is charged.
func (st *State) Text(dst []byte, s string, e *Escape) ([]byte, error) {
	if s == "" {
		return dst, ErrEmpty
	}
	if err := st.Spend(len(s)); err != nil {
		return dst, err
	}
	if e == nil {
		return append(dst, s...), nil
	}
	if len(s) > longText {
		// Short texts are charged by their length alone, so that together they can grow by no more than twice the budget.
		if err := st.Spend(2 * len(s)); err != nil {
			return dst, err
		}
	}
	return e.Append(dst, s), nil
}

// Value appends the text that stands for v in keys. A text has no way around, and needs no
// reflection.
func (st *State) Value(dst []byte, v any, e *Escape) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return dst, ErrNil
	case string:
		return st.Text(dst, v, e)
	case Raw:
		// The mark is the author's: raw(x) says that x is part of the text. It is charged all the same.
		return st.Text(dst, string(v), nil)
	case Composite:
		return st.composite(dst, v, e)
	}
	s, err := st.TextOf(reflect.ValueOf(v))
	if err != nil {
		return dst, err
	}
	return st.Text(dst, s, e)
}

// Leaf appends a value of a type whose leaf is l. nil has no kind, and is refused before.
func (st *State) Leaf(dst []byte, v reflect.Value, l Leaf, e *Escape) ([]byte, error) {
	switch {
	case !v.IsValid():
		return dst, ErrNil
	case l == LeafString, l == LeafLookup:
		return st.Text(dst, v.String(), e)
	case l == LeafAny:
		return st.Value(dst, v.Interface(), e)
	}
	return appendNumber(dst, v, l, e), st.Spend(maxDigits)
}

const maxDigits = 20 // of a number of 64 bits

// appendNumber appends a whole number.
func appendNumber(dst []byte, v reflect.Value, l Leaf, e *Escape) []byte {
	if l == LeafInt {
		return e.Int(dst, v.Int())
	}
	return e.Uint(dst, v.Uint())
}

// Int appends a whole number; a nil Escape leaves it as it is.
func (e *Escape) Int(dst []byte, n int64) []byte {
	return e.number(strconv.AppendInt(dst, n, 10), len(dst))
}

// Uint is Int for a number without a sign.
func (e *Escape) Uint(dst []byte, n uint64) []byte {
	return e.number(strconv.AppendUint(dst, n, 10), len(dst))
}

// number escapes the digits from start on. Only what follows can make escapes necessary. It escapes
// only if a digit or a minus may follow, as in #{req.Seq}-x.
func (e *Escape) number(dst []byte, start int) []byte {
	if e == nil || !e.digits {
		return dst
	}
	digits := string(dst[start:])
	return e.Append(dst[:start], digits)
}

// TextOf returns the text that stands for v in keys. It never calls methods of nil. Pointers are
// followed up to the first type that can say itself how it is written: a *url.URL can, a url.URL
// can't.
func (st *State) TextOf(v reflect.Value) (string, error) {
	for depth := 0; v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer; depth++ {
		if v.IsNil() || depth == maxPointers {
			return "", ErrNil
		}
		// A text is a text whatever methods it has. A String that hides a secret as "***" would be one key
		// for all.
		if v.Kind() == reflect.Pointer && v.Elem().Kind() != reflect.String && Spells(v.Type()) {
			break
		}
		v = v.Elem()
	}
	if !v.IsValid() {
		return "", ErrNil
	}
	if s, ok := wholeFloat(v); ok && !Spells(PointerTo(v.Type())) {
		return s, nil // a static float is refused at start
	}
	if fault := Refusal(v.Type()); fault != "" {
		return "", &Fault{Reason: fault}
	}
	if v.Kind() == reflect.String {
		if v.Type() == numberType {
			if err := st.Spend(v.Len()); err != nil {
				return "", err
			}
			if !wholeNumber(v.String()) {
				return "", Faulty("is a number with many spellings: only whole numbers can be in a key")
			}
		}
		return v.String(), nil
	}
	spells := Spells(v.Type()) || v.Kind() != reflect.Pointer && Spells(reflect.PointerTo(v.Type()))
	if IsValuer(v.Type()) {
		own, err := valueOf(v)
		switch {
		case err != nil:
			return "", err
		case own == nil:
			return "", ErrNil
		case !spells && v.Kind() == reflect.Struct || !spells && v.Kind() == reflect.Pointer:
			return st.ownText(own)
		}
	}
	if !spells {
		return st.basicText(v)
	}
	p := v
	if v.Kind() != reflect.Pointer { // whose methods a pointer in the place of v has, too
		p = pointerTo(v)
	}
	s, err := st.spelling(p.Interface())
	if err == nil && (s == "" || spellsNothing(s, v)) {
		err = ErrNil
		if s == "" {
			err = ErrEmpty
		}
	}
	return s, err
}

// ownText is the text of what a database has for a value, which is one of a few types.
func (st *State) ownText(own any) (string, error) {
	if v := reflect.ValueOf(own); v.Kind() != reflect.Pointer && (v.Kind() != reflect.Struct || !IsValuer(v.Type())) {
		return st.TextOf(v)
	}
	return "", Faulty("has a value of type %T in a database, which is no key material", own)
}

// basicText charges bytes twice, as hex doubles them. Bytes are spelt in hex, as two requests of
// any bytes must differ, and base64 has letters that differ in case alone.
func (st *State) basicText(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Slice, reflect.Array: // of bytes, or it would have been refused
		if err := st.Spend(2 * v.Len()); err != nil {
			return "", err
		}
		return hex.EncodeToString(Bytes(v)), nil
	}
	return "", Faulty("is of type %v, which is no key material", v.Type())
}
