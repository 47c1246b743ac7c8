package gen

import (
	"strconv"
	"strings"
)

// emitter writes the code generated for one interface or function.
type emitter struct {
	*printer
	*wrapper
	guard, adapter, lock string // the names of the packages
	declared, used       string // type parameters
	next                 string // the field with what is wrapped
}

// wrapperType writes the wrapper of an interface.
func (e *emitter) wrapperType() {
	e.declared, e.used = e.typeParams(e.tparams)
	e.imported("errors", "errors")
	t, self := e.typeName(), "*"+e.typeName()+e.used
	fields := e.fields()
	e.f("// %s is [%s] with the guards of its directives. [%s] makes one; its zero value is of no use.\n", t, e.name, e.constructor())
	e.f("type %s%s struct {\n%s %s%s\n", t, e.declared, e.next, e.name, e.used)
	for _, m := range e.methods {
		if m.guarded {
			e.f("%s %s\n", fields[m], e.callType(m))
		}
	}
	e.f("}\n\n")
	if e.declared == "" {
		e.f("var _ %s = (%s)(nil)\n\n", e.name, self)
	} else {
		e.f("func _%s() { var _ %s%s = (%s)(nil) }\n\n", e.declared, e.name, e.used, self)
	}
	e.f("// %s puts the guards that the directives of [%s] declare in front of next. Their locks are those of locker,\n", e.constructor(), e.name)
	e.f("// and the options are for all of them; directives have the last word. See [adapter.Wrap].\n")
	e.head(e.name+e.used, self)
	e.f("switch %s.(type) {\ncase nil:\nreturn nil, %s.New(%q)\n", e.local("next"), e.imports["errors"], e.constructor()+": next is nil")
	e.f("case %s:\nreturn nil, %s.New(%q)\n}\n", self, e.imports["errors"], e.constructor()+": next is guarded already")
	w := e.local("w")
	e.f("%s := &%s%s{%s: %s}\n", w, t, e.used, e.next, e.local("next"))
	e.wrap()
	for _, m := range e.methods {
		if m.guarded {
			e.directive(m, e.name+e.used+"."+m.fn.Name(), e.local("next")+"."+m.fn.Name(), w+"."+fields[m])
		}
	}
	e.f(")\nif %s != nil {\nreturn nil, %s\n}\nreturn %s, nil\n}\n\n", e.local("err"), e.local("err"), w)
	me := e.receiver()
	for _, m := range e.methods {
		e.method(m, me+" "+self, me+"."+fields[m])
	}
	e.parts()
}

// head writes the head of a constructor, which takes a next of a type, unless that is empty.
func (e *emitter) head(next, result string) {
	if next != "" {
		next = e.local("next") + " " + next + ", "
	}
	e.f("func %s%s(%s %s.Locker, %s%s ...%s.Option) (%s, error) {\n",
		e.constructor(), e.declared, e.local("locker"), e.lock, next, e.local("opts"), e.guard, result)
}

func (e *emitter) wrap() {
	e.f("%s := %s.Wrap(%s, %s,\n", e.local("err"), e.adapter, e.local("locker"), e.local("opts"))
}

// local is a name in a constructor, which must not hide what the package calls so.
func (e *emitter) local(name string) string {
	for e.pkg.Scope().Lookup(name) != nil {
		name += "_"
	}
	return name
}

// fields are the names of the fields that hold the guarded methods. No method may have the same.
func (e *emitter) fields() map[*method]string {
	taken := make(map[string]bool)
	for _, m := range e.methods {
		taken[m.fn.Name()] = true
	}
	e.next = fresh("next", taken)
	names := make(map[*method]string)
	for _, m := range e.methods {
		names[m] = fresh(lower(m.fn.Name()), taken)
	}
	return names
}

// receiver is the name of the receiver, which no parameter has.
func (e *emitter) receiver() string {
	taken := make(map[string]bool)
	for _, m := range e.methods {
		for _, p := range m.params {
			taken[p.name] = true
		}
	}
	for _, name := range []string{"w", "g"} {
		if !taken[name] {
			return name
		}
	}
	return fresh("guarded", taken)
}

// method writes a method of the wrapper.
func (e *emitter) method(m *method, receiver, guarded string) {
	e.doc(m)
	e.f("func (%s) %s(%s) %s {\n", receiver, m.fn.Name(), e.params(m.params, m.sig.Variadic()), e.resultList(m))
	if me, _, _ := strings.Cut(receiver, " "); m.guarded {
		e.call(m, guarded, map[string]bool{me: true})
	} else {
		if m.sig.Results().Len() > 0 {
			e.f("return ")
		}
		e.f("%s.%s.%s(%s)\n", me, e.next, m.fn.Name(), names(m.params, "", m.sig.Variadic()))
	}
	e.f("}\n\n")
}

func (e *emitter) doc(m *method) {
	if !m.guarded {
		e.f("// %s is that of [%s], without a guard.\n", m.fn.Name(), e.name)
		return
	}
	e.f("// %s is that of [%s] behind the guard %q:\n//\n//\t%s\n", m.fn.Name(), e.name, m.guard, m.directive.text)
}

// call writes the call of a guarded method, and the return of its results.
func (e *emitter) call(m *method, guarded string, taken map[string]bool) {
	for _, p := range m.params {
		taken[p.name] = true
	}
	call := guarded + "(" + m.params[0].name + ", " + e.argsValue(m) + ")"
	switch results := m.results(); len(results) {
	case 0:
		err := fresh("err", taken)
		e.f("_, %s := %s\nreturn %s\n", err, call, err)
	case 1:
		e.f("return %s\n", call)
	default:
		r, err := fresh("r", taken), fresh("err", taken)
		e.f("%s, %s := %s\nreturn ", r, err, call)
		for i := range results {
			e.f("%s.r%d, ", r, i)
		}
		e.f("%s\n", err)
	}
}

