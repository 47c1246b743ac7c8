package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

const docHeld = `find locks that are taken or given back under the wrong context

A lock belongs to the context that Lock returns. To unlock under the context that was given to Lock is refused by the lock, which
then stays until its lease ends; and what is locked under it waits for the lock of its own caller, as a stranger to it. Reported are

	held, err := l.Lock(ctx)
	defer l.Unlock(ctx)         // not held
	inner, err := m.Lock(ctx)   // not held

and contexts of nobody, such as context.Background(), in Unlock, Extend, Keep and Token. In the function that a Do or a Func of Latchkey
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
		return c.recv != "" && c.name == "Acquire" && len(c.Args) == 2 && named(h.TypesInfo.TypeOf(c.Args[1])) == "Request"
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
	return obj != nil && h.ofCaller(obj)
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

// hold is a lock that a function takes.
type hold struct {
	call    *ast.CallExpr
	lock    string       // what it is called on
	given   types.Object // the context that it was given
	held    types.Object // the context that it returned; nil if that is dropped
	failure types.Object // the error or, of TryLock, whether the lock is held
}

// body looks at the locks that one function takes.
func (h *held) body(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		assign, ok := n.(*ast.AssignStmt)
		if !ok || len(assign.Rhs) != 1 {
			return true
		}
		if taken, ok := h.taken(assign); ok && taken.held != taken.given && h.ofCaller(taken.given) {
			h.unlocks(body, taken)
			h.nested(body, taken)
		}
		return true
	})
}

// taken is the lock that an assignment takes.
func (h *held) taken(assign *ast.AssignStmt) (taken hold, ok bool) {
	call, ok := ast.Unparen(assign.Rhs[0]).(*ast.CallExpr)
	if !ok {
		return taken, false
	}
	c := h.callOf(call)
	sel, isMethod := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if c == nil || c.pkg != "redisson" || !locks[c.name] || c.name == "Do" || !isMethod || len(assign.Lhs) < 2 {
		return taken, false
	}
	return hold{
		call: call, lock: types.ExprString(sel.X), given: h.object(call.Args[0]),
		held: h.notBlank(assign.Lhs[0]), failure: h.notBlank(assign.Lhs[1]),
	}, true
}

// notBlank is the variable that e names, unless what it is set to is dropped.
func (h *held) notBlank(e ast.Expr) types.Object {
	if obj := h.object(e); obj != nil && obj.Name() != "_" {
		return obj
	}
	return nil
}

// unlocks reports Unlock under the context that Lock was given, where none is under the one that it returned.
func (h *held) unlocks(body *ast.BlockStmt, taken hold) {
	var wrong []*call
	ast.Inspect(body, func(n ast.Node) bool {
		e, ok := n.(*ast.CallExpr)
		if !ok || e.Pos() < taken.call.Pos() {
			return true
		}
		c := h.callOf(e)
		sel, isMethod := ast.Unparen(e.Fun).(*ast.SelectorExpr)
		if c == nil || c.pkg != "redisson" || c.name != "Unlock" && c.name != "Keep" || !isMethod || types.ExprString(sel.X) != taken.lock || len(e.Args) == 0 {
			return true
		}
		if h.origin(e.Args[0], nil, taken.given) {
			wrong = append(wrong, c)
		} else {
			wrong = append(wrong, nil) // there is a right one, or it can't be said
		}
		return true
	})
	for _, c := range wrong {
		if c == nil {
			return
		}
	}
	if len(h.values[taken.given]) > 1 {
		return
	}
	for _, c := range wrong {
		returned := "the context that it returned"
		if taken.held != nil {
			returned = taken.held.Name()
		}
		h.complain(c.Args[0], fmt.Sprintf("%s under %s, which was given to Lock: the lock is held under %s", c.name, taken.given.Name(), returned))
	}
}

// nested reports locks that are taken under the context that was given to Lock, while that lock is held.
func (h *held) nested(body *ast.BlockStmt, taken hold) {
	end := h.released(body, taken)
	h.eachCall(body, func(call *ast.CallExpr) {
		if call.Pos() <= taken.call.End() || call.Pos() >= end || !h.takesLock(call) || !h.origin(call.Args[0], nil, taken.given) {
			return
		}
		if h.apart(body, taken, call.Pos()) || h.setBetween(taken, call.Pos()) {
			return
		}
		returned := "the one that Lock returned"
		if taken.held != nil {
			returned = taken.held.Name()
		}
		h.complain(call.Args[0], fmt.Sprintf("%s was given to Lock, and the lock is held under %s: under %s, what is locked here does not know that lock, "+
			"and waits for it if it is the same", taken.given.Name(), returned, taken.given.Name()))
	})
}

// released is where the lock may have been given back, in the order of the text.
func (h *held) released(body *ast.BlockStmt, taken hold) token.Pos {
	end := body.End()
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			c := h.callOf(n)
			gives := c != nil && c.pkg == "redisson" && (c.name == "Unlock" || c.name == "Keep") || c == nil && h.passes(n, taken)
			if gives && n.Pos() > taken.call.End() && n.Pos() < end {
				end = n.Pos()
			}
		}
		return true
	})
	return end
}

// passes reports whether a call gets the held context together with the lock, and so may give it back.
func (h *held) passes(call *ast.CallExpr, taken hold) bool {
	lock, held := false, false
	for _, arg := range call.Args {
		lock = lock || types.ExprString(arg) == taken.lock
		held = held || taken.held != nil && h.object(arg) == taken.held
	}
	return lock && held
}

// apart reports whether a place is not surely reached with the lock held: in another branch than the lock, or in one that
// asks whether there is one.
func (h *held) apart(body *ast.BlockStmt, taken hold, pos token.Pos) bool {
	apart := false
	within := func(n ast.Node, pos token.Pos) bool { return n != nil && n.Pos() <= pos && pos < n.End() }
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			if within(n.Body, pos) != within(n.Body, taken.call.Pos()) {
				apart = apart || within(n.Body, taken.call.Pos()) || h.asks(n.Cond, taken) && !h.succeeded(n.Cond, taken)
			}
			if n.Init != nil && within(n.Init, taken.call.Pos()) && !within(n, pos) { // behind the if, which may be about a failure
				apart = apart || !h.failed(n.Cond, taken)
			}
			if n.Else != nil && within(n.Else, pos) && !within(n.Else, taken.call.Pos()) {
				apart = apart || h.asks(n.Cond, taken) || within(n.Body, taken.call.Pos())
			}
		case *ast.CaseClause, *ast.CommClause:
			apart = apart || within(n, taken.call.Pos()) && !within(n, pos)
		case *ast.ForStmt, *ast.RangeStmt:
			apart = apart || within(n, taken.call.Pos()) && !within(n, pos)
		}
		return true
	})
	return apart
}

// asks reports whether a condition is about how the lock was taken.
func (h *held) asks(cond ast.Expr, taken hold) bool {
	found := false
	ast.Inspect(cond, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			obj := h.TypesInfo.ObjectOf(id)
			found = found || obj != nil && (obj == taken.failure || obj == taken.held || types.Identical(obj.Type(), types.Universe.Lookup("error").Type()))
		}
		return true
	})
	return found
}

// succeeded reports whether a condition is that the lock is held: ok, or err == nil.
func (h *held) succeeded(cond ast.Expr, taken hold) bool {
	switch c := ast.Unparen(cond).(type) {
	case *ast.Ident:
		return h.TypesInfo.ObjectOf(c) == taken.failure
	case *ast.BinaryExpr:
		return c.Op == token.EQL && h.object(c.X) == taken.failure && h.TypesInfo.Types[c.Y].IsNil()
	}
	return false
}

// failed reports whether a condition is that the lock is not held: !ok, or err != nil.
func (h *held) failed(cond ast.Expr, taken hold) bool {
	switch c := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		return c.Op == token.NOT && h.object(c.X) == taken.failure
	case *ast.BinaryExpr:
		return c.Op == token.NEQ && h.object(c.X) == taken.failure && h.TypesInfo.Types[c.Y].IsNil()
	}
	return false
}

// setBetween reports whether the context that was given to Lock is another one by then.
func (h *held) setBetween(taken hold, pos token.Pos) bool {
	for _, d := range h.values[taken.given] {
		if d.at > taken.call.End() && d.at < pos {
			return true
		}
	}
	return false
}

func (h *held) complain(e ast.Expr, message string) {
	h.emit(analysis.Diagnostic{Pos: e.Pos(), End: e.End(), Message: message})
}
