package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const docHeld = `find locks that are taken or given back under the wrong context

A lock belongs to the context that Lock returns. To unlock under the context that was given to Lock is refused by the lock, which
then stays until its lease ends; and what is locked under it waits for the lock of its own caller, as a stranger to it. Reported are

	held, err := l.Lock(ctx)
	defer l.Unlock(ctx)         // not held
	inner, err := m.Lock(ctx)   // not held

and contexts of nobody, such as context.Background(), in Unlock, Extend, Keep, Token and Held. In the function that a Do or a Func of Latchkey
calls, the held context is its first argument. One function is looked at, by its text: a lock is held behind a deferred Unlock in its block.`

// held is a run of latchkeyheld.
type held struct{ *pass }

func runHeld(a *analysis.Pass) (any, error) {
	h := &held{newPass(a)}
	for _, file := range h.Files {
		for _, decl := range file.Decls {
			if h.concerns() {
				h.declaration(decl)
			}
		}
	}
	return h.lost, nil
}

// declaration looks at one function, with the literals in it.
func (h *held) declaration(decl ast.Decl) {
	defer h.recoverPanic()
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			h.work(h.callOf(n))
		case *ast.AssignStmt:
			h.unlocks(h.taken(n), decl)
		case *ast.BlockStmt:
			for i, stmt := range n.List {
				h.nested(h.taken(stmt), n.List[i+1:], decl)
			}
		}
		return true
	})
}

// hold is a lock that a function takes under a context of its caller.
type hold struct {
	*call
	lock  string // what gives it back, as spelling has it
	given *types.Var
	under string // the context that it is held under
}

// taken is the lock that a statement takes, and nil if it takes none.
func (h *held) taken(stmt ast.Stmt) *hold {
	assign, ok := stmt.(*ast.AssignStmt)
	if !ok || h.callOf(assign.Rhs[0]) == nil {
		return nil
	}
	t := &hold{call: h.callOf(assign.Rhs[0]), under: "the context that it returned"}
	if t.name == "Do" || t.name == "Lead" || !h.takes(t.CallExpr) {
		return nil
	}
	t.lock = h.spelling(t.Fun)
	if name, ok := assign.Lhs[0].(*ast.Ident); ok && name.Name != "_" {
		if t.under = name.Name; t.name == "Acquire" {
			t.lock, t.under = h.spelling(&ast.SelectorExpr{X: name}), name.Name+".Context()"
		}
	}
	if t.given, ok = h.origin(t.Args[0]).(*types.Var); !ok || t.lock == "" {
		return nil
	}
	return t
}

// takes reports whether a call takes a lock, or calls what does, under the context that is its first argument.
func (h *held) takes(e *ast.CallExpr) bool {
	if len(e.Args) == 0 || !isContext(h.TypesInfo.TypeOf(e.Args[0])) {
		return false
	}
	c := h.callOf(e)
	if c == nil {
		return slices.ContainsFunc(h.values[h.object(e.Fun)], func(d definition) bool { return d.result <= 0 && h.guarded(d.from) })
	}
	return c.is("guard", "Do", "Lead") || c.pkg == "redisson" && c.method("Lock", "LockFor", "TryLock", "Do") ||
		c.method("Acquire") && len(c.Args) == 2 && named(h.TypesInfo.TypeOf(c.Args[1])) == "Request"
}

// guarded reports whether e is a function behind a guard.
func (h *held) guarded(e ast.Expr) bool {
	c := h.callOf(e)
	return c.is("guard", "Func", "Action", "Try", "Job", "TryJob") || c.is("guard", "Must") && h.guarded(c.Args[0])
}

func (c *call) method(names ...string) bool {
	return c != nil && c.recv != "" && slices.Contains(names, c.name)
}

// work reports a call that wants the context of a hold and gets one that is made from nothing, and calls in a function that runs under a
// lock which take another lock under a context from outside of it.
func (h *held) work(c *call) {
	if c == nil || len(c.Args) == 0 {
		return
	}
	if c.pkg == "redisson" && c.method("Unlock", "Keep", "Extend", "Token") || c.is("guard", "Token", "Held", "HoldFrom", "RequireHeld") {
		if _, ok := h.origin(c.Args[0]).(*types.Func); ok {
			h.complain(c.CallExpr, "%s under a context that holds nothing: give it the one that Lock returned, or that of the work", c.name)
		}
	}
	literal, ok := c.Args[len(c.Args)-1].(*ast.FuncLit)
	if ok && (c.is("guard", "Do", "Lead") || c.pkg == "redisson" && c.name == "Do" || h.guarded(c.CallExpr)) {
		h.strangers(literal.Body, func(root *types.Var) bool { return root.Pos() < literal.Pos() || root.Pos() > literal.End() }, "the context of the work")
	}
}

