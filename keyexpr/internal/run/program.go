// Package run is the last stage of every key, whatever language it is written in: it asks for
// the facts, follows paths through them, and puts texts together within bounds of time and
// memory. Package keyexpr compiles templates to the programs of this package, and package spel
// does so with Java's expressions.
package run

import (
	"crypto/sha256"
	"reflect"
	"slices"
	"unicode/utf8"
)

// A program is a compiled text: parts in their order, each of which is a literal, a path, a closure or a join. Running
// it costs about as much as writing the same in Go by hand, as all decisions that can be made at start are in it.

// Program makes the keys of a request. It is immutable and safe for concurrent use. It is the same for a template and
// for a key of Java. They differ in their parts: those of Java have no Escape.
type Program struct {
	Text  string
	Roots []Root
	Parts []Part
	// Items make a key each, between Parts[:At] and Parts[At:]. Without any there is one key.
	Items *Items
	At    int
	// Raw keys are made elsewhere, too, where nobody would digest them: one that is too long is an error.
	Raw bool
	// Valid keys are UTF-8, as all texts of Java are.
	Valid  bool
	Fields []string // what is read of each root
	// Values are the parts that are no literals, and Tail the text behind the last. Finish fills them in.
	Values []Value
	Tail   string
	plain  bool // nothing but literals and paths to texts and numbers
}

// Part is a piece of a key: a literal, the value at the end of a path, or the output of a function. A part is data as
// far as possible, and a closure where it has to be. Data can be read back, weighed and shown.
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
	// Values is how many values key(…) joins with colons: 1 or more, or -1 if it is now these and now those.
	Values int
}

// Literal reports whether p is text of the template itself.
func (p *Part) Literal() bool { return p.Path == nil && p.Append == nil }

// All returns the parts of one key.
func (p *Program) All() []Part {
	if p.Items == nil {
		return p.Parts
	}
	return slices.Insert(slices.Clone(p.Parts), p.At, p.Items.Item)
}

// ExpandWith is Expand with a state, which knows afterwards what was spent. The buffer belongs
// to the state and is used again. The key is copied out of it, as a text, which is the one
// allocation that can't be spared.
func (p *Program) ExpandWith(st *State, keys []string) (_ []string, err error) {
	src := p.Text
	defer func() {
		if r := recover(); r != nil {
			// A panic while facts are read is the application's own. To answer 400 for its nil pointer would hide it
			// from whoever watches for 500s.
			if st.Asking {
				panic(r)
			}
			err = BlameHole(src, Recovered(r))
		}
	}()
	if p.Items != nil {
		keys, err = p.expandItems(st, keys, &src)
	} else if st.buf, err = st.parts(st.buf[:0], p.Parts, &src); err == nil {
		var key string
		key, err = p.finish(st, st.buf)
		keys = append(keys, key)
	}
	if err != nil {
		return nil, BlameHole(src, err)
	}
	return keys, nil
}

// finish makes the text of a key, which is shortened if it is long. The digest reads all of it once more.
func (p *Program) finish(st *State, key []byte) (string, error) {
	// Java replaces what is no UTF-8 when it decodes the request, with the same rune for each. Its key for two such values is one,
	// and ours would be two, of which none is Java's.
	if p.Valid && !utf8.Valid(key) {
		return "", errNoUTF8
	}
	if len(key) <= MaxKey {
		return string(key), nil
	}
	if err := st.Spend(len(key)); err != nil {
		return "", err
	}
	short, err := p.shorten(key)
	return string(short), err
}

// parts appends the texts of parts; src becomes the source of the one at work. It is set before a part is made, so that
// an error, and a panic too, is blamed on the hole that it comes from.
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
func (st *State) path(key []byte, p *Part) ([]byte, error) {
	v, err := p.Path.Follow(&st.Source, st.Elems)
	switch {
	case err != nil:
	case p.Via == nil:
		return st.Leaf(key, v, p.Leaf, p.Escape)
	case !v.IsValid():
		err = ErrNoText // nil is the argument, and not the value
	default:
		if err = st.Spend(v.Len()); err == nil {
			return st.Text(key, p.Via(v.String()), p.Escape)
		}
	}
	return key, err
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
