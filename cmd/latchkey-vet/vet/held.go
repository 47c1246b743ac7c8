package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

const docHeld = `find locks that are taken or given back under the wrong context

A lock belongs to the context that Lock returns. To unlock under the context that was given to Lock is refused by the lock, which
then stays until its lease ends; and what is locked under it waits for the lock of its own caller, as a stranger to it. Reported are

	held, err := l.Lock(ctx)
	defer l.Unlock(ctx)         // not held
	inner, err := m.Lock(ctx)   // not held

and contexts of nobody, such as context.Background(), in Unlock, Extend, Keep, Token and Held. In the function that a Do or a Func of Latchkey
calls, the held context is its first argument. Only one function is looked at, and only what is wrong on all ways through it.`

// held is a run of latchkeyheld.
type held struct {
	*pass
	guarded map[types.Object]bool          // functions that have a guard
	exprs   map[token.Pos]*ast.CallExpr    // calls, by their opening parentheses, as SSA has them
	results map[*ast.CallExpr]*ast.Ident   // what the first result of a call is assigned to
	made    map[ssa.Value]*ssa.MakeClosure // function literals, where they are made
	frees   map[*ssa.Function]bool         // functions that may give a lock back
}

func runHeld(a *analysis.Pass) (any, error) {
	h := newHeld(a)
	h.run()
	return h.lost, nil
}

func newHeld(a *analysis.Pass) *held {
	return &held{
		pass: newPass(a), guarded: make(map[types.Object]bool), exprs: make(map[token.Pos]*ast.CallExpr),
		results: make(map[*ast.CallExpr]*ast.Ident), made: make(map[ssa.Value]*ssa.MakeClosure), frees: make(map[*ssa.Function]bool),
	}
}

func (h *held) run() {
	if !h.concerns() {
		return
	}
	defer h.survive()
	for obj, values := range h.values {
		for _, d := range values {
			if d.from != nil && d.result <= 0 && h.makesGuarded(d.from) {
				h.guarded[obj] = true
			}
		}
	}
	for _, file := range h.Files {
		ast.Inspect(file, h.index)
	}
	for _, top := range h.build() {
		all := withLiterals(top)
		for _, fn := range all {
			for _, c := range h.callsOf(fn) {
				h.ofNobody(c)
				h.work(c)
				if taken, ok := h.taken(c); ok {
					h.unlocks(taken, all)
					h.nested(taken)
				}
			}
		}
	}
}

func (h *held) index(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		h.exprs[n.Lparen] = n
	case *ast.AssignStmt:
		if e, ok := ast.Unparen(n.Rhs[0]).(*ast.CallExpr); ok && len(n.Rhs) == 1 {
			h.results[e], _ = n.Lhs[0].(*ast.Ident)
		}
	}
	return true
}

// makesGuarded reports whether e is a function behind a guard.
func (h *held) makesGuarded(e ast.Expr) bool {
	c := h.callOf(e)
	if c.is("guard", "Must") && len(c.Args) == 1 {
		return h.makesGuarded(c.Args[0])
	}
	return c.is("guard", "Func", "Action", "Try", "Job")
}

// site is a call in the flow of its function. Its arguments are without the receiver.
type site struct {
	ssa.CallInstruction
	expr *ast.CallExpr
	ours *call // nil for a function that is not Latchkey's
	recv ssa.Value
	args []ssa.Value
}

// takesLock reports whether a call takes a lock, or calls what does, under the context that is its first argument.
func (h *held) takesLock(c *site) bool {
	switch {
	case len(c.args) == 0 || !isContext(h.TypesInfo.TypeOf(c.expr.Args[0])):
		return false
	case c.ours == nil:
		obj := h.object(c.expr.Fun)
		return obj != nil && h.guarded[obj]
	}
	return c.ours.is("guard", "Do") || c.ours.pkg == "redisson" && c.ours.recv != "" && locks[c.ours.name] || h.acquires(c)
}

// locks are the methods that take a lock under their first argument.
var locks = map[string]bool{"Lock": true, "LockFor": true, "TryLock": true, "Do": true}

// acquires reports whether a call is that of a Locker.
func (h *held) acquires(c *site) bool {
	return c.ours != nil && c.ours.recv != "" && c.ours.name == "Acquire" && len(c.args) == 2 && named(h.TypesInfo.TypeOf(c.expr.Args[1])) == "Request"
}

// releases reports whether a call gives a lock back.
func (c *site) releases() bool {
	return c.ours != nil && c.ours.recv != "" && (strings.Contains(c.ours.name, "Unlock") || c.ours.name == "Keep" || c.ours.name == "Release")
}

// ofNobody reports a call that wants the context of a hold, and gets one that is made from nothing.
func (h *held) ofNobody(c *site) {
	if c.ours == nil || len(c.args) == 0 {
		return
	}
	needs := c.ours.pkg == "redisson" && needsHeld[c.ours.name] && isContext(h.TypesInfo.TypeOf(c.expr.Args[0]))
	asks := c.ours.is("guard", "Token", "Held", "HoldFrom", "RequireHeld")
	root, ok := h.origin(c.args[0]).(*ssa.Call)
	if !needs && !asks || !ok {
		return
	}
	if fn := root.Call.StaticCallee(); fn == nil || fn.String() != "context.Background" && fn.String() != "context.TODO" {
		return
	}
	if asks {
		h.complain(c, fmt.Sprintf("%s of a context that holds nothing: give it that of the work", c.ours.name))
	} else {
		h.complain(c, fmt.Sprintf("%s under a context that holds nothing: give it the one that Lock returned", c.ours.name))
	}
}

