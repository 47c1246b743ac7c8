package run

import (
	"context"
	"unicode/utf8"
)

// Expand appends the keys of a request to keys, sorted and distinct. Roots are asked for by facts, or else request points to
// the value of every root. Most templates are a literal and one or two paths to short texts. They are made on the stack,
// without a state, whose pool costs as much as the paths. Whatever is not plain is started again with a state, with the facts
// that are there.
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

// Finish finds out whether all parts are literals and paths to texts and numbers, whose methods are not called.
func (p *Program) Finish() {
	p.plain = p.Items == nil && len(p.Roots) <= maxSlots
	for i := range p.Parts {
		part := &p.Parts[i]
		p.plain = p.plain && (part.Literal() || part.Path != nil && !part.Path.Elem && part.Leaf != LeafAny)
		for j := range part.steps() {
			s := &part.Path.Steps[j]
			p.plain = p.plain && s.Method == "" && s.Lookup == (part.Leaf == LeafLookup)
		}
	}
}

func (p *Part) steps() []Step {
	if p.Path == nil {
		return nil
	}
	return p.Path.Steps
}

// quick makes a key of short texts and numbers. It needs no budget, as there are only so many parts.
func (p *Program) quick(slots *[maxSlots]slot, facts func(root string) (any, error), request any) (string, bool) {
	var room [MaxKey / 4]byte
	key := room[:0]
	for i := range p.Parts {
		part := &p.Parts[i]
		if part.Path == nil {
			key = append(key, part.Text...)
			continue
		}
		at := &slots[part.Path.Root]
		if !at.known {
			at.fill(&p.Roots[part.Path.Root], facts, request)
		}
		ok := false
		if key, ok = part.quick(key, at); !ok {
			return "", false
		}
	}
	if len(key) > MaxKey || p.Valid && !utf8.Valid(key) {
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
		v, err := walk(at.value, p.Path.Steps)
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
