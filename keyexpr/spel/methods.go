package spel

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// method is a method of Java whose result is known to be the same here.
type method struct {
	args []jkind // of the arguments; anyK takes all that has a text
	out  jkind
	call func(st *run.State, on any, args []any) (any, error)
}

// textMethods are those of String, by name and number of arguments.
var textMethods = map[string]method{
	"length/0":           {nil, intK, func(st *run.State, on any, _ []any) (any, error) { u, err := units(st, on); return int32(len(u)), err }},
	"isEmpty/0":          {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on == "", nil }},
	"isBlank/0":          {nil, boolK, onText(func(s string) any { return strings.TrimFunc(s, isWhitespace) == "" })},
	"charAt/1":           {[]jkind{intK}, charK, charAt},
	"substring/1":        {[]jkind{intK}, textK, substring},
	"substring/2":        {[]jkind{intK, intK}, textK, substring},
	"indexOf/1":          {[]jkind{textK}, intK, indexOf(strings.Index)},
	"lastIndexOf/1":      {[]jkind{textK}, intK, indexOf(strings.LastIndex)},
	"contains/1":         {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.Contains(s, t) })},
	"startsWith/1":       {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.HasPrefix(s, t) })},
	"endsWith/1":         {[]jkind{textK}, boolK, onTexts(func(s, t string) any { return strings.HasSuffix(s, t) })},
	"equalsIgnoreCase/1": {[]jkind{textK}, boolK, equalsIgnoreCase},
	"concat/1":           {[]jkind{anyK}, textK, func(st *run.State, on any, args []any) (any, error) { return concat(st, on, args[0], false) }},
	"replace/2":          {[]jkind{textK, textK}, textK, replace},
	"toLowerCase/0":      {nil, textK, mapped(lower)},
	"toUpperCase/0":      {nil, textK, mapped(upper)},
	"trim/0":             {nil, textK, onText(func(s string) any { return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' }) })},
	"strip/0":            {nil, textK, onText(func(s string) any { return strings.TrimFunc(s, isWhitespace) })},
	"stripLeading/0":     {nil, textK, onText(func(s string) any { return strings.TrimLeftFunc(s, isWhitespace) })},
	"stripTrailing/0":    {nil, textK, onText(func(s string) any { return strings.TrimRightFunc(s, isWhitespace) })},
	"intern/0":           {nil, textK, onText(func(s string) any { return s })},
}

// listMethods are those of List.
var listMethods = map[string]method{
	"size/0":    {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(list).len()), nil }},
	"isEmpty/0": {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(list).len() == 0, nil }},
	"contains/1": {[]jkind{anyK}, boolK, func(st *run.State, on any, args []any) (any, error) {
		i, err := find(st, on.(list), args[0])
		return i >= 0, err
	}},
	"indexOf/1": {[]jkind{anyK}, intK, func(st *run.State, on any, args []any) (any, error) {
		i, err := find(st, on.(list), args[0])
		return int32(i), err
	}},
	"get/1": {[]jkind{intK}, anyK, func(_ *run.State, on any, args []any) (any, error) {
		l := on.(list)
		i, ok := integer(args[0])
		if !ok || i < 0 || i >= int64(l.len()) {
			return nil, run.Faulty("asks a list of %d elements for number %d", l.len(), i)
		}
		return l.at(int(i))
	}},
}

// mapMethods are those of Map.
var mapMethods = map[string]method{
	"size/0":    {nil, intK, func(_ *run.State, on any, _ []any) (any, error) { return int32(on.(mapping).of.Len()), nil }},
	"isEmpty/0": {nil, boolK, func(_ *run.State, on any, _ []any) (any, error) { return on.(mapping).of.Len() == 0, nil }},
	"get/1": {[]jkind{textK}, anyK, func(_ *run.State, on any, args []any) (any, error) {
		x, _, err := entry(on, args[0])
		return x, err
	}},
	"containsKey/1": {[]jkind{textK}, boolK, func(_ *run.State, on any, args []any) (any, error) {
		_, there, err := entry(on, args[0])
		return there, err
	}},
	"getOrDefault/2": {[]jkind{textK, anyK}, anyK, func(_ *run.State, on any, args []any) (any, error) {
		x, there, err := entry(on, args[0])
		if !there && err == nil {
			x = args[1]
		}
		return x, err
	}},
}

