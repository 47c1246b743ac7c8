package gotype

import (
	"go/types"
	"iter"
	"reflect"
	"slices"
	"strings"
)

// typ is a type of the source. Embedded is what stands in for it; a method that is not below is about the layout of values,
// of which there are none.
type typ struct {
	reflect.Type
	w    *World
	src  types.Type
	kind reflect.Kind

	methods []reflect.Method
	asked   bool // for methods
	fields  []reflect.StructField
}

// PointerTo returns the type of pointers to t. Packages look for this method, as they must not depend on go/types.
func (t *typ) PointerTo() reflect.Type { return t.w.Of(types.NewPointer(t.src)) }

func (t *typ) Kind() reflect.Kind { return t.kind }

func (t *typ) Name() string {
	if named, ok := t.src.(*types.Named); ok {
		return nameOf(named)
	}
	return ""
}

func (t *typ) PkgPath() string {
	if named, ok := t.src.(*types.Named); ok {
		return path(named.Obj().Pkg())
	}
	return ""
}

func (t *typ) String() string { return text(t.src, false) }

func (t *typ) Comparable() bool { return types.Comparable(t.src) }

func (t *typ) Elem() reflect.Type {
	if e, ok := t.src.Underlying().(interface{ Elem() types.Type }); ok {
		return t.w.Of(e.Elem())
	}
	panic("gotype: Elem of " + t.String())
}

func (t *typ) Key() reflect.Type { return t.w.Of(t.src.Underlying().(*types.Map).Key()) }

func (t *typ) Len() int { return int(t.src.Underlying().(*types.Array).Len()) }

func (t *typ) ChanDir() reflect.ChanDir { return direction(t.src.Underlying().(*types.Chan)) }

// These methods are for functions.

func (t *typ) signature() *types.Signature { return t.src.Underlying().(*types.Signature) }

func (t *typ) IsVariadic() bool { return t.signature().Variadic() }

func (t *typ) NumIn() int { return t.signature().Params().Len() }

func (t *typ) NumOut() int { return t.signature().Results().Len() }

func (t *typ) In(i int) reflect.Type { return t.w.Of(t.signature().Params().At(i).Type()) }

func (t *typ) Out(i int) reflect.Type { return t.w.Of(t.signature().Results().At(i).Type()) }

func (t *typ) Ins() iter.Seq[reflect.Type] { return each(t.NumIn(), t.In) }

func (t *typ) Outs() iter.Seq[reflect.Type] { return each(t.NumOut(), t.Out) }

func each[T any](n int, at func(int) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range n {
			if !yield(at(i)) {
				return
			}
		}
	}
}

// These methods are for structs.

func (t *typ) NumField() int { return t.src.Underlying().(*types.Struct).NumFields() }

func (t *typ) Field(i int) reflect.StructField {
	if t.fields == nil {
		s := t.src.Underlying().(*types.Struct)
		for i := range s.NumFields() {
			v := s.Field(i)
			f := reflect.StructField{Name: v.Name(), Type: t.w.Of(v.Type()), Tag: reflect.StructTag(s.Tag(i)), Index: []int{i}, Anonymous: v.Embedded()}
			if !v.Exported() {
				f.PkgPath = path(v.Pkg())
			}
			t.fields = append(t.fields, f)
		}
	}
	f := t.fields[i]
	f.Index = slices.Clone(f.Index)
	return f
}

func (t *typ) Fields() iter.Seq[reflect.StructField] { return each(t.NumField(), t.Field) }

func (t *typ) FieldByIndex(index []int) (f reflect.StructField) {
	var in reflect.Type = t
	for i, x := range index {
		if i > 0 && in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		f = in.Field(x)
		in = f.Type
	}
	return f
}

func (t *typ) FieldByName(name string) (reflect.StructField, bool) {
	return t.FieldByNameFunc(func(s string) bool { return s == name })
}

