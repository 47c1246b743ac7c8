package keyexpr

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/parser"
)

// Template is a parsed key template. It is immutable and safe for concurrent use.
type Template struct {
	text   string
	parts  []piece
	used   []usedRoot
	fields []string
}

// piece is a literal or a hole with all that is known of it at start.
type piece struct {
	lit   string
	hole  *expression // nil for a literal
	delim rune        // the first of the literal behind the hole; 0 at the end of the template
}

// Parse parses text and type-checks it against roots. Its error is an *Error.
func Parse(text string, roots Roots, opts ...Option) (*Template, error) {
	parts, err := scan(text)
	if err != nil {
		return nil, err
	}
	c, err := newCompilation(text, roots, false, opts)
	if err != nil {
		return nil, err
	}
	t := &Template{text: text, parts: make([]piece, len(parts))}
	for i, p := range parts {
		if !p.hole {
			t.parts[i].lit = p.text
			continue
		}
		if t.parts[i].hole, err = c.compile(p.text, p.off); err != nil {
			return nil, err
		}
		if err := c.checkHole(t.parts[i].hole, p.off, len(parts) == 1); err != nil {
			return nil, err
		}
		if i+1 < len(parts) {
			t.parts[i].delim, _ = utf8.DecodeRuneInString(parts[i+1].text)
		}
		if t.parts[i].delim == '%' && t.parts[i].hole.typ != rawType {
			return nil, errAt(text, parts[i+1].off, "a %% behind a hole would look like an escape: put another literal between them")
		}
	}
	t.used, t.fields = c.used, c.fields
	return t, nil
}

// checkHole refuses holes that can't be part of a key.
func (c *compilation) checkHole(x *expression, off int, alone bool) error {
	if x.nothing {
		return errAt(c.text, off, "nil makes no key")
	}
	if x.typ == nil {
		return nil
	}
	why := refusal(x.typ)
	if x.elem != nil && alone {
		why = ""
		if *x.elem != nil {
			why = refusal(*x.elem)
		}
		if why != "" {
			why = "is a list; each element " + why
		}
	}
	if why != "" {
		return errAt(c.text, off, "%s %s", abridge(strings.TrimSpace(x.src)), why)
	}
	return nil
}

// Check parses the syntax of text only: holes are closed and each is an expression. Its error is an *Error.
func Check(text string) error {
	parts, err := scan(text)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.hole {
			if err := checkSyntax(text, p.text, p.off, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSyntax parses one expression.
func checkSyntax(text, src string, off int, cond bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errAt(text, off, "the expression engine gives up: %v", r)
		}
	}()
	c := &compilation{text: text, src: src, off: off, cond: cond}
	c.conf = c.newConf()
	if _, err := parser.ParseWithConfig(hideOr(src), c.conf); err != nil {
		return c.engineError(err)
	}
	return nil
}

// Expand returns the keys that the template stands for: one, or for a template of list type one an element, sorted and
// distinct. ctx is for users' own functions. An error matches ErrValue if the request is to blame, and the error of
// facts or of a user's function otherwise.
func (t *Template) Expand(ctx context.Context, facts Facts) (keys []string, err error) {
	st := newState(ctx, facts, len(t.used))
	src := t.text
	defer func() {
		if r := recover(); r != nil {
			if st.asking {
				panic(r)
			}
			keys, err = nil, blame(src, fmt.Errorf("panic"))
		}
		st.release()
	}()
	if len(t.parts) == 1 && t.parts[0].hole != nil && t.parts[0].hole.elem != nil {
		src = t.parts[0].hole.src
		return t.expandList(st)
	}
	for i := range t.parts {
		p := &t.parts[i]
		if p.hole == nil {
			st.buf = append(st.buf, p.lit...)
			continue
		}
		src = p.hole.src
		if st.buf, err = p.hole.append(st, t.used, p.delim); err != nil {
			return nil, blame(src, err)
		}
	}
	key, err := st.key()
	if err != nil {
		return nil, blame(t.text, err)
	}
	return []string{key}, nil
}

// append appends what the hole stands for to the buffer of st.
func (x *expression) append(st *state, used []usedRoot, delim rune) ([]byte, error) {
	if x.path == nil {
		v, err := x.value(st, used)
		if err != nil {
			return st.buf, err
		}
		if _, raw := v.(rawText); raw {
			st.raw = true
		}
		return appendValue(st.buf, v, delim)
	}
	v, err := x.path.follow(st, used)
	if err != nil {
		return st.buf, err
	}
	if !v.IsValid() {
		return st.buf, errNil
	}
	return x.put(st.buf, v, delim)
}

// value returns what the expression stands for.
func (x *expression) value(st *state, used []usedRoot) (any, error) {
	switch {
	case x.path != nil:
		v, err := x.path.follow(st, used)
		return plainValue(v), err
	case x.eval != nil:
		return x.eval(st, used)
	}
	return x.run(st, used)
}

// run runs the engine.
func (x *expression) run(st *state, used []usedRoot) (any, error) {
	for _, i := range x.needs {
		v, err := st.value(i, &used[i])
		if err != nil {
			return nil, err
		}
		st.env[used[i].name] = v
	}
	st.env[stateName] = st
	return st.vm.Run(x.program, st.env)
}

func (t *Template) expandList(st *state) ([]string, error) {
	x := t.parts[0].hole
	list, err := x.value(st, t.used)
	if err != nil {
		return nil, blame(x.src, err)
	}
	v := indirect(reflect.ValueOf(list))
	switch {
	case !v.IsValid():
		return nil, blame(x.src, errNil)
	case v.Len() == 0:
		return nil, blame(x.src, errEmpty)
	case v.Len() > maxKeys:
		return nil, blame(x.src, faulty("makes more than %d keys", maxKeys))
	}
	keys := make([]string, v.Len())
	for i := range keys {
		if keys[i], err = element(st, v.Index(i)); err != nil {
			return nil, blame(x.src, err)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// element is the key that an element of a list makes.
func element(st *state, v reflect.Value) (string, error) {
	var err error
	value := plainValue(v)
	_, st.raw = value.(rawText)
	if st.buf, err = appendValue(st.buf[:0], value, 0); err != nil {
		return "", faulty("has an element that %v", err)
	}
	return st.key()
}

// key returns what is in the buffer as a key.
func (st *state) key() (string, error) {
	if st.raw && len(st.buf) > maxKey {
		// Somebody else makes the same key, and would not make the digest.
		return "", faulty("makes a key of more than %d bytes with raw", maxKey)
	}
	key, err := bound(st.buf)
	return string(key), err
}

// Roots returns the names of the roots that the template uses, sorted.
func (t *Template) Roots() []string { return rootNames(t.used) }

func rootNames(used []usedRoot) []string {
	names := make([]string, len(used))
	for i, r := range used {
		names[i] = r.name
	}
	slices.Sort(names)
	return names
}

// String returns the text of the template.
func (t *Template) String() string { return t.text }
