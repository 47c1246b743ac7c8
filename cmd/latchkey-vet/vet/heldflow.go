package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// The flow of a function is that of package ssa, in which a variable that is set again is another value, and a branch that was
// taken is known behind it.

// build makes the functions of the package, without the literals in them.
func (h *held) build() (tops []*ssa.Function) {
	program := ssa.NewProgram(h.Fset, 0)
	program.SetNoReturn(noReturn)
	for _, imported := range h.Pkg.Imports() {
		program.CreatePackage(imported, nil, nil, true)
	}
	pkg := program.CreatePackage(h.Pkg, h.Files, h.TypesInfo, false)
	pkg.Build()
	for _, file := range h.Files {
		for _, decl := range file.Decls {
			if decl, ok := decl.(*ast.FuncDecl); ok {
				if obj, ok := h.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					tops = append(tops, program.FuncValue(obj))
				}
			}
		}
	}
	tops = slices.DeleteFunc(append(tops, pkg.Func("init")), func(fn *ssa.Function) bool { return fn == nil })
	for _, top := range tops {
		for _, fn := range withLiterals(top) {
			h.frees[fn] = slices.ContainsFunc(h.callsOf(fn), (*site).releases)
			for _, block := range fn.Blocks {
				for _, instr := range block.Instrs {
					if literal, ok := instr.(*ssa.MakeClosure); ok {
						h.made[literal.Fn] = literal
					}
				}
			}
		}
	}
	return tops
}

// noReturn reports whether a function of the standard library ends the program or the goroutine.
func noReturn(fn *types.Func) bool {
	name := fn.FullName()
	return name == "os.Exit" || name == "runtime.Goexit" || strings.HasPrefix(name, "log.Fatal") || strings.HasPrefix(name, "log.Panic") ||
		strings.HasPrefix(name, "(*log.Logger).Fatal") || strings.HasPrefix(name, "(*testing.common).Fatal") || strings.HasPrefix(name, "(*testing.common).Skip") ||
		name == "(*testing.common).FailNow"
}

// withLiterals are a function and the literals within it.
func withLiterals(fn *ssa.Function) []*ssa.Function {
	all := []*ssa.Function{fn}
	for _, literal := range fn.AnonFuncs {
		all = append(all, withLiterals(literal)...)
	}
	return all
}

// callsOf are the calls in a function that the source has, deferred ones too.
func (h *held) callsOf(fn *ssa.Function) (calls []*site) {
	for _, block := range fn.Blocks {
		for _, instr := range block.Instrs {
			if c, ok := instr.(ssa.CallInstruction); ok {
				if s := h.site(c); s != nil {
					calls = append(calls, s)
				}
			}
		}
	}
	return calls
}

func (h *held) site(c ssa.CallInstruction) *site {
	common := c.Common()
	expr := h.exprs[common.Pos()]
	if expr == nil {
		return nil
	}
	s := &site{CallInstruction: c, expr: expr, ours: h.callOf(expr), args: common.Args}
	if common.IsInvoke() {
		s.recv = common.Value
	} else if common.Signature().Recv() != nil && len(s.args) > 0 {
		s.recv, s.args = s.args[0], s.args[1:]
	}
	if len(expr.Args) == 0 {
		s.args = nil
	}
	return s
}

// plain is a value without its conversions.
func plain(v ssa.Value) ssa.Value {
	for {
		switch c := v.(type) {
		case *ssa.ChangeType:
			v = c.X
		case *ssa.ChangeInterface:
			v = c.X
		case *ssa.MakeInterface:
			v = c.X
		default:
			return v
		}
	}
}

// origin follows a context through what package context makes of others, and variables, to a value that is something else. It is
// nil if that may be one of several.
func (h *held) origin(v ssa.Value) ssa.Value { return h.root(v, make(map[ssa.Value]bool)) }

func (h *held) root(v ssa.Value, seen map[ssa.Value]bool) ssa.Value {
	v = plain(v)
	if seen[v] {
		return nil
	}
	seen[v] = true
	switch x := v.(type) {
	case *ssa.Phi:
		var root ssa.Value
		for _, edge := range x.Edges {
			from := h.root(edge, seen)
			if from == nil || root != nil && root != from {
				return nil
			}
			root = from
		}
		return root
	case *ssa.Extract:
		if c, ok := x.Tuple.(*ssa.Call); ok && x.Index == 0 && derives(c) {
			return h.root(c.Call.Args[0], seen)
		}
	case *ssa.Call:
		if derives(x) {
			return h.root(x.Call.Args[0], seen)
		}
	case *ssa.UnOp:
		if x.Op == token.MUL {
			stored := h.stored(x)
			if stored == nil {
				return nil
			}
			return h.root(stored, seen)
		}
	case *ssa.FreeVar:
		return nil // a pointer
	}
	return v
}