func entry(on, key any) (any, bool, error) {
	s, ok := key.(string)
	if !ok {
		return nil, false, run.Faulty("asks a map by what is no text")
	}
	return on.(mapping).get(s)
}

// call compiles a function of the user's, or a method.
func (c *compiler) call(n *node) *code {
	if n.args[0] == nil {
		return c.function(n)
	}
	if n.text == "formatted" && n.args[0].kind == kindText && !c.plain {
		return c.compile((&parser{whole: c.whole}).format(n.args[0], n.args[1:]))
	}
	base := c.compile(n.args[0])
	if base.typ.k == refusedK {
		c.fail(n.args[0], "%s", base.typ.why)
	}
	args := make([]*code, len(n.args)-1)
	for i, a := range n.args[1:] {
		args[i] = c.compile(a)
	}
	return c.invoke(n, base, n.text, args)
}

// function calls what guard.Function, or keyexpr.Func, has given a name.
func (c *compiler) function(n *node) *code {
	f, ok := c.setup.Functions[n.text]
	if !ok {
		var names []string
		for name := range c.setup.Functions {
			names = append(names, name)
		}
		c.fail(n, "there is no function %s%s; guard.Function gives one", n.text, suggest.Ending(n.text, names))
	}
	c.reads = c.reads || f.Contextual()
	args := make([]*code, len(n.args)-1)
	types := make([]reflect.Type, len(args))
	cost := 1
	for i, a := range n.args[1:] {
		args[i] = c.compile(a)
		types[i] = goType(args[i].typ)
		cost += args[i].cost
	}
	out, err := f.Check(types)
	if err != nil {
		c.fail(n, "%v", err)
	}
	t := typeOf(out)
	return &code{typ: t, cost: cost, value: func(st *run.State) (any, error) {
		values := make([]any, len(args))
		for i, a := range args {
			v, err := a.value(st)
			if err != nil {
				return nil, err
			}
			values[i] = given(v)
		}
		v, err := f.Call(st, values)
		if err != nil {
			return nil, err
		}
		return valueOf(reflect.ValueOf(v), t)
	}}
}

