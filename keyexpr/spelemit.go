package keyexpr

import (
	"strconv"
	"strings"
)

// spelEmitter writes a SpringEL expression in our language.
type spelEmitter struct {
	java  *java
	whole string
}

// parts translates an expression. The operands of a concatenation become parts of their own.
func (j *java) parts(whole string, n *spelNode) (key javaKey, err error) {
	defer func() {
		if r := recover(); r != nil {
			fault, ok := r.(spelFault)
			if !ok {
				panic(r)
			}
			key, err = nil, fault.err
		}
	}()
	e := &spelEmitter{java: j, whole: whole}
	return e.parts(n), nil
}

func (e *spelEmitter) fail(n *spelNode, format string, args ...any) {
	panic(spelFault{errAt(e.whole, n.off, format, args...)})
}

func (e *spelEmitter) parts(n *spelNode) javaKey {
	switch {
	case n.kind == spelText:
		return javaKey{{text: n.text}}
	case n.kind == spelOp && n.text == "+" && e.isText(n):
		return append(e.parts(n.args[0]), e.parts(n.args[1])...)
	case n.kind == spelCall && n.text == "concat" && n.args[0] != nil && len(n.args) == 2:
		return append(e.parts(n.args[0]), e.parts(n.args[1])...)
	}
	if text, ok := e.metadata(n); ok {
		return javaKey{{text: text}}
	}
	return javaKey{{expr: e.emit(n)}}
}

// isText reports whether n is known to be a string, whatever its operands are.
func (e *spelEmitter) isText(n *spelNode) bool {
	switch n.kind {
	case spelText:
		return true
	case spelOp:
		return n.text == "+" && (e.isText(n.args[0]) || e.isText(n.args[1]))
	case spelCall:
		switch n.text {
		case "toLowerCase", "toUpperCase", "trim", "substring", "concat", "replace", "toString", "strip":
			return n.args[0] != nil
		}
	}
	_, ok := e.metadata(n)
	return ok
}

// metadata returns what is said about the Java method itself.
func (e *spelEmitter) metadata(n *spelNode) (string, bool) {
	name := dotted(n)
	var text string
	switch name {
	case "root.methodName", "root.method.name", "root.name":
		text = e.java.method
	case "root.targetClass.name", "root.target.class.name", "root.declaringClass.name":
		text = e.java.class
	case "root.targetClass.simpleName", "root.target.class.simpleName", "root.declaringClass.simpleName":
		text = e.java.class[strings.LastIndexAny(e.java.class, ".$")+1:]
	case "executionPath":
		if text = e.java.executionPath(); e.java.method == "" {
			text = ""
		}
	default:
		return "", false
	}
	if _, ok := e.java.vars[name]; ok {
		return "", false
	}
	if text == "" {
		e.fail(n, "the Java method is not known: add Method(class, name)")
	}
	return text, true
}

// dotted returns a variable with properties as root.method.name, and "" for everything else. getName() is name.
func dotted(n *spelNode) string {
	switch n.kind {
	case spelVar:
		return n.text
	case spelProp, spelCall:
		if n.args[0] == nil || len(n.args) > 1 {
			return ""
		}
		if base := dotted(n.args[0]); base != "" {
			return base + "." + property(n)
		}
	}
	return ""
}

// property returns the name of the property that a node reads, also through its getter.
func property(n *spelNode) string {
	name := n.text
	if n.kind == spelCall {
		for _, prefix := range []string{"get", "is"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
				return strings.ToLower(rest[:1]) + rest[1:]
			}
		}
	}
	return name
}

// emit writes n as an expression that can be an operand.
func (e *spelEmitter) emit(n *spelNode) string {
	if text, ok := e.metadata(n); ok {
		return quote(text)
	}
	switch n.kind {
	case spelText:
		return quote(n.text)
	case spelNumber:
		return n.text
	case spelWord:
		return strings.Replace(n.text, "null", "nil", 1)
	case spelThis:
		return "#"
	case spelName:
		return "." + n.text
	case spelVar:
		return e.variable(n)
	case spelProp:
		return e.member(n, property(n))
	case spelIndex:
		return e.index(n)
	case spelCall:
		return e.call(n)
	case spelUnary:
		return "(" + strings.Replace(n.text, "not", "!", 1) + e.emit(n.args[0]) + ")"
	case spelTernary:
		return "(" + e.emit(n.args[0]) + " ? " + e.emit(n.args[1]) + " : " + e.emit(n.args[2]) + ")"
	case spelElvis:
		return "or(" + e.emit(n.args[0]) + ", " + e.emit(n.args[1]) + ")"
	case spelList:
		return "[" + strings.Join(e.emitAll(n.args), ", ") + "]"
	case spelSelect:
		name := map[string]string{"?": "filter", "^": "find", "$": "findLast"}[n.text]
		return name + "(" + e.collection(n) + ", " + e.emit(n.args[1]) + ")"
	case spelProject:
		return "map(" + e.collection(n) + ", " + e.emit(n.args[1]) + ")"
	}
	return e.operator(n)
}

func (e *spelEmitter) emitAll(nodes []*spelNode) []string {
	list := make([]string, len(nodes))
	for i, n := range nodes {
		list[i] = e.emit(n)
	}
	return list
}

