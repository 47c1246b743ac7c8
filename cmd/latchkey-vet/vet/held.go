package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

const docHeld = `find locks that are taken or given back under the wrong context

A lock belongs to the context that Lock returns. To unlock under the context that was given to Lock is refused by the lock, which
then stays until its lease ends; and what is locked under it waits for the lock of its own caller, as a stranger to it. Reported are

	held, err := l.Lock(ctx)
	defer l.Unlock(ctx)         // not held
	inner, err := m.Lock(ctx)   // not held

and contexts of nobody, such as context.Background(), in Unlock, Extend, Keep, Token and Held. In the function that a Do or a Func of Latchkey
calls, the held context is its first argument. Only one function is looked at, and only what is surely wrong is reported.`

// held is a run of latchkeyheld.
type held struct {
	*pass
	guarded map[types.Object]bool // functions that have a guard
}

func runHeld(a *analysis.Pass) (any, error) {
	h := &held{newPass(a), make(map[types.Object]bool)}
	for obj, values := range h.values {
		for _, d := range values {
			if d.from != nil && d.result <= 0 && h.makesGuarded(d.from) {
				h.guarded[obj] = true
			}
		}
	}
	for _, file := range h.Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					h.body(n.Body)
				}
			case *ast.FuncLit:
				h.body(n.Body)
			case *ast.CallExpr:
				h.call(n)
			}
			return true
		})
	}
	return nil, nil
}

// makesGuarded reports whether e is a function behind a guard.
func (h *held) makesGuarded(e ast.Expr) bool {
	c := h.callOf(e)
	if c.is("guard", "Must") && len(c.Args) == 1 {
		return h.makesGuarded(c.Args[0])
	}
	return c.is("guard", "Func", "Action", "Try", "Job")
}

// needsHeld are the methods of locks that want the context of a hold.
var needsHeld = map[string]bool{"Unlock": true, "Keep": true, "Extend": true, "Token": true}

// locks are the methods that take a lock under their first argument.
var locks = map[string]bool{"Lock": true, "LockFor": true, "TryLock": true, "Do": true}

// takesLock reports whether a call takes a lock, or calls what does, under the context that is its first argument.
func (h *held) takesLock(e *ast.CallExpr) bool {
	c := h.callOf(e)
	switch {
	case c.is("guard", "Do"), c != nil && c.pkg == "redisson" && c.recv != "" && locks[c.name]:
		return true
	case c != nil:
		return h.acquires(c)
	}
	obj := h.object(e.Fun)
	return obj != nil && h.guarded[obj] && len(e.Args) > 0
}

// call looks at one call by itself.
func (h *held) call(e *ast.CallExpr) {
	c := h.callOf(e)
	switch {
	case c == nil || len(c.Args) == 0:
	case c.pkg == "redisson" && needsHeld[c.name] && isContext(h.TypesInfo.TypeOf(c.Args[0])):
		if h.ofNobody(c.Args[0]) {
			h.complain(c.Args[0], fmt.Sprintf("%s under a context that holds nothing: give it the one that Lock returned", c.name))
		}
	case c.is("guard", "Token", "Held", "HoldFrom", "RequireHeld") && h.ofNobody(c.Args[0]):
		h.complain(c.Args[0], fmt.Sprintf("%s of a context that holds nothing: give it that of the work", c.name))
	case c.pkg == "redisson" && c.name == "Do" && len(c.Args) == 2:
		h.work(c.Args[1])
	case c.is("guard", "Do") && len(c.Args) == 4:
		h.work(c.Args[3])
	case c.is("guard", "Func", "Action", "Try", "Job") && len(c.Args) == 2:
		h.work(c.Args[1])
	}
}

// ofNobody reports whether a context is made from nothing.
func (h *held) ofNobody(e ast.Expr) bool {
	return h.origin(e, func(call *ast.CallExpr) bool {
		fn, ok := h.object(call.Fun).(*types.Func)
		return ok && fn.Pkg() != nil && fn.Pkg().Path() == "context" && (fn.Name() == "Background" || fn.Name() == "TODO")
	}, nil)
}