// unlocks reports Unlock under the context that Lock was given, where none is under the one that it returned.
func (h *held) unlocks(t *hold, decl ast.Decl) {
	releases := h.releases(t, decl)
	if slices.ContainsFunc(releases, func(c *call) bool { return c.name == "Release" || h.origin(c.Args[0]) != t.given }) {
		return
	}
	for _, c := range releases {
		h.complain(c.CallExpr, "%s under %s, which was given to Lock: the lock is held under %s", c.name, types.ExprString(t.Args[0]), t.under)
	}
}

// nested reports locks that are taken under the context that was given to Lock, in statements behind a deferred Unlock that is the only one.
func (h *held) nested(t *hold, then []ast.Stmt, decl ast.Decl) {
	i := slices.IndexFunc(then, func(stmt ast.Stmt) bool {
		_, deferred := stmt.(*ast.DeferStmt)
		return deferred && len(h.releases(t, stmt)) == 1
	})
	if i < 0 || len(h.releases(t, decl)) > 1 {
		return
	}
	h.strangers(&ast.BlockStmt{List: then[i:]}, func(root *types.Var) bool { return root == t.given }, t.under)
}

// releases are the calls in n that give a lock back.
func (h *held) releases(t *hold, n ast.Node) (all []*call) {
	ast.Inspect(n, func(n ast.Node) bool {
		if e, ok := n.(*ast.CallExpr); ok && t != nil && e.Pos() > t.Pos() && len(e.Args) > 0 {
			if c := h.callOf(e); c.method("Unlock", "Keep", "Release") && h.spelling(c.Fun) == t.lock {
				all = append(all, c)
			}
		}
		return true
	})
	return all
}

// strangers reports the calls in n that take a lock under a context of a wrong root, but those in functions and what is run later.
func (h *held) strangers(n ast.Node, wrong func(*types.Var) bool, under string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			if !h.takes(n) {
				break
			}
			if root, ok := h.origin(n.Args[0]).(*types.Var); ok && wrong(root) {
				h.complain(n, "the lock around it is held under %s: under %s, what is locked here does not know that lock, and waits for it if it is the same",
					under, types.ExprString(n.Args[0]))
			}
		}
		return true
	})
}

func (h *held) complain(c *ast.CallExpr, format string, args ...any) {
	h.emit(analysis.Diagnostic{Pos: c.Args[0].Pos(), End: c.Args[0].End(), Message: fmt.Sprintf(format, args...)})
}

// origin follows a context through what package context makes of others, and variables that are set once, to the parameter that it is
// of, or to Background or TODO. Another one may be of a hold, or of another owner, as tests have it: it is nil.
func (h *held) origin(e ast.Expr) types.Object {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := h.object(e).(*types.Var)
		values := h.values[v]
		switch {
		case v != nil && v.Kind() == types.LocalVar && len(values) == 1 && values[0].result <= 0:
			h.values[v] = nil // what a type switch declares may be set to what is made of itself
			defer func() { h.values[v] = values }()
			return h.origin(values[0].from)
		case v != nil && v.Kind() == types.ParamVar:
			h.values[v] = nil // where it is set to what is made of itself
			defer func() { h.values[v] = values }()
			if !slices.ContainsFunc(values, func(d definition) bool { return h.origin(d.from) != v }) {
				return v
			}
		}
	case *ast.CallExpr:
		switch fn, _ := typeutil.Callee(h.TypesInfo, e).(*types.Func); {
		case fn == nil || fn.Pkg() == nil:
		case fn.FullName() == "context.Background", fn.FullName() == "context.TODO":
			return fn
		case fn.Pkg().Path() == "context" && len(e.Args) > 0:
			return h.origin(e.Args[0])
		case fn.Name() == "Context" && fn.Signature().Recv() != nil && fn.Pkg().Path() != "testing":
			return h.origin(ast.Unparen(e.Fun).(*ast.SelectorExpr).X)
		}
	}
	return nil
}

// spelling is equal for methods of what is surely the same lock: a variable that is set once, or a field of one. It is empty for others.
func (h *held) spelling(method ast.Expr) string {
	sel, ok := method.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	base := sel.X
	for inner, ok := base.(*ast.SelectorExpr); ok; inner, ok = base.(*ast.SelectorExpr) {
		base = inner.X
	}
	if v, ok := h.object(base).(*types.Var); ok && len(h.values[v]) <= 1 {
		return fmt.Sprintf("%p.%s", v, types.ExprString(sel.X))
	}
	return ""
}
