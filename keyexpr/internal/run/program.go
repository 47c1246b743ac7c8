// Package run is the last stage of every key, whatever language it is written in: it asks for
// the facts, follows paths through them, and puts texts together within bounds of time and
// memory. Package keyexpr compiles templates to the programs of this package, and package spel
// does so with Java's expressions.
package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"unicode/utf8"
)

// A program is what is left of a text: parts in their order, of which each is a literal, a path,
// a closure or a join. Running it costs about as much as writing the same in Go by hand, as what
// can be decided at start has been.

// Program makes the keys of a request. It is immutable and safe for concurrent use. It is the
// same for a template and for a key of Java. What differs is in its parts: those of Java have no
// Escape.
type Program struct {
	Text  string
	Roots []Root
	Parts []Part
	// Items make a key each, between Parts[:At] and Parts[At:]. Without any there is one key.
	Items []Items
	At    int
	// Raw keys are made elsewhere, too, where nobody would digest them: one that is too long is an error.
	Raw bool
	// Valid keys are UTF-8, as all texts of Java are.
	Valid  bool
	Fields []string // what is read of each root
	plain  bool     // nothing but literals and paths
	own    int      // as firstOwn says
}

// Part is a piece of a key: a literal, what is at the end of a path, or what a function appends.
// A part is data as far as possible, and a closure where it has to be. Data can be read back,
// weighed and shown.
type Part struct {
	Text   string
	Src    string       // of the hole, for messages
	Type   reflect.Type // of the value; nil if it is not known
	Path   *Path
	Leaf   Leaf
	Via    func(string) string // what becomes of the text at the end of the path
	Escape *Escape
	Append func(st *State, key []byte, e *Escape) ([]byte, error)
	Cost   int // steps of Append
	// Join makes it several values with Text between them.
	Join *Items
	// field is where the text of a root's own field is, counted from 1. There is one such root.
	field int
}

// Literal reports whether p is text of the template itself.
func (p *Part) Literal() bool { return p.Path == nil && p.Append == nil && p.Join == nil }

// Expand appends the keys of a request to keys, sorted and distinct. Most templates are a
// literal and one or two paths to short texts. They are made on the stack, without a state, whose
// pool costs as much as the two paths. What turns out not to be short is started again with a state
// and its budget, with the facts that are there.
//
// The quick way has no budget and needs none: a value that is longer than a key is left to the other
// way, and there are only so many parts.
func (p *Program) Expand(ctx context.Context, keys []string, facts func(root string) (any, error)) ([]string, error) {
	return p.expand(ctx, keys, facts, nil)
}

// ExpandOf is Expand where request points to the value of every root.
func (p *Program) ExpandOf(ctx context.Context, keys []string, request any) ([]string, error) {
	return p.expand(ctx, keys, nil, request)
}

// expand has facts, or else a request.
func (p *Program) expand(ctx context.Context, keys []string, facts func(root string) (any, error), request any) ([]string, error) {
	// Where a closure runs, what the pool costs is lost in the rest.
	if !p.plain {
		return p.expandSlowly(ctx, keys, facts, request, nil)
	}
	if p.own == 0 {
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
		return nil, BlameHole(p.Parts[p.own-1].Src, err)
	}
	var room [MaxKey / 4]byte
	if key, done := p.texts(room[:0], 0, at.value); done == len(p.Parts) && len(key) <= MaxKey {
		if keys == nil {
			return []string{string(key)}, nil
		}
		return append(keys, string(key)), nil
	}
	at.known = true
	return p.expandPaths(ctx, keys, facts, request, at)
}