// needsHeld are the methods of locks that want the context of a hold.
var needsHeld = map[string]bool{"Unlock": true, "Keep": true, "Extend": true, "Token": true}

// work looks for calls in a function that runs under a lock which take another lock under a context from outside of it.
func (h *held) work(c *site) {
	if c.ours == nil || len(c.args) == 0 {
		return
	}
	if c.ours.pkg != "redisson" && !c.ours.is("guard", "Do", "Func", "Action", "Try", "Job") || c.ours.pkg == "redisson" && c.ours.name != "Do" {
		return
	}
	literal, ok := plain(c.args[len(c.args)-1]).(*ssa.MakeClosure) // without it, there is nothing from outside
	if !ok {
		return
	}
	for _, inner := range h.callsOf(literal.Fn.(*ssa.Function)) {
		if _, runs := inner.CallInstruction.(*ssa.Call); !runs || !h.takesLock(inner) {
			continue
		}
		if root := h.origin(inner.args[0]); ofCaller(root) && root.Parent() != literal.Fn {
			name := types.ExprString(inner.expr.Args[0])
			h.complain(inner, name+" does not come from the context of the work: what is locked here does not know the lock around it, and waits for it if it is the same")
		}
	}
}

// ofCaller reports whether a context is that of a call, or of the request that it is about, and so the only one that the
// function could have known before. One from elsewhere may well be that of a hold, or of another owner, as tests have it.
func ofCaller(v ssa.Value) bool {
	switch v := v.(type) {
	case *ssa.Parameter:
		return true
	case *ssa.Call:
		fn := v.Call.StaticCallee()
		return fn != nil && fn.Name() == "Context" && fn.Signature.Recv() != nil && fn.Pkg != nil && fn.Pkg.Pkg.Path() != "testing"
	}
	return false
}

func (h *held) complain(c *site, message string) {
	e := c.expr.Args[0]
	h.emit(analysis.Diagnostic{Pos: e.Pos(), End: e.End(), Message: message})
}

// hold is a lock that a function takes under a context of its caller.
type hold struct {
	*site
	given ssa.Value
}

// taken is the lock that a call takes for those that follow.
func (h *held) taken(c *site) (taken hold, ok bool) {
	_, runs := c.CallInstruction.(*ssa.Call)
	if !runs || !h.takesLock(c) || c.ours == nil || c.ours.name == "Do" {
		return taken, false
	}
	taken = hold{c, h.origin(c.args[0])}
	return taken, ofCaller(taken.given)
}

// under says where the lock is held.
func (h *held) under(t hold) string {
	name := h.results[t.expr]
	switch {
	case name == nil || name.Name == "_":
		return "the context that it returned"
	case h.acquires(t.site):
		return name.Name + ".Context()"
	}
	return name.Name
}

// unlocks reports Unlock under the context that Lock was given, where none is under the one that it returned.
func (h *held) unlocks(taken hold, functions []*ssa.Function) {
	var wrong []*site
	states := h.flow(taken)
	for _, fn := range functions {
		for _, c := range h.callsOf(fn) {
			if !c.releases() || c.recv == nil || len(c.args) == 0 || h.spelling(c.recv) != h.spelling(taken.recv) || h.acquires(taken.site) {
				continue
			}
			at := h.within(taken.Parent(), c.CallInstruction)
			if at == nil || !dominates(taken.CallInstruction, at) {
				continue
			}
			if h.origin(c.args[0]) != taken.given {
				return // there is a right one, or it can't be said
			}
			if states[at] != free {
				wrong = append(wrong, c)
			}
		}
	}
	given := types.ExprString(taken.expr.Args[0])
	for _, c := range wrong {
		h.complain(c, fmt.Sprintf("%s under %s, which was given to Lock: the lock is held under %s", c.ours.name, given, h.under(taken)))
	}
}

// nested reports locks that are taken under the context that was given to Lock, while that lock is held.
func (h *held) nested(taken hold) {
	if h.leftToItsLease(taken) {
		return
	}
	states := h.flow(taken)
	for _, c := range h.callsOf(taken.Parent()) {
		if _, runs := c.CallInstruction.(*ssa.Call); !runs || states[c.CallInstruction] != surelyHeld || !h.takesLock(c) {
			continue
		}
		if dominates(taken.CallInstruction, c.CallInstruction) && h.origin(c.args[0]) == taken.given {
			h.complain(c, fmt.Sprintf("the lock around it is held under %s: under %s, what is locked here does not know that lock, and waits for it "+
				"if it is the same", h.under(taken), types.ExprString(c.expr.Args[0])))
		}
	}
}

// leftToItsLease reports whether a lock may be taken for a time, and nobody can give it back: it stands for itself, as for one mail in
// ten minutes, and what is locked next has nothing to do with it.
func (h *held) leftToItsLease(t hold) bool {
	if name := h.results[t.expr]; name != nil && name.Name != "_" {
		return false
	}
	if h.acquires(t.site) {
		request, known := ast.Unparen(t.expr.Args[1]).(*ast.CompositeLit)
		return !known || slices.ContainsFunc(request.Elts, func(e ast.Expr) bool {
			field, named := e.(*ast.KeyValueExpr)
			return !named || types.ExprString(field.Key) == "Lease"
		})
	}
	if t.ours.name != "LockFor" && t.ours.name != "TryLock" {
		return false
	}
	lease, known := t.args[len(t.args)-1].(*ssa.Const)
	return !known || lease.Int64() > 0
}
