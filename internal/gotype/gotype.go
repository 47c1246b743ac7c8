// Package gotype shows the types of source code to code that works on reflect.Type. So a tool that has parsed a program and
// not compiled it, such as an analyser or a generator, gets the verdict of the very check that runs when the program starts:
// a second checker, on go/types, would come to disagree with the first one.
//
//	world := gotype.New()
//	_, err := keyexpr.Parse("order:#{req.OrderID}", keyexpr.Roots{"req": keyexpr.Type(world.Of(t))})
//
// A type that is made of the language's own types alone, such as []string, and a few of the standard library, such as
// time.Time, are those of the running program, as they are compared with. All others are of this package's own: they answer
// the methods of reflect.Type as the compiled type would, and there are no values of them. The functions of package reflect
// that make types of types (PointerTo, FuncOf, …) panic for them; their method PointerTo does not.
package gotype

import (
	"context"
	"database/sql/driver"
	"encoding"
	"encoding/json"
	"fmt"
	"go/types"
	"maps"
	"math/big"
	"reflect"
	"strings"
	"time"
)

// A World has the types of one program, each once: equal types of source code are == as reflect.Types, as those of a
// running program are. It is not safe for concurrent use.
type World struct {
	known map[string]reflect.Type // of the running program, by path and name
	made  map[string][]*typ       // by their texts, which are not unique
}

// New returns a World without types. If the running program has packages in common with the source, it takes from them
// the types that checks ask for by name, and those that they lead to.
func New() *World {
	w := &World{known: make(map[string]reflect.Type), made: make(map[string][]*typ)}
	seen := make(map[reflect.Type]bool)
	for _, t := range []reflect.Type{
		reflect.TypeFor[time.Time](), reflect.TypeFor[context.Context](), reflect.TypeFor[json.Number](), reflect.TypeFor[big.Int](),
		reflect.TypeFor[big.Rat](), reflect.TypeFor[big.Float](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[encoding.TextMarshaler](),
		reflect.TypeFor[driver.Valuer](),
	} {
		w.know(reflect.PointerTo(t), seen)
	}
	return w
}

// know notes a type of the running program and what it leads to, so that the two worlds do not meet within one type.
func (w *World) know(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if t.PkgPath() != "" && !strings.Contains(t.Name(), "[") {
		w.known[t.PkgPath()+"."+t.Name()] = t
	}
	for m := range t.Methods() {
		w.know(m.Type, seen)
	}
	switch t.Kind() {
	case reflect.Map:
		w.know(t.Key(), seen)
		w.know(t.Elem(), seen)
	case reflect.Array, reflect.Chan, reflect.Pointer, reflect.Slice:
		w.know(t.Elem(), seen)
	case reflect.Func:
		for in := range t.Ins() {
			w.know(in, seen)
		}
		for out := range t.Outs() {
			w.know(out, seen)
		}
	case reflect.Struct:
		for f := range t.Fields() {
			w.know(f.Type, seen)
		}
	}
}

// Of returns t as a reflect.Type. A type parameter is any, as nothing else is known of it.
func (w *World) Of(t types.Type) reflect.Type {
	t = types.Unalias(t)
	if own := w.own(t); own != nil {
		return own
	}
	key := text(t, true)
	for _, made := range w.made[key] {
		if types.Identical(made.src, t) {
			return made
		}
	}
	made := &typ{w: w, src: t, kind: kindOf(t)}
	w.made[key] = append(w.made[key], made) // before its parts, which may lead back to it
	made.Type = made.standIn()
	return made
}

// Source returns the type of source code that t stands for. ok is false for a type of the running program.
func Source(t reflect.Type) (src types.Type, ok bool) {
	made, ok := t.(*typ)
	if !ok {
		return nil, false
	}
	return made.src, true
}

// own returns the type of the running program that is t, and nil if there is none.
func (w *World) own(t types.Type) reflect.Type {
	switch t := t.(type) {
	case *types.Basic:
		return basics[t.Kind()]
	case *types.TypeParam:
		return basics[types.Invalid]
	case *types.Named:
		if t.Obj().Pkg() == nil {
			return reflect.TypeFor[error]() // comparable is no type of anything
		}
		return w.known[path(t.Obj().Pkg())+"."+t.Obj().Name()]
	case *types.Interface:
		if t.NumMethods() == 0 {
			return reflect.TypeFor[any]()
		}
	case *types.Struct:
		if t.NumFields() == 0 {
			return reflect.TypeFor[struct{}]()
		}
	case *types.Pointer:
		if elem, ok := w.owned(t.Elem()); ok {
			return reflect.PointerTo(elem)
		}
	case *types.Slice:
		if elem, ok := w.owned(t.Elem()); ok {
			return reflect.SliceOf(elem)
		}
	case *types.Array:
		if elem, ok := w.owned(t.Elem()); ok && t.Len() <= maxLen {
			return reflect.ArrayOf(int(t.Len()), elem)
		}
	case *types.Chan:
		if elem, ok := w.owned(t.Elem()); ok && elem.Size() < 1<<16 {
			return reflect.ChanOf(direction(t), elem)
		}
	case *types.Map:
		key, ok := w.owned(t.Key())
		elem, also := w.owned(t.Elem())
		if ok && also {
			return reflect.MapOf(key, elem)
		}
	case *types.Signature:
		return w.ownFunc(t)
	}
	return nil
}

// maxLen bounds the arrays of package reflect, which panics for one that no memory can hold.
const maxLen = 1 << 20

func (w *World) owned(t types.Type) (reflect.Type, bool) {
	own := w.own(types.Unalias(t))
	return own, own != nil
}

func (w *World) ownFunc(t *types.Signature) reflect.Type {
	var in, out []reflect.Type
	for v := range t.Params().Variables() {
		p, ok := w.owned(v.Type())
		if !ok {
			return nil
		}
		in = append(in, p)
	}
	for v := range t.Results().Variables() {
		r, ok := w.owned(v.Type())
		if !ok {
			return nil
		}
		out = append(out, r)
	}
	if len(in)+len(out) > 50 { // package reflect has a bound of its own
		return nil
	}
	return reflect.FuncOf(in, out, t.Variadic())
}

// basics are the types of the language. Any other kind, as behind a mistake in the source, is any.
var basics = func() map[types.BasicKind]reflect.Type {
	m := map[types.BasicKind]reflect.Type{
		types.Invalid: reflect.TypeFor[any](), types.UntypedNil: reflect.TypeFor[any](),
		types.UntypedBool: reflect.TypeFor[bool](), types.UntypedInt: reflect.TypeFor[int](), types.UntypedRune: reflect.TypeFor[rune](),
		types.UntypedFloat: reflect.TypeFor[float64](), types.UntypedComplex: reflect.TypeFor[complex128](), types.UntypedString: reflect.TypeFor[string](),
	}
	maps.Copy(m, kinds)
	return m
}()

func direction(t *types.Chan) reflect.ChanDir {
	switch t.Dir() {
	case types.SendOnly:
		return reflect.SendDir
	case types.RecvOnly:
		return reflect.RecvDir
	}
	return reflect.BothDir
}

// path is the import path of a package, as package reflect has it.
func path(pkg *types.Package) string {
	if pkg.Name() == "main" {
		return "main"
	}
	path, _, _ := strings.Cut(pkg.Path(), " ") // behind which the go command says for which tests it was compiled
	return path
}
