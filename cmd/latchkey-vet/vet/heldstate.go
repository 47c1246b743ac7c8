package vet

import (
	"go/token"

	"golang.org/x/tools/go/ssa"
)

// state is what is known of a lock at one place: a set, as several ways lead there.
type state uint8

const (
	unsure     state = 1 << iota // nobody has asked whether it was taken
	surelyHeld                   // taken, and not given back
	free                         // not taken, or it may have been given back
)

// flow is the state of a lock at each instruction that comes after it in its function.
func (h *held) flow(taken hold) map[ssa.Instruction]state {
	at := make(map[ssa.Instruction]state)
	begin := unsure
	if !looked(taken, 1) && !looked(taken, 2) {
		begin = surelyHeld
	}
	entered := make(map[*ssa.BasicBlock]state)
	var run func(block *ssa.BasicBlock, instrs []ssa.Instruction, now state)
	run = func(block *ssa.BasicBlock, instrs []ssa.Instruction, now state) {
		for _, instr := range instrs {
			if instr == taken.CallInstruction {
				return // it begins anew
			}
			at[instr] |= now
			if c, ok := instr.(*ssa.Call); ok && h.mayRelease(c, taken) {
				now = free
			}
		}
		for i, next := range block.Succs {
			then := now
			if branch, ok := block.Instrs[len(block.Instrs)-1].(*ssa.If); ok {
				then = h.after(branch.Cond, i == 0, now, taken)
			}
			if entered[next]|then != entered[next] {
				entered[next] |= then
				run(next, next.Instrs, then)
			}
		}
	}
	block := taken.Block()
	for i, instr := range block.Instrs {
		if instr == taken.CallInstruction {
			run(block, block.Instrs[i+1:], begin)
		}
	}
	return at
}

// result returns which result of the call that takes the lock v is, and -1 if it is none.
func (h *held) result(v ssa.Value, taken hold) int {
	if load, ok := v.(*ssa.UnOp); ok && load.Op == token.MUL {
		if stored := h.stored(load); stored != nil {
			v = stored
		}
	}
	if x, ok := plain(v).(*ssa.Extract); ok && x.Tuple == taken.Value() {
		return x.Index
	}
	return -1
}

// looked reports whether the function looks at a result of the call that takes the lock.
func looked(taken hold, result int) bool {
	for _, use := range *taken.Value().Referrers() {
		if x, ok := use.(*ssa.Extract); ok && x.Index == result && len(*x.Referrers()) > 0 {
			return true
		}
	}
	return false
}

// after is the state behind a branch.
func (h *held) after(cond ssa.Value, holds bool, now state, taken hold) state {
	tries := taken.Common().Signature().Results().Len() == 3 && looked(taken, 1)
	switch c := cond.(type) {
	case *ssa.BinOp:
		x, y := c.X, c.Y
		if isNil(x) {
			x, y = y, x
		}
		result := h.result(x, taken)
		if !isNil(y) || result < 0 || c.Op != token.EQL && c.Op != token.NEQ {
			return now
		}
		switch none := (c.Op == token.EQL) == holds; {
		case (result == 0) == none: // no hold, or an error
			return free
		case !tries || result == 0:
			return taking(now)
		}
		return now
	case *ssa.UnOp:
		if c.Op == token.NOT {
			return h.after(c.X, !holds, now, taken)
		}
	}
	switch {
	case !tries || h.result(cond, taken) != 1:
		return now
	case holds:
		return taking(now)
	}
	return free
}

func isNil(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && c.IsNil()
}

// taking is the state once it is known that the lock was taken.
func taking(now state) state {
	if now&unsure != 0 {
		now = now&^unsure | surelyHeld
	}
	return now
}

// mayRelease reports whether a call may give the lock back.
func (h *held) mayRelease(c *ssa.Call, taken hold) bool {
	site := h.site(c)
	switch fn := c.Call.StaticCallee(); {
	case site != nil && site.ours != nil && site.releases():
		return true
	case fn != nil && fn.Pkg == taken.Parent().Pkg:
		return h.reaches(fn, make(map[*ssa.Function]bool))
	case fn == nil && !c.Call.IsInvoke(): // a variable, such as cleanup
		for _, literal := range withLiterals(outermost(taken.Parent())) {
			if h.reaches(literal, make(map[*ssa.Function]bool)) && literal.Parent() != nil {
				return true
			}
		}
	}
	for _, arg := range c.Call.Args {
		if h.hands(arg, taken) {
			return true
		}
	}
	return false
}

func outermost(fn *ssa.Function) *ssa.Function {
	for fn.Parent() != nil {
		fn = fn.Parent()
	}
	return fn
}

// reaches reports whether a function of the package, or one that it calls, gives locks back.
func (h *held) reaches(fn *ssa.Function, seen map[*ssa.Function]bool) bool {
	if fn = origin(fn); seen[fn] {
		return false
	}
	seen[fn] = true
	if h.frees[fn] {
		return true
	}
	for _, block := range fn.Blocks {
		for _, instr := range block.Instrs {
			switch x := instr.(type) {
			case ssa.CallInstruction:
				if next := x.Common().StaticCallee(); next != nil && next.Pkg == fn.Pkg && h.reaches(next, seen) {
					return true
				}
			case *ssa.MakeClosure:
				if h.reaches(x.Fn.(*ssa.Function), seen) {
					return true
				}
			}
		}
	}
	return false
}

// origin is the generic function that fn is an instance of, or fn.
func origin(fn *ssa.Function) *ssa.Function {
	if generic := fn.Origin(); generic != nil {
		return generic
	}
	return fn
}

// hands reports whether an argument gives the lock, or a Hold or a function with it, to the one that is called.
func (h *held) hands(arg ssa.Value, taken hold) bool {
	arg = plain(arg)
	switch x := arg.(type) {
	case *ssa.MakeClosure:
		return h.reaches(x.Fn.(*ssa.Function), make(map[*ssa.Function]bool))
	case *ssa.Function:
		return x.Pkg == taken.Parent().Pkg && h.reaches(x, make(map[*ssa.Function]bool))
	}
	return !isContext(arg.Type()) && (h.result(arg, taken) == 0 || taken.recv != nil && h.spelling(arg) == h.spelling(taken.recv))
}