// goType is what a function of the user's gets for a value.
func goType(t typ) reflect.Type {
	switch t.k {
	case textK, nameK, enumK, otherK, charK:
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

func given(x any) any {
	switch x := x.(type) {
	case named:
		return string(x)
	case enum:
		return string(x)
	case other:
		return string(x)
	case char:
		return string(rune(x))
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

// invoke compiles a call of a method of Java.
func (c *compiler) invoke(n *node, base *code, name string, args []*code) *code {
	switch {
	case name == "equals" && len(args) == 1:
		return c.equals(n, base, args[0])
	case name == "hashCode" && len(args) == 0:
		return c.hashCode(n, base)
	case name == "toString" && len(args) == 0:
		return c.toString(n, base)
	case name == "name" && len(args) == 0 && (base.typ.k == enumK || base.typ.k == nameK):
		return c.after(n, base, typ{k: textK}, func(st *run.State, v any) (any, error) { return spell(st, v) })
	case (name == "intValue" || name == "longValue") && len(args) == 0 && base.typ.number():
		return c.narrowed(n, base, name)
	case name == "booleanValue" && len(args) == 0 && base.typ.k == boolK:
		return base
	}
	switch base.typ.k {
	case textK, nameK:
		return c.textMethod(n, base, name, args)
	case listK:
		if base.typ.array {
			c.fail(n, "an array has no method %s: there is length, and [i]", name)
		}
		return c.tabled(n, base, name, args, listMethods)
	case mapK:
		return c.tabled(n, base, name, args, mapMethods)
	case anyK:
		return c.anyMethod(n, base, name, args)
	case objectK:
		if prop, ok := accessor(name); ok && len(args) == 0 {
			x := c.property(&node{off: n.off, args: n.args, safe: n.safe}, base, prop)
			if strings.HasPrefix(name, "is") && prop != name && x.typ.k != boolK && x.typ.k != anyK {
				c.fail(n, "%s() is of type boolean in Java, and %v is not", name, x.typ.t)
			}
			return x
		}
	}
	c.fail(n, "%s has no method %s with %d arguments here: give the guard a function with Function, and write #%s(…)", describe(base.typ), name, len(args), name)
	return nil
}

// accessor returns the property that a method without arguments reads: that of getId, isUrgent, and, as of a record, id.
func accessor(name string) (property string, ok bool) {
	for _, prefix := range []string{"get", "is"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if r, _ := utf8.DecodeRuneInString(rest); ok && unicode.IsUpper(r) {
			return strings.ToLower(rest[:1]) + rest[1:], true
		}
	}
	switch name {
	case "getClass", "hashCode", "notify", "wait", "clone", "name", "ordinal":
		return name, name == "name"
	}
	return name, true
}

func (c *compiler) textMethod(n *node, base *code, name string, args []*code) *code {
	switch {
	case name == "split" && len(args) == 1:
		return c.split(n, base)
	case name == "matches" && len(args) == 1:
		return c.matching(n, base)
	case name == "formatted":
		c.fail(n, "a format must be written out")
	}
	return c.tabled(n, base, name, args, textMethods)
}

// tabled compiles a method of a table.
func (c *compiler) tabled(n *node, base *code, name string, args []*code, table map[string]method) *code {
	m, ok := table[name+"/"+string(rune('0'+min(len(args), 9)))]
	if !ok {
		c.fail(n, "the method %s with %d arguments of %s is not known here: give the guard a function with Function, and write #%s(…)", name, len(args), describe(base.typ), name)
	}
	cost := 1
	for i, want := range m.args {
		got := args[i].typ
		cost += args[i].cost
		fits := got.k == want || got.k == anyK || want == anyK || want == intK && (got.k == wholeK || got.k == smallK) ||
			want == textK && c.plain && got.k == charK && (name == "indexOf" || name == "lastIndexOf")
		if want == anyK && got.k == refusedK {
			c.fail(n.args[i+1], "%s", got.why)
		}
		if name == "concat" && got.k != textK && got.k != anyK {
			if why := spellable(got, true); why != "" || c.plain {
				c.fail(n.args[i+1], "concat takes a text, and not %s", describe(got))
			}
		}
		if (name == "contains" || name == "indexOf") && base.typ.k == listK {
			c.comparable(n, *base.typ.elem, got)
		}
		if !fits {
			c.fail(n.args[i+1], "%s takes %s here, and not %s", name, describe(typ{k: want}), describe(got))
		}
	}
	out := typ{k: m.out}
	if m.out == anyK && base.typ.elem != nil {
		out = *base.typ.elem
		if name == "getOrDefault" {
			out = join(out, args[1].typ)
		}
	}
	x := c.after(n, base, out, func(st *run.State, v any) (any, error) {
		values := make([]any, len(args))
		for i, a := range args {
			var err error
			if values[i], err = a.value(st); err != nil {
				return nil, err
			}
			if want := m.args[i]; values[i] == nil && want != anyK {
				return nil, run.Faulty("gives null to %s", name)
			}
			_, isInt := integer(values[i])
			_, isText := values[i].(string)
			if m.args[i] == intK && !isInt || m.args[i] == textK && !isText && args[i].typ.k != charK {
				return nil, run.Faulty("gives to %s what it does not take", name)
			}
		}
		if s, ok := textOf(v); ok {
			v = s
		}
		return m.call(st, v, values)
	})
	x.cost += cost
	return x
}

// anyMethod decides by the value, whose type is not known at start.
func (c *compiler) anyMethod(n *node, base *code, name string, args []*code) *code {
	key := name + "/" + string(rune('0'+min(len(args), 9)))
	_, text := textMethods[key]
	_, lists := listMethods[key]
	_, maps := mapMethods[key]
	if !text && !lists && !maps {
		if prop, ok := accessor(name); ok && len(args) == 0 {
			return c.property(&node{off: n.off, args: n.args, safe: n.safe}, base, prop)
		}
		c.fail(n, "the method %s with %d arguments is not known here: give the guard a function with Function, and write #%s(…)", name, len(args), name)
	}
	return c.after(n, base, typ{}, func(st *run.State, v any) (any, error) {
		m, ok := method{}, false
		switch v.(type) {
		case string:
			m, ok = textMethods[key]
		case list:
			m, ok = listMethods[key]
		case mapping:
			m, ok = mapMethods[key]
		}
		if !ok {
			return nil, run.Faulty("has a value without the method %s", name)
		}
		values := make([]any, len(args))
		for i, a := range args {
			var err error
			if values[i], err = a.value(st); err != nil {
				return nil, err
			}
			_, isText := values[i].(string)
			_, isInt := integer(values[i])
			if m.args[i] == textK && !isText || m.args[i] == intK && !isInt {
				return nil, run.Faulty("gives to %s what it does not take", name)
			}
		}
		return m.call(st, v, values)
	})
}

// comparable refuses equals between types for which its result is not known to be that of Java.
func (c *compiler) comparable(n *node, a, b typ) {
	for _, pair := range [][2]typ{{a, b}, {b, a}} {
		x, y := pair[0], pair[1]
		switch {
		case x.k == nullK || y.k == nullK:
		case (x.k == wholeK || x.k == smallK) && y.number() && (x.k != y.k || x.k == wholeK && x.t != y.t):
			c.fail(n, "an Integer never equals a Long in Java, and %v may be either: declare it int32 or int64, or compare with ==", x.t)
		case x.k == nameK && y.k == textK:
			c.fail(n, "%v may be an enum in Java, which never equals a text: write .name() for an enum, or .toString() for both", x.t)
		case x.k == listK || x.k == mapK || x.k == objectK || x.k == bytesK:
			c.fail(n, "%s can't be compared here: compare its parts", describe(x))
		case x.k == refusedK:
			c.fail(n, "%s", x.why)
		}
	}
}

// equals is Object.equals, for which 42 and 42L differ.
func (c *compiler) equals(n *node, base, arg *code) *code {
	c.comparable(n, base.typ, arg.typ)
	return c.after(n, base, typ{k: boolK}, func(st *run.State, v any) (any, error) {
		a, err := arg.value(st)
		if err != nil {
			return nil, err
		}
		return equals(st, v, a)
	})
}

func equals(st *run.State, a, b any) (bool, error) {
	x, ok := integer(a)
	y, ok2 := integer(b)
	if !ok || !ok2 {
		return same(st, a, b)
	}
	if reflect.TypeOf(a) == reflect.TypeOf(b) {
		return x == y, nil
	}
	_, wide := a.(whole)
	_, wide2 := b.(whole)
	if x == y && (wide || wide2) {
		return false, run.Faulty("compares numbers that are equal only if both are int, or both long, in Java")
	}
	return false, nil
}

func find(st *run.State, l list, x any) (int, error) {
	if err := st.Step(2 * l.len()); err != nil {
		return 0, err
	}
	for i := range l.len() {
		e, err := l.at(i)
		if err != nil {
			return 0, err
		}
		if same, err := equals(st, e, x); same || err != nil {
			return i, err
		}
	}
	return -1, nil
}

// hashCode is known of texts, numbers and booleans.
func (c *compiler) hashCode(n *node, base *code) *code {
	switch base.typ.k {
	case textK, intK, longK, boolK, anyK:
	default:
		c.fail(n, "hashCode of %s is not known here: take it of a text or of a number that is int32 or int64", describe(base.typ))
	}
	return c.after(n, base, typ{k: intK}, func(st *run.State, v any) (any, error) {
		switch v := v.(type) {
		case string:
			u, err := units(st, v)
			var h int32
			for _, c := range u {
				h = 31*h + int32(c)
			}
			return h, err
		case int32:
			return v, nil
		case int64:
			return int32(v ^ int64(uint64(v)>>32)), nil
		case bool:
			if v {
				return int32(1231), nil
			}
			return int32(1237), nil
		}
		return nil, run.Faulty("has a value whose hashCode is not known here")
	})
}

func (c *compiler) toString(n *node, base *code) *code {
	if why := spellable(base.typ, false); why != "" {
		c.fail(n, "%s", why)
	}
	return c.after(n, base, typ{k: textK}, func(st *run.State, v any) (any, error) { return spell(st, v) })
}

func (c *compiler) narrowed(n *node, base *code, name string) *code {
	if name == "longValue" {
		return c.after(n, base, typ{k: longK}, func(_ *run.State, v any) (any, error) { i, _ := integer(v); return i, nil })
	}
	return c.after(n, base, typ{k: intK}, func(_ *run.State, v any) (any, error) { i, _ := integer(v); return int32(i), nil })
}

// split is String.split, which leaves out empty texts at the end.
func (c *compiler) split(n *node, base *code) *code {
	if n.args[1].kind != kindText {
		c.fail(n.args[1], "what split looks for must be written out: it is a pattern")
	}
	re, err := translate(n.args[1].text)
	if err != nil {
		c.fail(n.args[1], "%v", err)
	}
	if re.part.MatchString("") {
		c.fail(n.args[1], "this pattern matches an empty text, at which Java splits in its own way")
	}
	return c.after(n, base, typ{k: listK, elem: &typ{k: textK}, array: true}, func(st *run.State, v any) (any, error) {
		s, ok := textOf(v)
		if !ok {
			return nil, run.Faulty("splits what is no text")
		}
		return re.split(st, s)
	})
}

// units are the characters of a text as Java counts them.
func units(st *run.State, x any) ([]uint16, error) {
	s, _ := textOf(x)
	if err := st.Spend(7 * len(s)); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, errNoJavaText
	}
	return utf16.Encode([]rune(s)), nil
}

var errSurrogate = run.Faulty("takes half of a character that Java has in two halves")

// piece is a part of a text, which must not end within a character.
func piece(u []uint16, from, to int64) (any, error) {
	if from < 0 || to < from || to > int64(len(u)) {
		return nil, run.Faulty("takes a part of a text that is not there")
	}
	s := utf16.Decode(u[from:to])
	for _, r := range s {
		if r == utf8.RuneError {
			if !containsReplacement(u[from:to]) {
				return nil, errSurrogate
			}
		}
	}
	return string(s), nil
}

// containsReplacement reports whether U+FFFD is in a text by itself, and no half of a pair is.
func containsReplacement(u []uint16) bool {
	for i, c := range u {
		if c >= 0xd800 && c < 0xdc00 && (i+1 == len(u) || u[i+1] < 0xdc00 || u[i+1] >= 0xe000) {
			return false
		}
		if c >= 0xdc00 && c < 0xe000 && (i == 0 || u[i-1] < 0xd800 || u[i-1] >= 0xdc00) {
			return false
		}
	}
	return true
}

func charAt(st *run.State, on any, args []any) (any, error) {
	u, err := units(st, on)
	if err != nil {
		return nil, err
	}
	i, _ := integer(args[0])
	if i < 0 || i >= int64(len(u)) {
		return nil, run.Faulty("takes a part of a text that is not there")
	}
	return char(u[i]), nil
}

func substring(st *run.State, on any, args []any) (any, error) {
	u, err := units(st, on)
	if err != nil {
		return nil, err
	}
	from, _ := integer(args[0])
	to := int64(len(u))
	if len(args) > 1 {
		to, _ = integer(args[1])
	}
	return piece(u, from, to)
}

// onText is a method of a text whose result no alphabet changes.
func onText(f func(s string) any) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, _ []any) (any, error) {
		s, err := spell(st, on)
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func onTexts(f func(s, t string) any) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, args []any) (any, error) {
		s, err := spell(st, on)
		if err != nil {
			return nil, err
		}
		t, err := spell(st, args[0])
		if err != nil {
			return nil, err
		}
		return f(s, t), nil
	}
}

func indexOf(f func(s, t string) int) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, args []any) (any, error) {
		s, err := spell(st, on)
		if err != nil {
			return nil, err
		}
		t, err := spell(st, args[0])
		if err != nil {
			return nil, err
		}
		i := f(s, t)
		if i < 0 {
			return int32(-1), nil
		}
		u, err := units(st, s[:i])
		return int32(len(u)), err
	}
}

