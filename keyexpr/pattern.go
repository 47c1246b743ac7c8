package keyexpr

import (
	"reflect"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Pattern makes the keys of a template for code that follows the paths of its holes by itself,
// without reflection, such as latchkey-gen writes. Texts are escaped here, as they are for the
// template. Whatever is not plain (an empty text, a long key) makes no key here, and the template
// is there to say why, or to make it. A Pattern is immutable and safe for concurrent use.
//
//	p.Key(p.Int(p.Text(make([]byte, 0, 128), 0, req.Tenant), 1, req.Seq))
type Pattern struct {
	values []run.Value
	tail   string // behind the last value
	paths  []string
}

// Pattern returns the pattern of t. It is nil if a value is anything else than a path along fields
// to a text or a whole number, or lower or upper of one, and for a template without values.
func (t *Template) Pattern() *Pattern {
	p := &Pattern{values: t.program.Values, tail: t.program.Tail}
	if t.program.Valid || t.program.Items != nil || len(p.values) == 0 {
		return nil
	}
	for i := range p.values {
		path, ok := fieldPath(&p.values[i].Part, t.program.Roots)
		if !ok {
			return nil
		}
		p.paths = append(p.paths, path)
	}
	return p
}

// fieldPath is the path of a value from its root, if it goes along fields of types that are known.
func fieldPath(p *run.Part, roots []run.Root) (path string, ok bool) {
	if p.Path == nil || p.Leaf == run.LeafAny || p.Leaf == run.LeafLookup {
		return "", false
	}
	t := roots[p.Path.Root].Type
	var b strings.Builder
	b.WriteString(roots[p.Path.Root].Name)
	for _, s := range p.Path.Steps {
		if t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if s.Fetch || s.Lookup || s.Method != "" || t == nil || t.Kind() != reflect.Struct {
			return "", false
		}
		f := t.Field(s.Field)
		b.WriteString("." + f.Name)
		t = f.Type
	}
	return b.String(), t != nil
}

// Paths returns the paths of the values in their order, in Go's spelling and with the names of
// embedded structs: req.Tenant, req.Audit.By.
func (p *Pattern) Paths() []string { return slices.Clone(p.paths) }

// Text appends the value of number i and the literal in front of it to key. It returns nil, which
// all methods pass on, if key is nil or the value is not plain.
func (p *Pattern) Text(key []byte, i int, s string) []byte {
	v := p.value(key, i, run.LeafString)
	if v == nil || len(s) > run.MaxKey {
		return nil
	}
	if v.Via != nil {
		s = v.Via(s)
	}
	switch {
	case s == "":
		return nil
	case v.Escape == nil:
		return append(append(key, v.Before...), s...)
	}
	return v.Escape.Append(append(key, v.Before...), s)
}

// Int is Text for a whole number.
func (p *Pattern) Int(key []byte, i int, n int64) []byte {
	v := p.value(key, i, run.LeafInt)
	if v == nil {
		return nil
	}
	return v.Escape.Int(append(key, v.Before...), n)
}

// Uint is Text for a whole number without a sign.
func (p *Pattern) Uint(key []byte, i int, n uint64) []byte {
	v := p.value(key, i, run.LeafUint)
	if v == nil {
		return nil
	}
	return v.Escape.Uint(append(key, v.Before...), n)
}

// value returns the value of number i if it is a leaf of that kind. Code that was written for a
// field of another type must make no key.
func (p *Pattern) value(key []byte, i int, leaf run.Leaf) *run.Value {
	if key == nil || i >= len(p.values) || p.values[i].Leaf != leaf {
		return nil
	}
	return &p.values[i]
}

// Key returns the key behind whose last value nothing was appended yet. It is empty if there is none.
func (p *Pattern) Key(key []byte) string {
	if key == nil || len(key)+len(p.tail) > run.MaxKey {
		return ""
	}
	return string(append(key, p.tail...))
}