// argsType is how the arguments of m are passed together, and resultsType how its results are.
func (e *emitter) argsType(m *method) string {
	switch args := m.args(); len(args) {
	case 0:
		return "struct{}"
	case 1:
		return e.of(args[0].t)
	}
	return m.argsName() + e.used
}

func (e *emitter) resultsType(m *method) string {
	switch results := m.results(); len(results) {
	case 0:
		return "struct{}"
	case 1:
		return e.of(results[0])
	}
	return m.resultsName() + e.used
}

func (e *emitter) argsValue(m *method) string {
	switch args := m.args(); len(args) {
	case 0:
		return "struct{}{}"
	case 1:
		return args[0].name
	default:
		return m.argsName() + e.used + "{" + names(args, "", false) + "}"
	}
}

// callType is the type of the guarded call.
func (e *emitter) callType(m *method) string {
	return "func(" + e.imports["context"] + ".Context, " + e.argsType(m) + ") (" + e.resultsType(m) + ", error)"
}

// directive writes the Directive of a method. of is the method or function as an expression, next what is called, and to what is
// set to the guarded call.
func (e *emitter) directive(m *method, of, next, to string) {
	args := m.args()
	e.f("%s.Directive[%s, %s]{\n", e.adapter, e.argsType(m), e.resultsType(m))
	e.f("Name: %q,\nText: %s,\nOf: %s,\n", m.guardName(), quote(m.directive.text), of)
	if named := m.argNames(); named != "" {
		e.f("Args: %q,\n", named)
	}
	if len(args) > 1 {
		e.fact(m)
	}
	e.f("Call: ")
	e.callee(m, next)
	e.f(",\nTo: &%s,\n},\n", to)
}

// quote is text as it is best read.
func quote(text string) string {
	if strconv.CanBackquote(text) && strings.ContainsAny(text, `"\`) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

// fact writes the function that returns an argument by its name.
func (e *emitter) fact(m *method) {
	args := m.args()
	e.f("Fact: func(a *%s, name string) any {\n", e.argsType(m))
	if len(args) == 2 {
		e.f("if name == %q {\nreturn a.%s\n}\n", args[0].name, args[0].name)
	} else {
		e.f("switch name {\n")
		for _, a := range args[:len(args)-1] {
			e.f("case %q:\nreturn a.%s\n", a.name, a.name)
		}
		e.f("}\n")
	}
	e.f("return a.%s\n},\n", args[len(args)-1].name)
}

// callee writes the function that makes the call.
func (e *emitter) callee(m *method, next string) {
	args, results, variadic := m.args(), m.results(), m.sig.Variadic()
	if len(args) == 1 && len(results) == 1 && !variadic {
		e.f("%s", next)
		return
	}
	passed, a := "", "a"
	switch {
	case len(args) == 0:
		a = "_"
	case len(args) == 1 && variadic:
		passed = ", a..."
	case len(args) == 1:
		passed = ", a"
	default:
		passed = ", " + names(args, "a.", variadic)
	}
	call := next + "(ctx" + passed + ")"
	e.f("func(ctx %s.Context, %s %s) ", e.imports["context"], a, e.argsType(m))
	switch len(results) {
	case 0:
		e.f("(struct{}, error) { return struct{}{}, %s }", call)
	case 1:
		e.f("(%s, error) { return %s }", e.resultsType(m), call)
	default:
		e.f("(r %s, err error) {\n", e.resultsType(m))
		for i := range results {
			e.f("r.r%d, ", i)
		}
		e.f("err = %s\nreturn r, err\n}", call)
	}
}

// parts writes the types of several arguments, and of several results.
func (e *emitter) parts() {
	for _, m := range e.methods {
		if m.guarded && len(m.args()) > 1 {
			e.f("type %s%s struct {\n", m.argsName(), e.declared)
			for _, a := range m.args() {
				e.f("%s %s\n", a.name, e.of(a.t))
			}
			e.f("}\n\n")
		}
		if m.guarded && len(m.results()) > 1 {
			e.f("type %s%s struct {\n", m.resultsName(), e.declared)
			for i, t := range m.results() {
				e.f("r%d %s\n", i, e.of(t))
			}
			e.f("}\n\n")
		}
	}
}

// function writes the guarded form of a function.
func (e *emitter) function() {
	e.declared, e.used = e.typeParams(e.tparams)
	m := e.methods[0]
	taken := map[string]bool{}
	for _, p := range m.params {
		taken[p.name] = true
	}
	call := fresh(e.local("call"), taken)
	e.f("// %s returns [%s] behind the guard %q:\n//\n//\t%s\n//\n", e.constructor(), e.name, m.guard, m.directive.text)
	e.f("// The lock is that of locker, and the directive has the last word over the options. See [adapter.Wrap].\n")
	signature := "func(" + e.params(m.params, m.sig.Variadic()) + ") " + e.resultList(m)
	e.head("", signature)
	e.f("var %s %s\n", call, e.callType(m))
	e.wrap()
	e.directive(m, e.name+e.used, e.name+e.used, call)
	e.f(")\nif %s != nil {\nreturn nil, %s\n}\n", e.local("err"), e.local("err"))
	if len(m.args()) == 1 && len(m.results()) == 1 && !m.sig.Variadic() {
		e.f("return %s, nil\n}\n\n", call)
		return
	}
	e.f("return %s {\n", signature)
	e.call(m, call, taken)
	e.f("}, nil\n}\n\n")
	e.parts()
}