func replace(st *run.State, on any, args []any) (any, error) {
	s, err := spell(st, on)
	if err != nil {
		return nil, err
	}
	old, err := spell(st, args[0])
	if err != nil {
		return nil, err
	}
	by, err := spell(st, args[1])
	if err != nil {
		return nil, err
	}
	if old == "" && !isASCII(s) {
		return nil, run.Faulty("puts a text between the characters of another one, which Java counts in its own way")
	}
	if err := st.Spend(len(s) + strings.Count(s, old)*len(by)); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, by), nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isWhitespace is Character.isWhitespace: no space that does not break a line is.
func isWhitespace(r rune) bool {
	switch r {
	case '\u00a0', '\u2007', '\u202f':
		return false
	case '\t', '\n', '\v', '\f', '\r', 0x1c, 0x1d, 0x1e, 0x1f:
		return true
	}
	return unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp)
}

// mapped maps the characters of a text by one of Java's mappings.
func mapped(f func(r rune) (string, bool)) func(*run.State, any, []any) (any, error) {
	return func(st *run.State, on any, _ []any) (any, error) {
		s, err := spell(st, on)
		if err == nil {
			err = st.Spend(2 * len(s))
		}
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, r := range s {
			to, ok := f(r)
			if !ok {
				return nil, run.Faulty("has a character whose other case depends on the version of Java, or on what is around it")
			}
			b.WriteString(to)
		}
		return b.String(), nil
	}
}