// derives reports whether a call makes a context of another.
func derives(c *ssa.Call) bool {
	fn := c.Call.StaticCallee()
	return fn != nil && fn.Pkg != nil && fn.Pkg.Pkg.Path() == "context" && len(c.Call.Args) > 0 && isContext(c.Call.Args[0].Type())
}

// stored is what a variable is set to that is read, if that is known: it is set once, or right before.
func (h *held) stored(load *ssa.UnOp) ssa.Value {
	variable := h.variable(load.X)
	if variable == nil {
		return nil
	}
	block := load.Block()
	i := slices.Index(block.Instrs, ssa.Instruction(load))
	for range 10 { // blocks
		for i--; i >= 0; i-- {
			switch instr := block.Instrs[i].(type) {
			case *ssa.Store:
				if h.variable(instr.Addr) == variable {
					return instr.Val
				}
			case *ssa.Call:
				i = -1 // which may set it, too
				block = nil
			}
		}
		if block == nil || len(block.Preds) != 1 {
			break
		}
		block = block.Preds[0]
		i = len(block.Instrs)
	}
	var only *ssa.Store
	for store := range h.stores(variable) {
		if store == nil || only != nil {
			return nil
		}
		only = store
	}
	if only == nil {
		return nil
	}
	return only.Val
}

// variable is the variable that is at an address, in the function that has it; nil if it is something else.
func (h *held) variable(addr ssa.Value) *ssa.Alloc {
	for {
		switch x := addr.(type) {
		case *ssa.Alloc:
			return x
		case *ssa.FreeVar:
			if addr = h.captured(x); addr == nil {
				return nil
			}
		default:
			return nil
		}
	}
}

// captured is what a literal has of the function around it.
func (h *held) captured(v *ssa.FreeVar) ssa.Value {
	literal := h.made[v.Parent()]
	i := slices.Index(v.Parent().FreeVars, v)
	if literal == nil || i < 0 || i >= len(literal.Bindings) {
		return nil
	}
	return literal.Bindings[i]
}

// stores are the places that set a variable; nil stands for those that are not known.
func (h *held) stores(addr ssa.Value) func(yield func(*ssa.Store) bool) {
	return func(yield func(*ssa.Store) bool) {
		for _, use := range *addr.Referrers() {
			switch use := use.(type) {
			case *ssa.Store:
				if use.Addr != addr {
					yield(nil)
					return
				}
				if !yield(use) {
					return
				}
			case *ssa.UnOp, *ssa.DebugRef:
			case *ssa.MakeClosure:
				fn := use.Fn.(*ssa.Function)
				for i, binding := range use.Bindings {
					if binding == addr {
						for store := range h.stores(fn.FreeVars[i]) {
							if !yield(store) {
								return
							}
						}
					}
				}
			default:
				if !yield(nil) {
					return
				}
			}
		}
	}
}

// spelling is equal for expressions that are surely the same lock: a variable, or a field of one.
func (h *held) spelling(v ssa.Value) string {
	fields := ""
	for range 20 { // or it leads to itself, as in a list
		v = plain(v)
		switch x := v.(type) {
		case *ssa.UnOp:
			if x.Op != token.MUL {
				return fmt.Sprintf("%p%s", v, fields)
			}
			if v = h.stored(x); v == nil {
				v = x.X
			}
		case *ssa.FieldAddr:
			v, fields = x.X, fmt.Sprintf(".%d%s", x.Field, fields)
		case *ssa.Field:
			v, fields = x.X, fmt.Sprintf(".%d%s", x.Field, fields)
		case *ssa.FreeVar:
			if from := h.captured(x); from != nil {
				v = from
				continue
			}
			return fmt.Sprintf("%p%s", v, fields)
		default:
			return fmt.Sprintf("%p%s", v, fields)
		}
	}
	return fmt.Sprintf("%p", v)
}

// within is where fn makes the literal that has instr, or instr itself.
func (h *held) within(fn *ssa.Function, instr ssa.Instruction) ssa.Instruction {
	for instr.Parent() != fn {
		literal := h.made[instr.Parent()]
		if literal == nil {
			return nil
		}
		instr = literal
	}
	return instr
}

// dominates reports whether a is run before b on each way to b.
func dominates(a, b ssa.Instruction) bool {
	if a.Block() == b.Block() {
		return slices.Index(a.Block().Instrs, a) < slices.Index(b.Block().Instrs, b)
	}
	return a.Block().Dominates(b.Block())
}
