package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// hold is a lock that a function takes.
type hold struct {
	call    *ast.CallExpr
	lock    string       // what it is called on
	given   types.Object // the context that it was given
	held    types.Object // the context, or the Hold, that it returned; nil if that is dropped
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
			if !taken.acquired() {
				h.unlocks(body, taken)
			}
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
	returns := c != nil && c.pkg == "redisson" && locks[c.name] && c.name != "Do" || h.acquires(c)
	if !returns || !isMethod || len(assign.Lhs) < 2 {
		return taken, false
	}
	return hold{
		call: call, lock: types.ExprString(sel.X), given: h.object(call.Args[0]),
		held: h.notBlank(assign.Lhs[0]), failure: h.notBlank(assign.Lhs[1]),
	}, true
}

// acquires reports whether a call is that of a Locker.
func (h *held) acquires(c *call) bool {
	return c != nil && c.recv != "" && c.name == "Acquire" && len(c.Args) == 2 && named(h.TypesInfo.TypeOf(c.Args[1])) == "Request"
}

// acquired reports whether the lock comes as a Hold, which has the context.
func (t hold) acquired() bool { return t.held != nil && !isContext(t.held.Type()) }

// under says where the lock is held.
func (t hold) under() string {
	switch {
	case t.held == nil:
		return "the context that it returned"
	case t.acquired():
		return t.held.Name() + ".Context()"
	}
	return t.held.Name()
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
		h.complain(c.Args[0], fmt.Sprintf("%s under %s, which was given to Lock: the lock is held under %s", c.name, taken.given.Name(), taken.under()))
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
		h.complain(call.Args[0], fmt.Sprintf("the lock around it is held under %s: under %s, what is locked here does not know that lock, and waits for it "+
			"if it is the same", taken.under(), taken.given.Name()))
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
			gives := c != nil && (c.name == "Unlock" || c.name == "Keep" || c.name == "Release") || c == nil && h.passes(n, taken)
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
	return held && (lock || taken.acquired())
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
