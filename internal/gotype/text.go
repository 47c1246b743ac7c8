package gotype

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
)

// text is a type as package reflect writes it; paths are those of all packages, as in the arguments of a generic type.
func text(t types.Type, paths bool) string {
	var b strings.Builder
	write(&b, t, paths)
	return b.String()
}

func write(b *strings.Builder, t types.Type, paths bool) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		b.WriteString(qualifier(t.Obj().Pkg(), paths) + nameOf(t))
	case *types.Pointer:
		b.WriteString("*")
		write(b, t.Elem(), paths)
	case *types.Slice:
		b.WriteString("[]")
		write(b, t.Elem(), paths)
	case *types.Array:
		fmt.Fprintf(b, "[%d]", t.Len())
		write(b, t.Elem(), paths)
	case *types.Map:
		b.WriteString("map[")
		write(b, t.Key(), paths)
		b.WriteString("]")
		write(b, t.Elem(), paths)
	case *types.Chan:
		b.WriteString(map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()])
		inner, ok := types.Unalias(t.Elem()).(*types.Chan)
		if ok = ok && t.Dir() == types.SendRecv && inner.Dir() == types.RecvOnly; ok {
			b.WriteString("(")
		}
		if write(b, t.Elem(), paths); ok {
			b.WriteString(")")
		}
	case *types.Signature:
		b.WriteString("func")
		writeSignature(b, t, paths)
	case *types.Struct:
		writeStruct(b, t, paths)
	case *types.Interface:
		writeInterface(b, t, paths)
	default:
		if basic, ok := t.(*types.Basic); ok {
			b.WriteString(basics[basic.Kind()].String())
		} else {
			b.WriteString("interface {}")
		}
	}
}

func qualifier(pkg *types.Package, paths bool) string {
	switch {
	case pkg == nil:
		return ""
	case paths:
		return path(pkg) + "."
	}
	return pkg.Name() + "."
}

// nameOf is the name of a type with its arguments.
func nameOf(t *types.Named) string {
	if t.TypeArgs().Len() == 0 {
		return t.Obj().Name()
	}
	var args []string
	for arg := range t.TypeArgs().Types() {
		args = append(args, text(arg, true))
	}
	return t.Obj().Name() + "[" + strings.Join(args, ",") + "]"
}

func writeSignature(b *strings.Builder, t *types.Signature, paths bool) {
	b.WriteString("(")
	for i := range t.Params().Len() {
		if i > 0 {
			b.WriteString(", ")
		}
		p := t.Params().At(i).Type()
		if t.Variadic() && i == t.Params().Len()-1 {
			b.WriteString("...")
			p = p.Underlying().(*types.Slice).Elem()
		}
		write(b, p, paths)
	}
	b.WriteString(")")
	n := t.Results().Len()
	if n == 0 {
		return
	}
	b.WriteString(" ")
	if n > 1 {
		b.WriteString("(")
	}
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		write(b, t.Results().At(i).Type(), paths)
	}
	if n > 1 {
		b.WriteString(")")
	}
}

func writeStruct(b *strings.Builder, t *types.Struct, paths bool) {
	b.WriteString("struct {")
	for i := range t.NumFields() {
		if i > 0 {
			b.WriteString(";")
		}
		f := t.Field(i)
		b.WriteString(" ")
		if !f.Embedded() {
			b.WriteString(f.Name() + " ")
		}
		write(b, f.Type(), paths)
		if tag := t.Tag(i); tag != "" {
			b.WriteString(" " + strconv.Quote(tag))
		}
	}
	if t.NumFields() > 0 {
		b.WriteString(" ")
	}
	b.WriteString("}")
}

func writeInterface(b *strings.Builder, t *types.Interface, paths bool) {
	b.WriteString("interface {")
	for i := range t.NumMethods() {
		if i > 0 {
			b.WriteString(";")
		}
		m := t.Method(i)
		b.WriteString(" ")
		if !m.Exported() {
			b.WriteString(qualifier(m.Pkg(), paths))
		}
		b.WriteString(m.Name())
		writeSignature(b, m.Signature(), paths)
	}
	if t.NumMethods() > 0 {
		b.WriteString(" ")
	}
	b.WriteString("}")
}