// expandPaths is expand for literals and paths. The first root may be known.
func (p *Program) expandPaths(ctx context.Context, keys []string, facts func(root string) (any, error), request any, first slot) ([]string, error) {
	// Both are on the stack, and cleared for each request, so that more room would be paid for by each.
	// A longer key moves the buffer to the heap.
	var slots [maxSlots]slot
	var room [MaxKey / 4]byte
	slots[0] = first
	buf := room[:0]
	for i := 0; i < len(p.Parts); i++ {
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
			var done int
			if buf, done = p.texts(buf, i, at.value); done > 0 {
				i += done - 1
				continue
			}
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
	if keys == nil {
		return []string{string(buf)}, nil
	}
	return append(keys, string(buf)), nil
}

// texts appends the parts from the i-th on, which is of this root, as far as they are literals and texts of the root's own fields, and
// returns how many that is. Most keys are made of nothing else. What is wrong with a text is left to quick.
func (p *Program) texts(key []byte, i int, root reflect.Value) (_ []byte, done int) {
	fields := reflect.Indirect(root)
	if fields.Kind() != reflect.Struct {
		return key, 0
	}
	parts := p.Parts[i:]
	for done = range parts {
		part := &parts[done]
		switch {
		case part.field > 0:
			s := fields.Field(part.field - 1).String()
			if s == "" || len(s) > MaxKey {
				return key, done
			}
			key = part.Escape.Append(key, s)
		case part.Path == nil:
			key = append(key, part.Text...)
		default:
			return key, done
		}
	}
	return key, len(parts)
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

// Finish finds out whether all parts are literals and paths to texts and numbers. It runs once,
// when all parts are there.
func (p *Program) Finish() {
	p.plain = len(p.Items) == 0 && len(p.Roots) <= maxSlots
	own := -1 // the root whose fields are read by texts
	for i := range p.Parts {
		part := &p.Parts[i]
		p.plain = p.plain && part.plain()
		if part.Path == nil || part.Leaf != LeafString || part.Via != nil || part.Escape == nil || own >= 0 && own != part.Path.Root {
			continue
		}
		if part.field = part.Path.field(); part.field > 0 {
			own = part.Path.Root
		}
	}
	p.own = p.firstOwn()
}

// firstOwn returns the number of the first text if there is nothing but literals and texts of the only root's own fields, or else 0.
func (p *Program) firstOwn() (first int) {
	if !p.plain || p.Valid || len(p.Roots) != 1 {
		return 0
	}
	for i := range p.Parts {
		switch part := &p.Parts[i]; {
		case part.Literal():
		case part.field == 0:
			return 0
		case first == 0:
			first = i + 1
		}
	}
	return first
}

// plain reports whether the quick way knows how to make p. It looks a name up, or goes from a value
// along fields and entries, and never does the one after the other.
func (p *Part) plain() bool {
	if p.Path == nil {
		return p.Literal()
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

// ExpandWith is Expand with a state, which knows afterwards what was spent. The buffer belongs
// to the state and is used again. The key is copied out of it, as a text, which is the one
// allocation that can't be spared.
func (p *Program) ExpandWith(st *State, keys []string) (_ []string, err error) {
	src := p.Text
	defer func() {
		if r := recover(); r != nil {
			// What panics while it is asked for facts is the application. To answer 400 for its nil pointer
			// would hide it from whoever watches for 500s.
			if st.Asking {
				panic(r)
			}
			err = BlameHole(src, Recovered(r))
		}
	}()
	if len(p.Items) > 0 {
		return p.expandItems(st, keys, &src)
	}
	key, err := st.parts(st.buf[:0], p.Parts, &src)
	if err != nil {
		return nil, BlameHole(src, err)
	}
	st.buf = key
	// Java replaces what is no UTF-8 when it decodes the request, with the same rune for each. Its key
	// for two such values is one, and ours would be two, of which none is Java's.
	if p.Valid && !utf8.Valid(key) {
		return nil, Blame(p.Text, errNoUTF8)
	}
	if len(key) > MaxKey {
		if key, err = p.shorten(key); err != nil {
			return nil, Blame(p.Text, err)
		}
	}
	if keys == nil {
		return []string{string(key)}, nil // which is quicker than to grow nothing
	}
	return append(keys, string(key)), nil
}

// parts appends what parts stand for; src becomes the source of the one at work. The source is
// noted before a part is made, so that an error, and a panic too, is blamed on the hole that it
// comes from.
func (st *State) parts(key []byte, parts []Part, src *string) (_ []byte, err error) {
	for i := range parts {
		p := &parts[i]
		switch {
		case p.Path != nil:
			*src = p.Src
			key, err = st.path(key, p)
		case p.Append != nil:
			*src = p.Src
			key, err = p.Append(st, key, p.Escape)
		case p.Join != nil:
			*src = p.Src
			key, err = st.join(key, p)
		default:
			key = append(key, p.Text...)
		}
		if err != nil {
			return key, err
		}
	}
	return key, nil
}

// path appends the value at the end of a path. The function behind a path is charged for what it
// reads; what it makes is charged as text.
func (st *State) path(key []byte, p *Part) (_ []byte, err error) {
	var s string
	if p.Leaf == LeafLookup {
		var ok bool
		if s, ok, err = st.look(p.Path); err == nil && !ok {
			err = p.missing()
		}
	} else {
		var v reflect.Value
		if v, err = p.Path.Follow(&st.Source, st.Elems); err == nil && !v.IsValid() {
			err = p.missing()
		}
		if err == nil && p.Via == nil {
			return st.Leaf(key, v, p.Leaf, p.Escape)
		}
		s = v.String()
	}
	if err == nil && p.Via != nil {
		if err = st.Spend(len(s)); err == nil {
			s = p.Via(s)
		}
	}
	if err != nil {
		return key, err
	}
	return st.text(key, s, p.Escape)
}

// missing is the error of a path that ends in nil. Behind a function, nil is the argument and
// not the value, and the error says so.
func (p *Part) missing() error {
	if p.Via != nil {
		return ErrNoText
	}
	return ErrNil
}

var errNoUTF8 = Faulty("is no UTF-8, which no text of Java is")

// Redis takes longer ones, and whoever lists them by hand does not want to.
const (
	// MaxKey is the length of the longest key.
	MaxKey = 512
	// DigestMark begins the digest of a key that was shortened. It is never part of a value, in which two hex digits follow
	// each %, and is refused in literals.
	DigestMark = "%~"
	digestTail = len(DigestMark) + 2*sha256.Size
	maxTag     = 256 // the longest hash tag that is kept in a key with a digest
)

// Together returns what parts stand for as one text. A text of this kind is mostly short. What
// fits into the room on the stack is copied once.
func (st *State) Together(parts []Part) (string, error) {
	src := ""
	var room [128]byte
	// The place within is dropped, as the hole that asks for the text has a source of its own, which
	// the error will name.
	text, err := st.parts(room[:0], parts, &src)
	if err == nil {
		err = st.Spend(len(text))
	}
	if err != nil {
		return "", err
	}
	return string(text), nil
}

// Text appends a text that must not be empty; a nil Escape leaves it as it is.
func (st *State) Text(dst []byte, s string, e *Escape) ([]byte, error) { return st.text(dst, s, e) }
