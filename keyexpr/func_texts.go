package keyexpr

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Functions on texts. Positions and pieces count bytes, as in Go and in the engine; len counts
// runes, as the engine's does. Nothing here depends on a locale: lower of an I is an i, in
// Turkey as well.

// textFunc is a function from text to text, whose result is at most four times as long. That the
// result has a bound in terms of the argument is what lets it be charged before it is made.
func textFunc(name string, f func(string) string) hostFunc {
	check := func(args []reflect.Type) (reflect.Type, error) {
		if len(args) > 0 {
			if k := pointee(args[0]).Kind(); k != reflect.String && k != reflect.Interface {
				return nil, fmt.Errorf("the first argument is of type %v, and should be a string", args[0])
			}
		}
		return takes(1, 1, stringType)(args)
	}
	call := func(st *run.State, args []any) (any, error) {
		s, err := text(args[0])
		if err == nil {
			err = st.Spend(len(s))
		}
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
	return hostFunc{name: name, check: check, call: call, text: f}
}

// inCase is a mapping of letters that leaves bytes alone which are no UTF-8. Go's mapping makes
// U+FFFD of each of them, so that "\xff" and "\xfe", two ids of somebody's, would share a key. Such
// a text is rare, and goes by rune; all others take Go's way, which does ASCII at once. low to high
// are the letters of ASCII that it changes. Most ids that are lowered are lower already.
func inCase(low, high byte, all func(string) string, one func(rune) rune) func(string) string {
	return func(s string) string {
		if run.NoneOf(s, low, high) {
			return s
		}
		if utf8.ValidString(s) {
			return all(s)
		}
		var b strings.Builder
		for i := 0; i < len(s); {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError {
				b.WriteString(s[i : i+size])
			} else {
				b.WriteRune(one(r))
			}
			i += size
		}
		return b.String()
	}
}

// text returns a string argument. The error gives the type and not the value, as all errors do
// that may reach a client.
func text(x any) (string, error) {
	if s, ok := x.(string); ok {
		return s, nil
	}
	v := run.Indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return "", run.ErrNoText
	}
	if v.Kind() != reflect.String {
		return "", run.Faulty("has a value of type %v where a string is wanted: use string(x)", v.Type())
	}
	return v.String(), nil
}

// texts returns several string arguments, which are about to be read. All of them are charged
// before the first is looked at.
func texts(st *run.State, args []any) ([]string, error) {
	list := make([]string, len(args))
	for i, x := range args {
		s, err := text(x)
		if err == nil {
			err = st.Spend(len(s))
		}
		if err != nil {
			return nil, err
		}
		list[i] = s
	}
	return list, nil
}

// basic converts a value of a named basic type, or a pointer to one, to its basic type. nil
// stays nil. What comes most is looked at first, since each comparison asks for it twice.
func basic(x any) any {
	switch x.(type) {
	case string, int, int64, bool:
		return x
	}
	v := run.Indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return nil
	}
	if t := basicType(v.Type()); t != v.Type() {
		v = v.Convert(t)
	}
	return v.Interface()
}

// basicOf is basic for what is done many times: the copy of a struct behind a pointer is
// charged.
func basicOf(st *run.State, x any) (any, error) {
	if t := reflect.TypeOf(x); t == nil || t.Kind() != reflect.Pointer {
		return basic(x), nil
	}
	x, err := st.Plain(run.Indirect(reflect.ValueOf(x)))
	return basic(x), err
}

func textCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, wanted(len(args), 1, 1)
	}
	if why := run.Refusal(args[0]); why != "" {
		return nil, fmt.Errorf("what string(x) gets %s", why)
	}
	return stringType, nil
}

// toString spells a value as a hole would. There is no text for nil. It is what stands in a
// hole, without escapes: string(x) + "" and #{x} must not spell one value in two ways.
func toString(st *run.State, args []any) (any, error) {
	v := reflect.ValueOf(args[0])
	if !v.IsValid() {
		return nil, run.ErrNil
	}
	s, err := st.TextOf(v)
	if err == nil {
		err = st.Spend(len(s))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// split charges the list that it makes, as the pieces share the memory of the text. The engine's
// limit is Go's: a negative one is none.
func split(st *run.State, args []any) (any, error) {
	list, err := texts(st, args[:2])
	if err != nil {
		return nil, err
	}
	most := int64(-1)
	if len(args) == 3 {
		if most, err = run.Integer(args[2]); err != nil {
			return nil, err
		}
	}
	// All separators are counted, also where a limit makes fewer pieces: that takes one pass, and is an
	// upper bound.
	s, sep := list[0], list[1]
	if err := st.List(strings.Count(s, sep) + 1); err != nil {
		return nil, err
	}
	return strings.SplitN(s, sep, int(most)), nil
}

// The engine's join wants a []string, and a map of named texts makes none.
func joinCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) < 1 || len(args) > 2 {
		return nil, wanted(len(args), 1, 2)
	}
	if k := args[0].Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Interface {
		return nil, fmt.Errorf("can't join %v", args[0])
	}
	return stringType, nil
}

