package run

import (
	"context"
	"errors"
	"reflect"
	"unicode/utf8"
)

// Expand appends the keys of a request to keys, sorted and distinct. Roots are asked for by facts,
// or else request points to the value of every root. Most templates are a literal and one or two
// paths to short texts. They are made on the stack, without a state, whose pool costs as much as
// the two paths. What turns out not to be short is started again with a state and its budget, with
// the facts that are there.
//
// The quick way has no budget and needs none: a value that is longer than a key is left to the other
// way, and there are only so many parts.
func (p *Program) Expand(ctx context.Context, keys []string, facts func(root string) (any, error), request any) ([]string, error) {
	// Where a closure runs, what the pool costs is lost in the rest.
	if !p.plain {
		return p.expandSlowly(ctx, keys, facts, request, nil)
	}
	if len(p.own) == 0 {
		return p.expandPaths(ctx, keys, facts, request, slot{})
	}
	// Most keys are of this kind.
	var at slot
	var err error
	if facts != nil {
		at.value, at.find, err = p.Roots[0].ask(facts)
	} else {
		at.value, at.find, err = p.Roots[0].of(request)
	}
	if err != nil {
		return nil, BlameHole(p.firstHole(), err)
	}
	var room [MaxKey / 4]byte
	if key, ok := p.appendOwn(room[:0], at.value); ok && len(key) <= MaxKey {
		return append(keys, string(key)), nil
	}
	at.known = true
	return p.expandPaths(ctx, keys, facts, request, at)
}

// expandPaths is Expand for literals and paths. The first root may be known.
func (p *Program) expandPaths(ctx context.Context, keys []string, facts func(root string) (any, error), request any, first slot) ([]string, error) {
	// Both are on the stack, and cleared for each request, so that more room would be paid for by each.
	// A longer key moves the buffer to the heap.
	var slots [maxSlots]slot
	var room [MaxKey / 4]byte
	slots[0] = first
	buf := room[:0]
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Path == nil {
			buf = append(buf, part.Text...)
			continue
		}
		at, root := &slots[part.Path.Root], &p.Roots[part.Path.Root]
		var err error
		if !at.known {
			if facts != nil {
				at.value, at.find, err = root.ask(facts)
			} else {
				at.value, at.find, err = root.of(request)
			}
			at.known = true
		}
		if err == nil {
			buf, err = part.quick(buf, at, root)
		}
		if err != nil {
			if errors.Is(err, errLong) {
				return p.expandSlowly(ctx, keys, facts, request, slots[:])
			}
			return nil, BlameHole(part.Src, err)
		}
	}
	switch {
	case len(buf) > MaxKey:
		return p.expandSlowly(ctx, keys, facts, request, slots[:])
	case p.Valid && !utf8.Valid(buf):
		return nil, Blame(p.Text, errNoUTF8)
	}
	return append(keys, string(buf)), nil
}

// appendOwn appends what own is in short. It is not ok if that is left to quick, as what is wrong with a text is.
func (p *Program) appendOwn(key []byte, root reflect.Value) (_ []byte, ok bool) {
	fields := reflect.Indirect(root)
	if fields.Kind() != reflect.Struct {
		return key, false
	}
	for i := range p.own {
		own := &p.own[i]
		s := fields.Field(own.field).String()
		if s == "" || len(s) > MaxKey {
			return key, false
		}
		key = own.escape.Append(append(key, own.before...), s)
	}
	return append(key, p.end...), true
}

// firstHole is the source of the first hole.
func (p *Program) firstHole() string {
	for i := range p.Parts {
		if !p.Parts[i].Literal() {
			return p.Parts[i].Src
		}
	}
	return ""
}

// maxSlots is how many roots the quick way has room for. Two are the request and a header.
const maxSlots = 2

// expandSlowly is Expand with a state from the pool. No fact is asked for twice.
func (p *Program) expandSlowly(ctx context.Context, keys []string, facts func(root string) (any, error), request any,
	known []slot) ([]string, error) {
	if facts == nil {
		facts = func(string) (any, error) {
			v, err := target(request)
			if err != nil {
				return nil, err
			}
			return v.Interface(), nil
		}
	}
	st := NewState(ctx, facts, p.Roots)
	defer st.Release()
	copy(st.slots, known)
	return p.ExpandWith(st, keys)
}

// plain reports whether the quick way knows how to make p. It looks a name up, or goes from a value
// along fields and entries, and never does the one after the other.
func (p *Part) plain() bool {
	if p.Path == nil {
		return p.Literal()
	}
	for i := range p.Path.Steps {
		if p.Path.Steps[i].Method != "" { // whose panic is caught in the slow way alone
			return false
		}
	}
	looks := len(p.Path.Steps) > 0 && p.Path.Steps[0].Lookup
	return p.Leaf != LeafAny && !p.Path.Elem && looks == (p.Leaf == LeafLookup)
}

// errLong is no error of a request: it sends the quick way back, and nobody else sees it.
var errLong = errors.New("longer than a key")

// quick appends what is at the end of the path of p, which starts at the root in a slot.
func (p *Part) quick(key []byte, at *slot, root *Root) ([]byte, error) {
	var s string
	if p.Leaf == LeafLookup {
		var ok bool
		var err error
		if s, ok, err = at.look(p.Path, root); err != nil {
			return key, err
		} else if !ok {
			return key, p.missing()
		}
	} else {
		v, err := walk(at.value, p.Path.Steps)
		switch {
		case err != nil:
			return key, err
		case !v.IsValid():
			return key, p.missing()
		case p.Leaf != LeafString:
			return appendNumber(key, v, p.Leaf, p.Escape), nil
		}
		s = v.String()
	}
	// Decided before Via: upper of ten megabytes is work, and this way has no budget to refuse it.
	if len(s) > MaxKey {
		return key, errLong
	}
	if p.Via != nil {
		s = p.Via(s)
	}
	switch {
	case s == "":
		return key, ErrEmpty
	case p.Escape == nil:
		return append(key, s...), nil
	}
	return p.Escape.Append(key, s), nil
}
