package keyexpr

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/expr-lang/expr/builtin"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Functions that keys are made with, and how calls of all functions are checked. The rules
// behind them come from what has gone wrong elsewhere: a hash that was JSON, and left out
// fields; a modulo that was negative for large ids; a default that was taken for an empty header
// and not for a missing one; a time in the zone of the machine.

// hostFunc is a function that we give to the engine, or that takes the place of one of its
// builtins. The two halves are apart because the engine needs the one and this package the
// other. The engine checks calls by the types of their arguments; it never makes one.
type hostFunc struct {
	name  string
	check checkFunc
	call  callFunc
	text  func(string) string // what call does, for functions from text to text
	user  *run.Function       // the user's own; nil for ours
}

// The types are those that are known at start: what comes from JSON is any, and passes.
type (
	// checkFunc returns the type of a call's result, from those of its arguments; any stands for those that are not known.
	checkFunc func(args []reflect.Type) (reflect.Type, error)
	callFunc  func(st *run.State, args []any) (any, error)
)

// function is h as the engine wants to have it, which checks calls but never makes them. A
// pointer or an interface that is nil comes without a type. It may turn out to be anything.
func (h *hostFunc) function() *builtin.Function {
	return &builtin.Function{
		Name: h.name,
		Validate: func(args []reflect.Type) (reflect.Type, error) {
			for i, t := range args {
				args[i] = cmp.Or(t, anyType) // nil has no type
			}
			return h.check(args)
		},
		Func: func(...any) (any, error) { return nil, nil },
	}
}

var (
	stringType   = reflect.TypeFor[string]()
	intType      = reflect.TypeFor[int]()
	anyType      = reflect.TypeFor[any]()
	rawType      = reflect.TypeFor[run.Raw]()
	timeType     = reflect.TypeFor[time.Time]()
	bigFloatType = reflect.TypeFor[big.Float]()
	durationType = reflect.TypeFor[time.Duration]()
)

// hostFuncs returns all functions of ours by name. The table is made anew for each text, as the
// user's functions are added to it.
func hostFuncs(cond bool) map[string]*hostFunc {
	list := []hostFunc{
		// What keys are made with.
		{name: "hash", check: hashCheck, call: hash},
		{name: "shard", check: numbers(1, 2), call: shard},
		{name: "mod", check: numbers(0, 2), call: modulo},
		{name: "div", check: numbers(0, 2), call: divide},
		{name: orName, check: orCheck, call: or},
		{name: "required", check: requiredCheck, call: required},
		{name: "fmtTime", check: fmtTimeCheck, call: fmtTime},
		{name: "raw", check: rawCheck, call: raw},
		// What the engine's functions on text do worse.
		textFunc("lower", inCase('A', 'Z', strings.ToLower, unicode.ToLower)),
		textFunc("upper", inCase('a', 'z', strings.ToUpper, unicode.ToUpper)),
		textFunc("toBase64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }),
		{name: "string", check: textCheck, call: toString},
		{name: "int", check: takes(1, 1, intType), call: toInt},
		{name: "split", check: takes(2, 3, reflect.TypeFor[[]string]()), call: split},
		{name: "join", check: joinCheck, call: join},
		{name: "replace", check: takes(3, 3, stringType), call: replace},
		{name: "uniq", check: uniqCheck, call: uniq},
		// What the checker puts in.
		{name: basicName, check: func(args []reflect.Type) (reflect.Type, error) { return basicType(args[0]), nil },
			call: func(_ *run.State, args []any) (any, error) { return basic(args[0]), nil }},
		{name: anyName, check: takes(1, 1, anyType), call: func(_ *run.State, args []any) (any, error) { return args[0], nil }},
	}
	if cond {
		list = append(list, hostFunc{name: "now", check: takes(0, 0, timeType), call: now})
	}
	funcs := make(map[string]*hostFunc, len(list))
	for i := range list {
		funcs[list[i].name] = &list[i]
	}
	return funcs
}

// UTC, so that now().Hour() is the same hour on all machines.
func now(*run.State, []any) (any, error) { return time.Now().UTC(), nil }

// takes checks that there are between least and most arguments, and gives result. How many
// arguments there are is all that can be said where each may be of any type.
func takes(least, most int, result reflect.Type) checkFunc {
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) < least || len(args) > most {
			return nil, wanted(len(args), least, most)
		}
		return result, nil
	}
}