func (e *spelEmitter) variable(n *spelNode) string {
	switch n.text {
	case "root":
		e.fail(n, "#root is not known here, but for root.methodName and root.args: name a parameter")
	case "result":
		e.fail(n, "there is no #result before the call")
	}
	expression, ok := e.java.variable(n.text)
	if !ok {
		e.fail(n, "unknown parameter #%s: list the parameters of the method with Params, or say with Var what it stands for", n.text)
	}
	if !isName(strings.ReplaceAll(expression, ".", "_")) {
		return "(" + expression + ")"
	}
	return expression
}

// base writes what a dot or an index follows.
func (e *spelEmitter) base(n *spelNode) string {
	if n.kind == spelNumber {
		return "(" + n.text + ")"
	}
	return e.emit(n)
}

// member writes args[0].name.
func (e *spelEmitter) member(n *spelNode, name string) string {
	dot := "."
	if n.safe {
		dot = "?."
	}
	base := e.base(n.args[0])
	if !isName(name) {
		return base + strings.TrimPrefix(dot, ".") + "[" + quote(name) + "]"
	}
	return base + dot + name
}

func (e *spelEmitter) index(n *spelNode) string {
	if dotted(n.args[0]) == "root.args" && n.args[1].kind == spelNumber {
		return e.variable(&spelNode{kind: spelVar, off: n.off, text: "p" + n.args[1].text})
	}
	open := "["
	if n.safe {
		open = "?.["
	}
	return e.base(n.args[0]) + open + e.emit(n.args[1]) + "]"
}

// collection writes the list of a selection or projection, which is empty for null behind ?.
func (e *spelEmitter) collection(n *spelNode) string {
	if n.safe {
		return "(" + e.emit(n.args[0]) + " ?? [])"
	}
	return e.emit(n.args[0])
}

func (e *spelEmitter) operator(n *spelNode) string {
	op := n.text
	if n.text == "between" {
		return e.between(n)
	}
	left, right := e.emit(n.args[0]), e.emit(n.args[1])
	switch op {
	case "+":
		return "plus(" + left + ", " + right + ")"
	case "/", "div":
		return "div(" + left + ", " + right + ")"
	case "matches":
		if n.args[1].kind != spelText {
			e.fail(n.args[1], "a pattern must be written out")
		}
		right = quote("^(?:" + n.args[1].text + ")$") // in Java the whole string must match
	default:
		op = goOperator(op)
	}
	return "(" + left + " " + op + " " + right + ")"
}

func goOperator(op string) string {
	switch op {
	case "eq":
		return "=="
	case "ne":
		return "!="
	case "lt":
		return "<"
	case "le":
		return "<="
	case "gt":
		return ">"
	case "ge":
		return ">="
	case "mod":
		return "%"
	}
	return op
}

func (e *spelEmitter) between(n *spelNode) string {
	bounds := n.args[1]
	if bounds.kind != spelList || len(bounds.args) != 2 {
		e.fail(bounds, "between takes a list of two: {1, 5}")
	}
	x := e.emit(n.args[0])
	return "(" + x + " >= " + e.emit(bounds.args[0]) + " and " + x + " <= " + e.emit(bounds.args[1]) + ")"
}

// methods writes the methods of String and List by name and number of arguments. $0 is the object.
var methods = map[string]string{
	"toLowerCase/0": "lower($0)", "toUpperCase/0": "upper($0)", "trim/0": "javaTrim($0)", "strip/0": "trim($0)",
	"length/0": "javaLength($0)", "hashCode/0": "javaHash($0)", "toString/0": "string($0)", "intern/0": "$0",
	"substring/1": "javaSubstring($0, $1)", "substring/2": "javaSubstring($0, $1, $2)", "concat/1": "plus(string($0), $1)",
	"replace/2": "replace($0, $1, $2)", "startsWith/1": "($0 startsWith $1)", "endsWith/1": "($0 endsWith $1)",
	"contains/1": "($0 contains $1)", "isEmpty/0": "(len($0) == 0)", "size/0": "len($0)", "get/1": "$0[$1]",
	"equals/1": "($0 == $1)", "equalsIgnoreCase/1": "(lower($0) == lower($1))", "split/1": "split($0, $1)",
	"intValue/0": "int($0)", "longValue/0": "int($0)",
}

func (e *spelEmitter) call(n *spelNode) string {
	if n.args[0] == nil {
		return n.text + "(" + strings.Join(e.emitAll(n.args[1:]), ", ") + ")"
	}
	object, args := e.base(n.args[0]), e.emitAll(n.args[1:])
	if n.text == "contains" && n.args[0].kind == spelList && len(args) == 1 {
		return "(" + args[0] + " in " + object + ")"
	}
	pattern, ok := methods[n.text+"/"+strconv.Itoa(len(args))]
	if !ok && len(args) == 0 {
		return e.member(n, property(n))
	}
	if !ok {
		e.fail(n, "the method %s with %d arguments is not known: give the template a function with Func and write #%s(…)", n.text, len(args), n.text)
	}
	pairs := []string{"$0", object}
	for i, arg := range args {
		pairs = append(pairs, "$"+strconv.Itoa(i+1), arg)
	}
	if !n.safe {
		return strings.NewReplacer(pairs...).Replace(pattern)
	}
	return "(" + object + " == nil ? nil : " + strings.NewReplacer(pairs...).Replace(pattern) + ")"
}

// quote writes a string as the engine reads it.
func quote(s string) string { return strconv.Quote(s) }
