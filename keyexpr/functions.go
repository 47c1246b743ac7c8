package keyexpr

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

var (
	stringType   = reflect.TypeFor[string]()
	boolType     = reflect.TypeFor[bool]()
	intType      = reflect.TypeFor[int]()
	floatType    = reflect.TypeFor[float64]()
	anyType      = reflect.TypeFor[any]()
	errorType    = reflect.TypeFor[error]()
	rawType      = reflect.TypeFor[run.Raw]()
	timeType     = reflect.TypeFor[time.Time]()
	bigFloatType = reflect.TypeFor[big.Float]()
	durationType = reflect.TypeFor[time.Duration]()
	numberType   = reflect.TypeFor[json.Number]()
	timedType    = reflect.TypeFor[timed]()
)

// function is one of the language.
type function struct {
	least, most int
	arg         func(c *compilation, n ast.Node, t typ)               // refuses what an argument can't be; nil lets all pass
	out         func(c *compilation, x *ast.CallNode, args []typ) typ // of the result; it may refuse more
	call        run.Call
	cond        bool // conditions alone have it
}

// functions returns those of the language. All of them are ours: the engine's have no budget, and some are wrong.
var functions = sync.OnceValue(func() map[string]function {
	const many = 100
	type c = *compilation
	return map[string]function{
		"hash":     {1, 1, c.wantHashable, gives(stringType), hash, false},
		"shard":    {2, 2, nil, c.shards, shard, false},
		"mod":      {2, 2, c.wantNumber, c.quotient, division((*big.Int).Mod, true), false},
		"div":      {2, 2, c.wantNumber, c.quotient, division((*big.Int).Quo, false), false},
		"coalesce": {2, many, nil, c.oneOf, nil, false},
		"required": {1, 2, nil, c.isRequired, required, false},
		"fmtTime":  {2, 2, nil, c.layout, fmtTime, false},
		"raw":      {1, 1, c.wantKey, gives(rawType), raw, false},
		"key":      {2, many, c.wantKey, several, key, false},
		"lower":    {1, 1, c.wantText, gives(stringType), textFunc(lower), false},
		"upper":    {1, 1, c.wantText, gives(stringType), textFunc(upper), false},
		"trim":     {1, 1, c.wantText, gives(stringType), textFunc(strings.TrimSpace), false},
		"int":      {1, 1, c.wantScalar, gives(intType), toInt, false},
		"string":   {1, 1, c.wantKey, gives(stringType), toString, false},
		"len":      {1, 1, c.wantLength, gives(intType), length, false},
		"first":    {1, 1, c.wantList, element, nth(0), false},
		"last":     {1, 1, c.wantList, element, nth(-1), false},
		"now":      {0, 0, nil, gives(timeType), now, true},
	}
})

func gives(t reflect.Type) func(*compilation, *ast.CallNode, []typ) typ {
	return func(*compilation, *ast.CallNode, []typ) typ { return typ{t: t} }
}

func several(_ *compilation, _ *ast.CallNode, args []typ) typ { return typ{parts: len(args)} }

func element(_ *compilation, _ *ast.CallNode, args []typ) typ {
	t, _ := args[0].elemType()
	return t
}

// want refuses a node whose type is known and does not fit. An interface may hold a type that does.
func (c *compilation) want(n ast.Node, t typ, is func(reflect.Type) bool, lack string) {
	if t.null || t.elem != nil || t.t != nil && t.t.Kind() != reflect.Interface && !is(pointee(t.t)) {
		c.fail(n, "%s %s", c.source(n), lack)
	}
}

// truth makes sure that the engine gets true or false.
func (c *compilation) truth(n *ast.Node) {
	t := c.node(n, asPart)
	c.want(*n, t, func(t reflect.Type) bool { return t.Kind() == reflect.Bool }, "is neither true nor false")
	if t.t != boolType {
		*n = c.host(*n, func(_ *run.State, args []any) (any, error) {
			if b, ok := basic(args[0]).(bool); ok {
				return b, nil
			}
			return nil, run.Faulty("is neither true nor false")
		}, *n)
	}
}