// upper is the upper case of r in all versions of Java since 8, and reports whether there is one. It is not known where
// Go's tables have a mapping outside of the scripts that have not changed since, or where several characters come out.
func upper(r rune) (string, bool) {
	switch {
	case r == 'ß':
		return "SS", true
	case unicode.ToUpper(r) == r && !several(r):
		return string(r), true
	}
	return string(unicode.ToUpper(r)), settled(r) && !several(r)
}

// lower is upper for the lower case. That of a sigma depends on whether a word ends there.
func lower(r rune) (string, bool) {
	switch {
	case r == 'Σ', r == 'İ':
		return "", false
	case unicode.ToLower(r) == r:
		return string(r), true
	}
	return string(unicode.ToLower(r)), settled(r)
}

// settled reports whether r is in a script whose mappings are the same in all versions.
func settled(r rune) bool {
	return r < 0x250 || r >= 0x370 && r < 0x530 && r != 0x37f && r != 0x3f3 && r < 0x528 || r >= 0x531 && r < 0x587 || r >= 0x1e00 && r < 0x1f00 && r != 0x1e9e
}

// several reports whether the upper case of r is more than one character, as for ŉ, ΐ and ﬁ.
func several(r rune) bool {
	switch {
	case r == 'ŉ', r == 'ǰ', r == 'ΐ', r == 'ΰ', r == 'և', r >= 0x1e96 && r <= 0x1e9a, r >= 0x1f50 && r < 0x2000, r >= 0xfb00 && r <= 0xfb17:
		return true
	}
	return false
}

func equalsIgnoreCase(st *run.State, on any, args []any) (any, error) {
	u, err := units(st, on)
	if err != nil {
		return nil, err
	}
	v, err := units(st, args[0])
	if err != nil {
		return nil, err
	}
	if len(u) != len(v) {
		return false, nil
	}
	for i := range u {
		if u[i] == v[i] {
			continue
		}
		a, b := rune(u[i]), rune(v[i])
		if !settled(a) || !settled(b) {
			return nil, run.Faulty("compares characters whose other case depends on the version of Java")
		}
		x, y := unicode.ToUpper(a), unicode.ToUpper(b)
		if x != y && unicode.ToLower(x) != unicode.ToLower(y) {
			return false, nil
		}
	}
	return true, nil
}