func (t *typ) FieldByNameFunc(match func(string) bool) (reflect.StructField, bool) {
	var found []reflect.StructField
	for _, f := range reflect.VisibleFields(t) {
		if match(f.Name) {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return reflect.StructField{}, false
	}
	return found[0], true
}

// These methods are for types with methods.

func (t *typ) NumMethod() int { return len(t.all()) }

func (t *typ) Method(i int) reflect.Method { return t.all()[i] }

func (t *typ) Methods() iter.Seq[reflect.Method] { return slices.Values(t.all()) }

func (t *typ) MethodByName(name string) (reflect.Method, bool) {
	i := slices.IndexFunc(t.all(), func(m reflect.Method) bool { return m.Name == name })
	if i < 0 {
		return reflect.Method{}, false
	}
	return t.methods[i], true
}

// all returns the methods in the order of their names: those of an interface without their receiver, and else the exported
// ones, with it.
func (t *typ) all() []reflect.Method {
	if t.asked {
		return t.methods
	}
	t.asked = true
	for method := range types.NewMethodSet(t.src).Methods() {
		f := method.Obj().(*types.Func)
		if t.kind != reflect.Interface && !f.Exported() {
			continue
		}
		m := reflect.Method{Name: f.Name(), Type: t.w.Of(t.methodType(f.Signature()))}
		if !f.Exported() {
			m.PkgPath = path(f.Pkg())
		}
		t.methods = append(t.methods, m)
	}
	slices.SortFunc(t.methods, func(a, b reflect.Method) int { return strings.Compare(a.Name, b.Name) })
	for i := range t.methods {
		t.methods[i].Index = i
	}
	return t.methods
}

func (t *typ) methodType(s *types.Signature) types.Type {
	var params []*types.Var
	if t.kind != reflect.Interface {
		params = append(params, types.NewParam(0, nil, "", t.src))
	}
	params = append(params, slices.Collect(s.Params().Variables())...)
	return types.NewSignatureType(nil, nil, nil, types.NewTuple(params...), s.Results(), s.Variadic())
}

// Implements and the two below it take types of both worlds.
func (t *typ) Implements(u reflect.Type) bool {
	if u.Kind() != reflect.Interface {
		panic("gotype: Implements of " + u.String())
	}
	for want := range u.Methods() {
		m, ok := t.MethodByName(want.Name)
		if !ok || !t.sameMethod(m, want) {
			return false
		}
	}
	return true
}

// sameMethod reports whether m, a method of t, is one of an interface.
func (t *typ) sameMethod(m, want reflect.Method) bool {
	skip := 0
	if t.kind != reflect.Interface {
		skip = 1
	}
	in := slices.Collect(m.Type.Ins())[skip:]
	return m.PkgPath == want.PkgPath && m.Type.IsVariadic() == want.Type.IsVariadic() &&
		slices.Equal(in, slices.Collect(want.Type.Ins())) && slices.Equal(slices.Collect(m.Type.Outs()), slices.Collect(want.Type.Outs()))
}

func (t *typ) AssignableTo(u reflect.Type) bool {
	switch {
	case u == reflect.Type(t):
		return true
	case u.Kind() == reflect.Interface:
		return t.Implements(u)
	case t.kind != u.Kind() || t.Name() != "" && u.Name() != "":
		return false
	}
	return t.w.underlying(t) == t.w.underlying(u)
}

// ConvertibleTo does not know the conversions between slices and arrays, nor those of bytes and runes to texts.
func (t *typ) ConvertibleTo(u reflect.Type) bool {
	number := func(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }
	return t.AssignableTo(u) || number(t.kind) && number(u.Kind()) || t.kind == u.Kind() && t.w.underlying(t) == t.w.underlying(u)
}

// underlying is what a type of either world is made of.
func (w *World) underlying(t reflect.Type) reflect.Type {
	made, ok := t.(*typ)
	switch {
	case ok:
		return w.Of(made.src.Underlying())
	case t.Name() == "":
		return t
	}
	for kind, basic := range kinds {
		if basic.Kind() == t.Kind() {
			return basics[kind]
		}
	}
	return t
}