func (c *compilation) wantText(n ast.Node, t typ) {
	c.want(n, t, func(t reflect.Type) bool { return t.Kind() == reflect.String && t != numberType }, "is no text: string(x) is the text of a number")
}

func (c *compilation) wantNumber(n ast.Node, t typ) {
	c.want(n, t, func(t reflect.Type) bool {
		return t == numberType || sortOf(t) == "number" && t.Kind() < reflect.Float32
	}, "is no whole number")
}

func (c *compilation) wantScalar(n ast.Node, t typ) {
	c.want(n, t, func(t reflect.Type) bool { return sortOf(t) == "number" || t.Kind() == reflect.String }, "is no number and no text")
}

func (c *compilation) wantLength(n ast.Node, t typ) {
	if _, list := t.elemType(); !list {
		kinds := []reflect.Kind{reflect.String, reflect.Map, reflect.Slice, reflect.Array}
		c.want(n, t, func(t reflect.Type) bool { return slices.Contains(kinds, t.Kind()) }, "has no length")
	}
}

func (c *compilation) wantList(n ast.Node, t typ) {
	if _, list := t.elemType(); !list {
		c.want(n, t, run.IsList, "is no list")
	}
}

// wantKey refuses a node that makes no key.
func (c *compilation) wantKey(n ast.Node, t typ) {
	if t.null {
		c.fail(n, "nil makes no key")
	}
	if why := refusal(t); why != "" {
		c.fail(n, "%s %s", c.source(n), why)
	}
}

// now is in UTC, so that now().Hour() is the same hour on all machines.
func now(*run.State, []any) (any, error) { return time.Now().UTC(), nil }

// textOf returns a text. The error has its type and not its value.
func textOf(x any) (string, error) {
	v := run.Indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return "", run.ErrNoText
	}
	if v.Kind() != reflect.String || v.Type() == numberType {
		return "", run.Faulty("has a value of type %v where a string is wanted: use string(x)", v.Type())
	}
	return v.String(), nil
}