// join puts texts together as they are. In a key, rewrite.go does that, and keeps them apart. This
// is the join of conditions and of what is compared. Without a separator it puts texts together
// as they are, which a key must not.
func join(st *run.State, args []any) (any, error) {
	v, err := listOf(reflect.ValueOf(args[0]))
	if err != nil {
		return nil, err
	}
	sep := ""
	if len(args) == 2 {
		if sep, err = text(args[1]); err != nil {
			return nil, err
		}
	}
	if err := st.Step(v.Len()); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := range v.Len() {
		s, err := text(v.Index(i).Interface())
		if err != nil {
			return nil, err
		}
		if err := st.Spend(len(s) + len(sep)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// listOf returns a list argument. A nil list is an error here and an empty one elsewhere: what
// was not sent and what was sent empty are two things.
func listOf(v reflect.Value) (reflect.Value, error) {
	v = run.Indirect(v)
	if !v.IsValid() {
		return v, run.Faulty("has nil where a list is wanted")
	}
	if v.Kind() != reflect.Slice && v.Kind() != reflect.Array {
		return v, run.Faulty("has a value of type %v where a list is wanted", v.Type())
	}
	return v, nil
}

// replace knows the length of its result before it makes it. An empty old text matches between
// all runes, as in Go; the count knows that.
func replace(st *run.State, args []any) (any, error) {
	list, err := texts(st, args)
	if err != nil {
		return nil, err
	}
	s, old, by := list[0], list[1], list[2]
	if err := st.Spend(len(s) + strings.Count(s, old)*len(by)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, by), nil
}

// The type of the elements is forgotten, as basic makes others of them.
func uniqCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("uniq takes 1 argument")
	}
	if k := args[0].Kind(); k != reflect.Slice && k != reflect.Array && k != reflect.Interface {
		return nil, fmt.Errorf("uniq takes a list, not %v", args[0])
	}
	return reflect.TypeFor[[]any](), nil
}

// uniq keeps the first of equal texts, numbers and the like. The engine's compares each with
// each, which takes for ever with what a hostile request sends. A list of lists can't be
// compared by a map, and is refused: to compare each with each is what was wrong with the
// engine's.
func uniq(st *run.State, args []any) (any, error) {
	v, err := listOf(reflect.ValueOf(args[0]))
	if err != nil {
		return nil, err
	}
	if err := st.List(4 * v.Len()); err != nil { // a map takes that much
		return nil, err
	}
	seen := make(map[any]bool, v.Len())
	list := make([]any, 0, v.Len())
	for i := range v.Len() {
		x, err := st.Plain(run.Tame(v.Index(i))) // 7 of JSON is a number, and no text
		if err == nil {
			x, err = basicOf(st, x)
		}
		if err != nil {
			return nil, err
		}
		// Asked of the value and not of its type: an interface within a struct may hold a list, on which a
		// map of Go panics.
		if !reflect.ValueOf(&x).Elem().Comparable() {
			return nil, run.Faulty("has elements that can't be compared")
		}
		// A text is read to find its place in the map, and once more where two have one.
		if s, ok := x.(string); ok {
			if err := st.Spend(len(s)); err != nil {
				return nil, err
			}
		}
		if same := identity(x); !seen[same] {
			seen[same] = true
			list = append(list, x)
		}
	}
	return slices.Clip(list), nil
}

// matches compiles a pattern, which is written out. The pattern is compiled once, at start. nil
// matches nothing, as in the engine: a header that is not there is no text.
func (c *compilation) matches(n *ast.BinaryNode, x *code) (*code, error) {
	pattern := n.Right.(*ast.StringNode).Value
	// A few bytes of pattern may be thousands of instructions, as in (\pL{100}){9}, and each of them
	// is looked at for each byte of a subject. So its size is asked for before anything else.
	size, err := programSize(pattern)
	if err != nil {
		return nil, c.at(n.Right, "%v", err)
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, c.at(n.Right, "%v", err)
	}
	return testCode(1+x.cost, func(st *run.State) (bool, error) {
		v, err := x.value(st)
		if err != nil || runtime.IsNil(v) {
			return false, err
		}
		s, err := text(v)
		if err == nil {
			err = chargeMatch(st, size, len(s))
		}
		return err == nil && re.MatchString(s), err
	}), nil
}

var errLargePattern = errors.New("the pattern is too large")

// maxSubject is the longest text that is matched. Nobody checks the format of a longer one; what
// is in a header has a few bytes.
const maxSubject = 64 << 10

// chargeMatch charges the matching of a pattern with size instructions. It takes a few
// nanoseconds for each instruction and byte at worst, of which a step may take some. It is Go's
// own bound, with some room: the machine that backtracks, and the one that does not, look at
// each pair of an instruction and a byte at most once.
func chargeMatch(st *run.State, size, length int) error {
	if length > maxSubject {
		return run.Faulty("matches a text of more than %d bytes", maxSubject)
	}
	return st.Step(1 + size*(length+8)/16) // to set up for an empty text costs something, too
}

// textTests are the operators and functions that compare texts. They are the same whether they
// are written as operators or as functions.
var textTests = map[string]func(s, part string) bool{
	"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "hasPrefix": strings.HasPrefix, "hasSuffix": strings.HasSuffix,
}

// finder is a function that finds one text in another: the byte where it begins, or -1. Go's search
// takes the sum of both lengths at worst, and so the charge for reading them is enough.
func finder(find func(s, part string) int) callFunc {
	return func(st *run.State, args []any) (any, error) {
		list, err := texts(st, args)
		if err != nil {
			return nil, err
		}
		return find(list[0], list[1]), nil
	}
}

// trimmed bounds the product: each character of the one text is looked for in the other. An
// ASCII set is a bitmap to Go, and the product says too much. It is meant for the others, where
// each rune is searched for.
func trimmed(space func(s string) string, cut func(s, part string) string) callFunc {
	return func(st *run.State, args []any) (any, error) {
		list, err := texts(st, args)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 1:
			return space(list[0]), nil
		// Both lengths are charged, and so at most MaxBytes: the product fits an int of 64 bits, and it is
		// this check that bounds the time.
		case len(list[0])*len(list[1]) > run.MaxBytes:
			return nil, run.Faulty("trims too much")
		}
		return cut(list[0], list[1]), nil
	}
}
