package gotype

import (
	"cmp"
	"go/types"
	"reflect"
	"unsafe"
)

// kinds are the basic types that a type can be made of.
var kinds = map[types.BasicKind]reflect.Type{
	types.Bool: reflect.TypeFor[bool](), types.String: reflect.TypeFor[string](), types.UnsafePointer: reflect.TypeFor[unsafe.Pointer](),
	types.Int: reflect.TypeFor[int](), types.Int8: reflect.TypeFor[int8](), types.Int16: reflect.TypeFor[int16](),
	types.Int32: reflect.TypeFor[int32](), types.Int64: reflect.TypeFor[int64](),
	types.Uint: reflect.TypeFor[uint](), types.Uint8: reflect.TypeFor[uint8](), types.Uint16: reflect.TypeFor[uint16](),
	types.Uint32: reflect.TypeFor[uint32](), types.Uint64: reflect.TypeFor[uint64](), types.Uintptr: reflect.TypeFor[uintptr](),
	types.Float32: reflect.TypeFor[float32](), types.Float64: reflect.TypeFor[float64](),
	types.Complex64: reflect.TypeFor[complex64](), types.Complex128: reflect.TypeFor[complex128](),
}

func kindOf(t types.Type) reflect.Kind {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return basics[t.Kind()].Kind()
	case *types.Array:
		return reflect.Array
	case *types.Chan:
		return reflect.Chan
	case *types.Map:
		return reflect.Map
	case *types.Pointer:
		return reflect.Pointer
	case *types.Signature:
		return reflect.Func
	case *types.Slice:
		return reflect.Slice
	case *types.Struct:
		return reflect.Struct
	}
	return reflect.Interface
}

// Types of the running program that stand in for named types of the source.
type (
	named struct{ _ byte }

	namedBool       bool
	namedString     string
	namedPointer    unsafe.Pointer
	namedInt        int
	namedInt8       int8
	namedInt16      int16
	namedInt32      int32
	namedInt64      int64
	namedUint       uint
	namedUint8      uint8
	namedUint16     uint16
	namedUint32     uint32
	namedUint64     uint64
	namedUintptr    uintptr
	namedFloat32    float32
	namedFloat64    float64
	namedComplex64  complex64
	namedComplex128 complex128
	namedAny        any
	namedMethods    interface{ isNobody(named) }
)

var namedKinds = map[reflect.Kind]reflect.Type{
	reflect.Bool: reflect.TypeFor[namedBool](), reflect.String: reflect.TypeFor[namedString](), reflect.UnsafePointer: reflect.TypeFor[namedPointer](),
	reflect.Int: reflect.TypeFor[namedInt](), reflect.Int8: reflect.TypeFor[namedInt8](), reflect.Int16: reflect.TypeFor[namedInt16](),
	reflect.Int32: reflect.TypeFor[namedInt32](), reflect.Int64: reflect.TypeFor[namedInt64](),
	reflect.Uint: reflect.TypeFor[namedUint](), reflect.Uint8: reflect.TypeFor[namedUint8](), reflect.Uint16: reflect.TypeFor[namedUint16](),
	reflect.Uint32: reflect.TypeFor[namedUint32](), reflect.Uint64: reflect.TypeFor[namedUint64](), reflect.Uintptr: reflect.TypeFor[namedUintptr](),
	reflect.Float32: reflect.TypeFor[namedFloat32](), reflect.Float64: reflect.TypeFor[namedFloat64](),
	reflect.Complex64: reflect.TypeFor[namedComplex64](), reflect.Complex128: reflect.TypeFor[namedComplex128](),
	reflect.Struct: reflect.TypeFor[named](),
}

// standIn is the type of the running program that package reflect sees in the place of t where it looks behind the methods: as
// the argument of a method of one of its own types, as in string's AssignableTo. It is of t's kind, and what is assignable to
// it is assignable to t, but for an interface that the running program does not know.
func (t *typ) standIn() reflect.Type {
	if t.Type != nil {
		return t.Type
	}
	t.Type = namedKinds[reflect.Struct] // for what leads back here
	switch u := t.src.Underlying().(type) {
	case *types.Array:
		return reflect.ArrayOf(int(min(u.Len(), maxLen)), t.w.standInOf(u.Elem()))
	case *types.Chan:
		return reflect.ChanOf(direction(u), reflect.PointerTo(t.w.standInOf(u.Elem())))
	case *types.Map:
		return reflect.MapOf(t.w.standInOf(u.Key()), t.w.standInOf(u.Elem()))
	case *types.Pointer:
		return reflect.PointerTo(t.w.standInOf(u.Elem()))
	case *types.Slice:
		return reflect.SliceOf(t.w.standInOf(u.Elem()))
	case *types.Signature:
		return reflect.TypeFor[func(named) named]()
	case *types.Interface:
		if u.NumMethods() == 0 {
			return reflect.TypeFor[namedAny]()
		}
		return t.ownInterface()
	}
	return namedKinds[t.kind]
}

// standInOf is the stand-in for a part of a type. That of a named one is like nothing else.
func (w *World) standInOf(t types.Type) reflect.Type {
	part, ok := w.Of(t).(*typ)
	switch {
	case !ok:
		return w.Of(t)
	case part.Name() != "":
		return namedKinds[cmp.Or(basicKind(part.kind), reflect.Struct)]
	}
	return part.standIn()
}

// basicKind is k if values of that kind have no parts.
func basicKind(k reflect.Kind) reflect.Kind {
	if k < reflect.Array || k == reflect.String {
		return k
	}
	return reflect.Invalid
}

// ownInterface is an interface of the running program with the methods of t, of which there are few.
func (t *typ) ownInterface() reflect.Type {
	for _, own := range t.w.known {
		if own.Kind() == reflect.Interface && own.NumMethod() == t.NumMethod() && t.Implements(own) {
			return own
		}
	}
	return reflect.TypeFor[namedMethods]()
}
