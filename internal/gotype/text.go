package gotype

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
)

// text is a type as package reflect writes it; paths are those of all packages, as in the arguments of a generic type.
func text(t types.Type, paths bool) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		return qualifier(t.Obj().Pkg(), paths) + nameOf(t)
	case *types.Pointer:
		return "*" + text(t.Elem(), paths)
	case *types.Slice:
		return "[]" + text(t.Elem(), paths)
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), text(t.Elem(), paths))
	case *types.Map:
		return "map[" + text(t.Key(), paths) + "]" + text(t.Elem(), paths)
	case *types.Chan:
		elem := text(t.Elem(), paths)
		if inner, ok := types.Unalias(t.Elem()).(*types.Chan); ok && t.Dir() == types.SendRecv && inner.Dir() == types.RecvOnly {
			elem = "(" + elem + ")"
		}
		return map[types.ChanDir]string{types.SendRecv: "chan ", types.SendOnly: "chan<- ", types.RecvOnly: "<-chan "}[t.Dir()] + elem
	case *types.Signature:
		return "func" + signature(t, paths)
	case *types.Struct:
		return structText(t, paths)
	case *types.Interface:
		return interfaceText(t, paths)
	case *types.Basic:
		return basics[t.Kind()].String()
	}
	return "interface {}"
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

func signature(t *types.Signature, paths bool) string {
	list := func(of *types.Tuple) (all []string) {
		for v := range of.Variables() {
			all = append(all, text(v.Type(), paths))
		}
		return all
	}
	params, results := list(t.Params()), list(t.Results())
	if t.Variadic() {
		last := &params[len(params)-1]
		*last = "..." + strings.TrimPrefix(*last, "[]")
	}
	s := "(" + strings.Join(params, ", ") + ")"
	switch len(results) {
	case 0:
		return s
	case 1:
		return s + " " + results[0]
	}
	return s + " (" + strings.Join(results, ", ") + ")"
}

func structText(t *types.Struct, paths bool) string {
	var parts []string
	for i := range t.NumFields() {
		part := text(t.Field(i).Type(), paths)
		if !t.Field(i).Embedded() {
			part = t.Field(i).Name() + " " + part
		}
		if tag := t.Tag(i); tag != "" {
			part += " " + strconv.Quote(tag)
		}
		parts = append(parts, part)
	}
	return braced("struct", parts)
}

func interfaceText(t *types.Interface, paths bool) string {
	var parts []string
	for m := range t.Methods() {
		part := m.Name() + signature(m.Signature(), paths)
		if !m.Exported() {
			part = qualifier(m.Pkg(), paths) + part
		}
		parts = append(parts, part)
	}
	return braced("interface", parts)
}

func braced(word string, parts []string) string {
	if len(parts) == 0 {
		return word + " {}"
	}
	return word + " { " + strings.Join(parts, "; ") + " }"
}