// wanted is the error of a call with another number of arguments.
func wanted(got, least, most int) error {
	s := map[bool]string{false: "s"}[got == 1]
	switch {
	case least < most:
		return fmt.Errorf("%d argument%s where %d to %d are wanted", got, s, least, most)
	case least == 1:
		return fmt.Errorf("%d argument%s where 1 is wanted", got, s)
	}
	return fmt.Errorf("%d argument%s where %d are wanted", got, s, least)
}

// pointee is what an argument is checked as: a pointer passes for what it points to, since requests
// have pointers where a value may be missing.
func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// numbers checks that all arguments from the first on may be whole numbers. A pointer to a
// number passes: it is followed when there is one, and an error of the request if it is nil.
func numbers(first, count int) checkFunc {
	return func(args []reflect.Type) (reflect.Type, error) {
		if len(args) != count {
			return nil, wanted(len(args), count, count)
		}
		for _, t := range args[first:] {
			if t = pointee(basicType(t)); t != anyType && (t.Kind() < reflect.Int || t.Kind() > reflect.Uint64) {
				return nil, fmt.Errorf("%v is no whole number", t)
			}
		}
		if why := run.Refusal(args[0]); first > 0 && why != "" {
			return nil, fmt.Errorf("the first argument %s", why)
		}
		return intType, nil
	}
}

// shard spreads the text of a value over the numbers from 0 to n-1, the same way in every
// process and release. It digests the text and not the value. So an id keeps its shard when its
// type changes from int to int64, and a service in another language can find the same one. The
// first eight bytes of SHA-256, as a number in network order, are divided by n.
func shard(st *run.State, args []any) (any, error) {
	n, err := run.Integer(args[1])
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, run.Faulty("has no shards")
	}
	s, err := toString(st, args[:1])
	if err != nil {
		return nil, err
	}
	// The empty text has a shard as any other has, and all requests without an id would share it.
	if s == "" {
		return nil, run.ErrEmpty
	}
	// The remainder of 64 bits favours small shards by less than n in 2^64, which nobody can measure. A hash with
	// a seed would be quicker, and different in each process.
	sum := sha256.Sum256([]byte(s.(string)))
	return int(binary.BigEndian.Uint64(sum[:]) % uint64(n)), nil
}

// isEmpty reports whether x is nil or has nothing in it. A number is never empty. It is what or
// and required mean by empty. "0" and 0 are not: they are ids that somebody has.
func isEmpty(x any) bool {
	if s, ok := x.(string); ok {
		return s == ""
	}
	v := run.Indirect(reflect.ValueOf(x))
	if !v.IsValid() {
		return true
	}
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return false
}

// orCheck gives the type of the arguments if they have one. Else it is not known at start which
// of them will be taken. One type for all keeps the quick ways open that depend on a type.
func orCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) < 2 {
		return nil, fmt.Errorf("or takes at least 2 arguments")
	}
	for _, t := range args[1:] {
		if t != args[0] {
			return orMixed(args)
		}
	}
	return args[0], nil
}

// orMixed gives strings of several types, and pointers to them, the type string. A *string and a
// string are both texts, of which one is there.
func orMixed(args []reflect.Type) (reflect.Type, error) {
	for _, t := range args {
		if pointee(t).Kind() != reflect.String {
			return anyType, nil
		}
	}
	return stringType, nil
}

// or returns the first of its arguments that is neither nil nor empty, and nil if there is none.
// Strings come back as plain strings, as their static type says. It returns nil if nothing is
// left, which a hole refuses, so that a key without any of them is never made.
func or(_ *run.State, args []any) (any, error) {
	for _, x := range args {
		if isEmpty(x) {
			continue
		}
		if _, ok := x.(string); ok {
			return x, nil
		}
		if v := run.Indirect(reflect.ValueOf(x)); v.Kind() == reflect.String && v.Type() != rawType {
			return v.String(), nil
		}
		return x, nil
	}
	return nil, nil
}

// Its result has the type of its argument, so that everything around it is checked as if it were
// not there.
func requiredCheck(args []reflect.Type) (reflect.Type, error) {
	// That the message is written out is checked where calls are resolved. A message that is computed
	// could carry a value of the request into logs.
	if len(args) < 1 || len(args) > 2 || len(args) == 2 && args[1] != stringType {
		return nil, fmt.Errorf("required takes a value, and a message if it should have one")
	}
	return args[0], nil
}