func textFunc(f func(string) string) run.Call {
	return func(st *run.State, args []any) (any, error) {
		s, err := textOf(args[0])
		if err == nil {
			err = st.Spend(len(s))
		}
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func lower(s string) string { return inCase(s, strings.ToLower, unicode.ToLower) }
func upper(s string) string { return inCase(s, strings.ToUpper, unicode.ToUpper) }

// inCase maps only ASCII where a text is no UTF-8. Go's mapping makes U+FFFD of each byte that is none, so that two ids would share a key.
func inCase(s string, all func(string) string, one func(rune) rune) string {
	if utf8.ValidString(s) {
		return all(s)
	}
	b := []byte(s)
	for i, c := range b {
		if c < utf8.RuneSelf {
			b[i] = byte(one(rune(c)))
		}
	}
	return string(b)
}

// toString spells a value as a hole would.
func toString(st *run.State, args []any) (any, error) { return spelt(st, args[0]) }

func spelt(st *run.State, x any) (string, error) {
	s, err := st.TextOf(reflect.ValueOf(x))
	if err == nil {
		err = st.Spend(len(s))
	}
	return s, err
}

// toInt takes a float only if it is a whole number that a float holds exactly, and a text only if all of it is a number.
func toInt(_ *run.State, args []any) (any, error) {
	if s, ok := basic(args[0]).(string); ok {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, run.Faulty("has text that is no whole number")
		}
		return n, nil
	}
	n, err := integerOf(args[0])
	if err == nil && !n.IsInt64() {
		err = run.Faulty("has a number that is too large to calculate with")
	}
	if err != nil {
		return nil, err
	}
	return int(n.Int64()), nil
}

// length counts the runes of a text, and the elements of a list.
func length(st *run.State, args []any) (any, error) {
	v := run.Indirect(reflect.ValueOf(args[0]))
	switch k := v.Kind(); {
	case !v.IsValid():
		return nil, run.Faulty("asks nil for its length")
	case k == reflect.String:
		return utf8.RuneCountInString(v.String()), st.Spend(v.Len())
	case k != reflect.Slice && k != reflect.Array && k != reflect.Map:
		return nil, run.Faulty("asks a value of type %v for its length", v.Type())
	}
	return v.Len(), nil
}

// nth is the first element of a list, or the last with -1; nil if there is none.
func nth(i int) run.Call {
	return func(st *run.State, args []any) (any, error) {
		v, err := aList(args[0])
		if err != nil || v.Len() == 0 {
			return nil, err
		}
		return read(st, run.Tame(v.Index((i+v.Len())%v.Len())))
	}
}

// isEmpty reports whether x is nil or has nothing in it. A number is never empty.
func isEmpty(x any) bool {
	v := run.Indirect(reflect.ValueOf(x))
	switch k := v.Kind(); {
	case !v.IsValid():
		return true
	case k == reflect.String || k == reflect.Slice || k == reflect.Array || k == reflect.Map:
		return v.Len() == 0
	}
	return run.Nothing(v)
}

// oneOf is the type that all arguments have. Only the last may be nil in the end.
func (c *compilation) oneOf(_ *ast.CallNode, args []typ) typ {
	t := args[0]
	for _, u := range args[1:] {
		t = same(t, u)
	}
	return t
}

// isRequired wants the message written out: one that is computed could carry a value into logs.
func (c *compilation) isRequired(x *ast.CallNode, args []typ) typ {
	if len(args) == 2 {
		if _, ok := x.Arguments[1].(*ast.StringNode); !ok {
			c.fail(x.Arguments[1], "the message of required must be written out")
		}
	}
	return args[0]
}

// required fails for a value that is not set: nil, empty, the number 0, or an array of zeros such as a UUID.
func required(_ *run.State, args []any) (any, error) {
	v := run.Indirect(reflect.ValueOf(args[0]))
	unset := isEmpty(args[0])
	if k := v.Kind(); !unset && k != reflect.Bool && k != reflect.Slice && k != reflect.Map {
		unset = v.IsZero()
	}
	switch {
	case unset && len(args) == 2:
		return nil, run.Faulty("is missing: %s", args[1])
	case unset:
		return nil, run.Faulty("is missing: it is nil, empty or zero")
	}
	return args[0], nil
}

// timed is the interface of protobuf timestamps.
type timed interface{ AsTime() time.Time }

func (c *compilation) layout(x *ast.CallNode, args []typ) typ {
	c.want(x.Arguments[0], args[0], func(t reflect.Type) bool { return t == timeType || run.PointerTo(t).Implements(timedType) }, "is no time")
	layout, ok := x.Arguments[1].(*ast.StringNode)
	if !ok {
		c.fail(x.Arguments[1], "the layout of fmtTime must be written out, as time.Format takes it")
	}
	if why := layoutFault(layout.Value); why != "" {
		c.fail(layout, "%s", why)
	}
	return typ{t: stringType}
}

// strangeLayout finds the letters of other languages' layouts, which Go's do not use.
var strangeLayout = regexp.MustCompile(`\b(?:[yY]{2,4}|MM|DD|dd|HH|hh|mm|ss)+\b|%[YmdHMS]`)

// layoutFault says why a layout makes the same of different times. Go copies letters that it does not know.
func layoutFault(layout string) string {
	if strange := strangeLayout.FindString(layout); strange != "" {
		return fmt.Sprintf("%s is no part of a layout of Go, which is made of 2006-01-02 15:04:05", strange)
	}
	a, b := time.Date(2031, 4, 9, 5, 7, 8, 123456789, time.UTC), time.Date(2047, 11, 28, 19, 43, 56, 987654321, time.UTC)
	if a.Format(layout) == b.Format(layout) {
		return "this layout is the same for all times: one of Go is made of 2006-01-02 15:04:05"
	}
	return ""
}

// fmtTime spells a time in UTC, so that one instant makes one key. The time that was never set is empty.
func fmtTime(_ *run.State, args []any) (any, error) {
	var t time.Time
	switch x := args[0].(type) {
	case nil:
		return nil, run.ErrNil
	case time.Time:
		t = x
	case *time.Time:
		t = *x
	case timed:
		t = x.AsTime()
	default:
		return nil, run.Faulty("is no time, but of type %T", x)
	}
	if t.IsZero() {
		return nil, run.ErrEmpty
	}
	layout, err := textOf(args[1])
	return t.UTC().Format(layout), err
}
