package keyexpr

import (
	"context"
	"reflect"
	"slices"
)

// Expand returns the keys that the template stands for: one, or for a template of list type one an element, sorted and
// distinct. ctx is for users' own functions. An error matches ErrValue if the request is to blame, and the error of
// facts or of a user's function otherwise.
func (t *Template) Expand(ctx context.Context, facts Facts) ([]string, error) {
	if t.plain {
		return t.expandPaths(facts)
	}
	return t.expand(ctx, facts)
}

// maxSlots is how many roots expandPaths has room for.
const maxSlots = 4

// expandPaths is expand for templates with paths alone. All that it needs lies on the stack.
func (t *Template) expandPaths(facts Facts) (keys []string, err error) {
	var slots [maxSlots]slot
	var space [maxKey / 2]byte
	from := source{facts: facts, roots: t.used, slots: slots[:len(t.used)]}
	buf, src := space[:0], t.text
	defer func() {
		if r := recover(); r != nil {
			if from.asking {
				panic(r)
			}
			keys, err = nil, blame(src, errPanicked)
		}
	}()
	for i := range t.parts {
		p := &t.parts[i]
		if p.hole == nil {
			buf = append(buf, p.lit...)
			continue
		}
		src = p.hole.src
		v, err := p.hole.path.follow(&from)
		if err == nil {
			buf, err = p.hole.leaf.append(buf, v, p.delim)
		}
		if err != nil {
			return nil, blame(src, err)
		}
	}
	if buf, err = bound(buf); err != nil {
		return nil, blame(t.text, err)
	}
	return []string{string(buf)}, nil
}

func (t *Template) expand(ctx context.Context, facts Facts) (keys []string, err error) {
	st := newState(ctx, facts, t.used)
	src := t.text
	defer func() {
		if r := recover(); r != nil {
			if st.asking {
				panic(r)
			}
			keys, err = nil, blame(src, errPanicked)
		}
		st.release()
	}()
	if len(t.parts) == 1 && t.parts[0].hole.elem != nil {
		src = t.parts[0].hole.src
		return t.parts[0].hole.list(st)
	}
	for i := range t.parts {
		p := &t.parts[i]
		if p.hole == nil {
			st.buf = append(st.buf, p.lit...)
			continue
		}
		src = p.hole.src
		if st.buf, err = p.hole.append(st, p.delim); err != nil {
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
func (x *expression) append(st *state, delim rune) ([]byte, error) {
	switch {
	case x.path != nil:
		v, err := x.path.follow(&st.source)
		if err != nil {
			return st.buf, err
		}
		return x.leaf.append(st.buf, v, delim)
	case x.text != nil:
		s, err := x.text(st)
		if err != nil {
			return st.buf, err
		}
		return appendText(st.buf, s, delim)
	}
	v, err := x.result(st)
	if err != nil {
		return st.buf, err
	}
	if _, raw := v.(rawText); raw {
		st.raw = true
	}
	return appendValue(st.buf, v, delim)
}

// result returns what the expression stands for.
func (x *expression) result(st *state) (any, error) {
	switch {
	case x.path != nil:
		v, err := x.path.follow(&st.source)
		return plainValue(v), err
	case x.eval != nil:
		return x.eval(st)
	}
	return x.run(st)
}

// run runs the engine.
func (x *expression) run(st *state) (any, error) {
	for _, i := range x.needs {
		v, err := st.value(i)
		if err != nil {
			return nil, err
		}
		st.env[st.roots[i].name] = v
	}
	st.env[stateName] = st
	return st.vm.Run(x.program, st.env)
}

// list returns the keys that a list makes.
func (x *expression) list(st *state) ([]string, error) {
	list, err := x.result(st)
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
		if keys[i], err = st.element(v.Index(i)); err != nil {
			return nil, blame(x.src, err)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// element returns the key that an element of a list makes.
func (st *state) element(v reflect.Value) (string, error) {
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