// required fails, with a message of the template's author, if a value is not set: nil, empty,
// the number 0, or an array of zeros, such as a UUID. A zero is refused here although it is a
// legal value elsewhere: protobuf and Go can't tell an id that was not sent from 0, and only the
// author knows that 0 is no id.
func required(_ *run.State, args []any) (any, error) {
	v := run.Indirect(reflect.ValueOf(args[0]))
	unset := isEmpty(args[0])
	if !unset && v.Kind() != reflect.Bool && v.Kind() != reflect.Slice && v.Kind() != reflect.Map {
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

// timed is what protobuf timestamps have. Other libraries of protobuf have the same method, and
// none of them is imported for it.
type timed interface{ AsTime() time.Time }

// A layout that says too little, such as "2006", makes one key for a year, which may be meant.
func fmtTimeCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 2 || args[1] != stringType {
		return nil, fmt.Errorf("fmtTime takes a time and a layout, as time.Format does")
	}
	t := args[0]
	if t != anyType && t != timeType && t != reflect.PointerTo(timeType) && !t.Implements(reflect.TypeFor[timed]()) {
		return nil, fmt.Errorf("fmtTime takes a time, not %v", t)
	}
	return stringType, nil
}

// strangeLayout finds the letters of other languages, of which nothing in Go's layouts is made.
var strangeLayout = regexp.MustCompile(`\b(?:[yY]{2,4}|MM|DD|dd|HH|hh|mm|ss)+\b|%[YmdHMS]`)

// layoutFault says why a layout makes the same of different times, and "" if it does not. Go copies
// what it does not know: "YYYY-MM-DD" would be one key for all requests, and "2006-MM-DD" one for a
// year. The two times differ in all that a layout can show but the zone, which is UTC for each.
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

// fmtTime spells a time in UTC, so that one instant makes one key. The time that was never set,
// in Go the year 1, is as empty as "": all requests without one would share a key.
func fmtTime(st *run.State, args []any) (any, error) {
	v := reflect.ValueOf(args[0])
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, run.ErrNil
	}
	var t time.Time
	switch x := args[0].(type) {
	case time.Time:
		t = x
	case *time.Time:
		t = *x
	case timed:
		t = x.AsTime()
	default:
		return nil, run.Faulty("is no time, but of type %T", x)
	}
	// A protobuf timestamp of 1970 passes, as it may be meant: one that was not sent is a nil pointer,
	// which was refused above.
	if t.IsZero() {
		return nil, run.ErrEmpty
	}
	layout, err := text(args[1])
	if err == nil {
		err = st.Spend(4 * len(layout)) // as "January" may be September, and "Z07:00" +00:00
	}
	if err != nil {
		return nil, err
	}
	return t.UTC().Format(layout), nil
}

// rawCheck gives a list of raw elements for a list. A list of raw values keeps the type that
// says so, since elements are rendered one by one.
func rawCheck(args []reflect.Type) (reflect.Type, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("raw takes 1 argument")
	}
	t := args[0]
	if run.IsList(t) {
		if why := run.Refusal(t.Elem()); why != "" {
			return nil, fmt.Errorf("each element %s", why)
		}
		return reflect.SliceOf(rawType), nil
	}
	if why := run.Refusal(t); why != "" {
		return nil, fmt.Errorf("what is put in %s", why)
	}
	return rawType, nil
}

// raw bounds the list before it is made. Each element could be the text of a whole request. It
// is bounded by the number of keys, as a list of raw values can only become keys.
func raw(st *run.State, args []any) (any, error) {
	v := run.Indirect(reflect.ValueOf(args[0]))
	if !v.IsValid() {
		return nil, run.ErrNil
	}
	if !run.IsList(v.Type()) {
		s, err := st.TextOf(reflect.ValueOf(args[0]))
		return run.Raw(s), err
	}
	// Found before the texts are made. Each of them may be as long as a request.
	if v.Len() > run.MaxKeys {
		return nil, run.Faulty("makes more than %d keys", run.MaxKeys)
	}
	list := make([]run.Raw, v.Len())
	for i := range list {
		s, err := st.TextOf(v.Index(i))
		if err != nil {
			return nil, err
		}
		list[i] = run.Raw(s)
	}
	return list, nil
}
