package run

import (
	"context"
	"unicode/utf8"
)

// Expand appends the keys of a request to keys, sorted and distinct. The values of roots come from facts, or else
// request points to the value of every root. Most templates are a literal and one or two paths to short texts. They are
// made on the stack, without a state, whose pool costs as much as the paths. Any other template starts again with a
// state, with the facts that are there.
func (p *Program) Expand(ctx context.Context, keys []string, facts func(root string) (any, error), request any) ([]string, error) {
	var slots [maxSlots]slot
	if p.plain {
		if key, ok := p.quick(&slots, facts, request); ok {
			return append(keys, key), nil
		}
	}
	st := NewState(ctx, facts, p.Roots)
	defer st.Release()
	st.Request = request
	copy(st.slots, slots[:])
	return p.ExpandWith(st, keys)
}

// maxSlots is how many roots the quick way has room for. Two are the request and a header.
const maxSlots = 2

// Value is a value of a key, with the text in front of it.
type Value struct {
	Before string
	root   int
	Part
}

// Finish finds out whether all parts are literals and paths to texts and numbers, whose methods are not called.
func (p *Program) Finish() {
	p.plain = p.Items == nil && len(p.Roots) <= maxSlots
	p.Values, p.Tail = nil, ""
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Literal() {
			p.Tail += part.Text
			continue
		}
		p.Values, p.Tail = append(p.Values, Value{p.Tail, 0, *part}), ""
		if p.plain = p.plain && part.Path != nil && !part.Path.Elem && part.Leaf != LeafAny; p.plain {
			for _, s := range part.Path.Steps {
				p.plain = p.plain && s.Method == "" && s.Lookup == (part.Leaf == LeafLookup)
			}
			p.Values[len(p.Values)-1].root = part.Path.Root
		}
	}
}

// quick makes a key of short texts and numbers. It needs no budget, as there are only so many parts.
func (p *Program) quick(slots *[maxSlots]slot, facts func(root string) (any, error), request any) (string, bool) {
	var room [MaxKey / 4]byte
	key := room[:0]
	for i := range p.Values {
		v := &p.Values[i]
		key = append(key, v.Before...)
		at := &slots[v.root]
		if !at.known {
			at.fill(&p.Roots[v.root], facts, request)
		}
		var ok bool
		if key, ok = v.quick(key, at); !ok {
			return "", false
		}
	}
	if key = append(key, p.Tail...); len(key) > MaxKey || p.Valid && !utf8.Valid(key) {
		return "", false
	}
	return string(key), true
}

// quick appends what is at the end of the path of p, which starts at the root in a slot.
func (p *Part) quick(key []byte, at *slot) ([]byte, bool) {
	var s string
	switch {
	case at.err != nil:
		return key, false
	case p.Leaf == LeafLookup:
		name, _ := p.Path.Steps[0].By.(string)
		text, ok, err := at.find.Find(name)
		if err != nil || !ok {
			return key, false
		}
		s = text
	default:
		v, err := Walk(at.value, p.Path.Steps)
		if err != nil || !v.IsValid() {
			return key, false
		}
		if p.Leaf != LeafString {
			return appendNumber(key, v, p.Leaf, p.Escape), true
		}
		s = v.String()
	}
	if len(s) > MaxKey {
		return key, false
	}
	if p.Via != nil {
		s = p.Via(s)
	}
	if p.Escape == nil {
		return append(key, s...), s != ""
	}
	return p.Escape.Append(key, s), s != ""
}