// origin follows a context through what package context makes of others to a call that is one of root's, or to a variable.
func (h *held) origin(e ast.Expr, root func(*ast.CallExpr) bool, variable types.Object) bool {
	for range 10 {
		e = ast.Unparen(e)
		if d, ok := h.only(e); ok && d.result <= 0 && h.object(e) != variable {
			e = ast.Unparen(d.from)
		}
		if id, ok := e.(*ast.Ident); ok {
			return variable != nil && h.TypesInfo.ObjectOf(id) == variable
		}
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return false
		}
		if root != nil && root(call) {
			return true
		}
		fn, ok := h.object(call.Fun).(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" || len(call.Args) == 0 {
			return false
		}
		e = call.Args[0]
	}
	return false
}

// work looks for calls in a function that runs under a lock which take another lock under a context from outside of it.
func (h *held) work(e ast.Expr) {
	fn, ok := ast.Unparen(e).(*ast.FuncLit)
	if !ok || !isContext(h.TypesInfo.TypeOf(fn.Type.Params.List[0].Type)) {
		return
	}
	h.eachCall(fn.Body, func(call *ast.CallExpr) {
		if !h.takesLock(call) {
			return
		}
		if v := h.outer(call.Args[0], fn); v != nil && h.ofCaller(v) {
			h.complain(call.Args[0], fmt.Sprintf("%s is not the context of the work: what is locked here does not know the lock around it, and waits for it if it is the same", v.Name()))
		}
	})
}

// ofCaller reports whether a context is that of a call, or of the request that it is about, and so the only one that the
// function could have known before. One from elsewhere may well be that of a hold, or of another owner, as tests have it.
func (h *held) ofCaller(obj types.Object) bool {
	v, ok := obj.(*types.Var)
	if !ok || v.IsField() || v.Parent() == v.Pkg().Scope() {
		return false
	}
	values := h.values[obj]
	switch {
	case len(values) == 0:
		return v.Kind() == types.ParamVar
	case len(values) > 1 || values[0].from == nil || values[0].result > 0:
		return false
	}
	return h.origin(values[0].from, func(call *ast.CallExpr) bool {
		fn, ok := h.object(call.Fun).(*types.Func)
		return ok && fn.Name() == "Context" && fn.Signature().Recv() != nil && fn.Pkg() != nil && fn.Pkg().Path() != "testing"
	}, nil) || h.derived(values[0].from)
}

// derived reports whether a context is made of one that is a parameter.
func (h *held) derived(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return false
	}
	fn, ok := h.object(call.Fun).(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != "context" {
		return false
	}
	obj := h.object(call.Args[0])
	return obj != nil && obj.Pos() < call.Pos() && !h.assigns(obj, call) && h.ofCaller(obj)
}

// assigns reports whether a variable is set to what a call makes, of itself maybe.
func (h *held) assigns(obj types.Object, call *ast.CallExpr) bool {
	return slices.ContainsFunc(h.values[obj], func(d definition) bool { return d.from == call })
}

// outer is the variable from outside of fn that a context comes from.
func (h *held) outer(e ast.Expr, fn *ast.FuncLit) *types.Var {
	var found *types.Var
	ast.Inspect(fn, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v, ok := h.TypesInfo.Uses[id].(*types.Var)
		if ok && !v.IsField() && isContext(v.Type()) && (v.Pos() < fn.Pos() || v.Pos() > fn.End()) && h.origin(e, nil, v) {
			found = v
		}
		return true
	})
	return found
}

// eachCall calls f for the calls in a body that are made there, and not in a function that is only made there.
func (h *held) eachCall(body ast.Node, f func(*ast.CallExpr)) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt:
			return false
		case *ast.CallExpr:
			f(n)
		}
		return true
	})
}

func (h *held) complain(e ast.Expr, message string) {
	h.emit(analysis.Diagnostic{Pos: e.Pos(), End: e.End(), Message: message})
}
