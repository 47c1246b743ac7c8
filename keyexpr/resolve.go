package keyexpr

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/latchkey-go/latchkey/internal/suggest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// Names. A field has its name in Go, and often another in JSON and in a .proto file, and whoever
// writes a template has one of them in mind. All are taken, if they mean one field; the tree
// goes on with Go's name, so that types, lists of fields and errors speak of the same thing.
//
// A name that there is not gets a sentence. It only suggests what can stand there, with one edit
// distance for the whole house (internal/suggest), and beside a far guess, or without one, it
// lists what there is.

// resolveNames replaces the names that JSON, protobuf and other cases have for a field by the Go
// name. It goes on as long as a new name brings to light the type of what comes after it. The
// type of a.b is known only when b is. So a path with three foreign names takes three rounds,
// each of which finds one name more. What is not found in a round is left to the checker, which
// says so with a place.
func (c *compilation) resolveNames(tree *parser.Tree) error {
	for {
		_ = c.typecheck(tree)
		v := aliasVisitor{c: c}
		ast.Walk(&tree.Node, &v)
		if v.err != nil || !v.found {
			return v.err
		}
		ast.Walk(&tree.Node, forgetCalls{})
	}
}

// It changes names in place and lets the caller check again, as what lies behind a name has no
// type before.
type aliasVisitor struct {
	c     *compilation
	found bool
	err   error
}

// Visit takes a Go name for itself first, also where another field has it as its JSON name: what
// the compiler of Go would read is what a reader of the template expects. A method is taken
// before any alias: req.GetName() must not become a field that JSON calls GetName. A field
// behind a call, req.name(), is left alone for the same reason: the call is what is wrong there.
// The getter comes last, for messages whose fields can't be seen at all.
func (v *aliasVisitor) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.MemberNode)
	if !ok || v.err != nil {
		return
	}
	name, ok := n.Property.(*ast.StringNode)
	if !ok || v.c.isLookup(n.Node) {
		return
	}
	cache := &v.c.conf.NtCache
	base := n.Node.Nature().Deref(cache)
	if base.Kind != reflect.Struct {
		return
	}
	if _, ok := n.Node.Nature().MethodByName(cache, name.Value); ok {
		return
	}
	if _, ok := base.FieldByName(cache, name.Value); ok || n.Method {
		return
	}
	switch fields := run.Aliases(base.Type, name.Value); {
	case len(fields) == 1:
		name.Value, v.found = fields[0], true
	case len(fields) > 1:
		v.err = v.c.at(n, "%s of %s may be %s: use the Go name", name.Value, typeName(base.Type), strings.Join(fields, " or "))
	default:
		if getter, ok := run.Getter(n.Node.Nature().Type, name.Value); ok {
			name.Value, n.Method, v.found = getter, true, true
			ast.Patch(node, &ast.CallNode{Callee: n})
		}
	}
}

// engineError converts an error of the engine, whose offset counts runes of src. The engine
// counts runes, as an editor does. Errors of this package count bytes, as Go does, and point
// into the whole template.
func (c *compilation) engineError(err error) error {
	if java, ok := c.javaText(); ok {
		return java
	}
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return errAt(c.text, c.off, "%v", err)
	}
	return errAt(c.text, c.off+byteOffset(c.src, fault.From), "%s", reworded(showOr(fault.Message)))
}

// rewordings are what the engine says in words of its own parser and checker, and what its reader
// has to do. Where the engine knows no more than that something is wrong, nor do these: but that a
// text and a number are "mismatched" has never told anybody to write string(x).
var rewordings = []struct {
	engine *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^unexpected token EOF`), "the expression ends too early: something is missing"},
	{regexp.MustCompile(`^unexpected token Operator\("="\)`), `unexpected "=": nothing is assigned here, and == compares`},
	{regexp.MustCompile(`^unexpected token \w+\((".*")\)`), "unexpected $1"},
	{regexp.MustCompile(`^invalid operation: (\|\||or) \(mismatched types (.+) and (.+)\)`), "$1 is for true and false, and not for $2 and $3: or(a, b) is the first that is not empty"},
	{regexp.MustCompile(`^invalid operation: (&&|and) \(mismatched types (.+) and (.+)\)`), "$1 is for true and false, and not for $2 and $3"},
	{regexp.MustCompile(`^invalid operation: \+ \(mismatched types (string and .+|.+ and string)\)`), "+ does not put $1 together: string(x) is the text of a number"},
	{regexp.MustCompile(`^invalid operation: % \(mismatched types string and .+\)`), "% is for whole numbers: shard(x, 16) makes one of a text"},
	{regexp.MustCompile(`^invalid operation: ([=!<>]=?) \(mismatched types (string and .+|.+ and string)\)`), "$1 does not compare $2: string(x) is the text of a number"},
	{regexp.MustCompile(`^invalid operation: (\S+) \(mismatched types (.+)\)`), "$1 is not for $2"},
	{regexp.MustCompile(`^cannot use int to get an element from map\[string\]interface \{\}`), `what is looked up has names and no numbers, as in header["X-Tenant"]`},
	{regexp.MustCompile(`^type string\[int\] is undefined`), "a text has no elements: [0:1] is the first byte of one"},
}

func reworded(message string) string {
	for _, r := range rewordings {
		if r.engine.MatchString(message) {
			return r.engine.ReplaceAllString(message, r.ours)
		}
	}
	return message
}

// at is an error at a node of the tree. Nodes keep the place where they begin. That of a + is
// the operator, which is where a person would point, too.
func (c *compilation) at(n ast.Node, format string, args ...any) error {
	return errAt(c.text, c.off+byteOffset(c.src, n.Location().From), format, args...)
}

// explain finds a better message than the engine's for an unknown name. It does not replace what
// is right about the engine's error, which is where the fault lies. It finds the node there, and
// looks whether that is a name which does not exist.
func (c *compilation) explain(tree *parser.Tree, err error) error {
	fault, ok := errors.AsType[*file.Error](err)
	if !ok {
		return c.engineError(err)
	}
	// A name that is misspelt makes everything around it wrong as well: an unknown field has no type, and
	// what is done with it is "mismatched". The engine reports the first fault that it comes upon, which
	// is the innermost one, so that the place is right even where its words are not.
	v := unknownVisitor{c: c, at: fault.Location}
	ast.Walk(&tree.Node, &v)
	if v.err != nil {
		return v.err
	}
	return c.engineError(err)
}

// unknownVisitor explains the unknown name at a place. The engine gives a place, and no node. A
// walk finds the node again.
type unknownVisitor struct {
	c    *compilation
	at   file.Location
	err  error
	name *ast.IdentifierNode // that is unknown, if it is one
}

// The name of a function is visited as any other name is, before the call is. By then it is
// known to be one of a function, for which functions are suggested; the check at the top takes
// the explanation back that the name alone has got.
func (v *unknownVisitor) Visit(node *ast.Node) {
	if call, ok := (*node).(*ast.CallNode); ok && call.Callee.Location() == v.at {
		if name, ok := call.Callee.(*ast.IdentifierNode); ok { // visited already, as a name that could be anything
			if _, known := v.c.conf.Functions[name.Value]; !known {
				v.err, v.name = v.c.unknownFunction(name), nil
			}
		}
	}
	if loop, ok := (*node).(*ast.BuiltinNode); ok {
		v.inElement(loop)
	}
	if (*node).Location() != v.at || v.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if v.err = v.c.unknownName(n); v.err != nil {
			v.name = n
		}
	case *ast.MemberNode:
		v.err = v.c.unknownMember(n)
	}
}

// inElement explains an unknown name in a loop that is a field of its elements, whose dot is
// missing. A loop is visited behind what is in it.
func (v *unknownVisitor) inElement(loop *ast.BuiltinNode) {
	if v.name == nil || len(loop.Arguments) < 2 {
		return
	}
	elem, ok := v.c.elemOf(loop.Arguments[0])
	if ok && elem != nil && elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if !ok || elem == nil || elem.Kind() != reflect.Struct {
		return
	}
	if f, ok := elem.FieldByName(v.name.Value); ok && f.IsExported() && ast.Find(loop.Arguments[1], func(n ast.Node) bool { return n == v.name }) != nil {
		v.err = v.c.at(v.name, "unknown name %s: write .%s for that of the element", v.name.Value, v.name.Value)
	}
}

// unknownFunction looks first for what was meant by it elsewhere: sha256 is no slip of the pen for
// shard, though it is near, and GetID may be a method of the request.
func (c *compilation) unknownFunction(n *ast.IdentifierNode) error {
	if write, ok := elsewhere[strings.ToLower(n.Value)]; ok {
		return c.at(n, "unknown function %s: %s", n.Value, write)
	}
	// Sorted, so that of two roots with the method the same one is shown each time: an error that changes
	// from run to run is taken for two.
	for _, root := range slices.Sorted(maps.Keys(c.roots)) {
		if t := c.roots[root].of.Type; t != nil && slices.Contains(methodNames(t), n.Value) {
			return c.at(n, "unknown function %s: write %s.%s()", n.Value, root, n.Value)
		}
	}
	return c.at(n, "unknown function %s%s", n.Value, suggest.Ending(n.Value, c.functionNames()))
}

// elsewhere has the names that functions of other languages have, in small letters, and what is
// written here. A name that is near to one of ours by its letters alone would be a wrong guess.
var elsewhere = map[string]string{
	"tolower": "write lower(x)", "tolowercase": "write lower(x)", "lowercase": "write lower(x)",
	"toupper": "write upper(x)", "touppercase": "write upper(x)", "uppercase": "write upper(x)",
	"trimspace": "write trim(x)", "strip": "write trim(x)", "length": "write len(x)", "size": "write len(x)",
	"substr": "write x[0:4]", "substring": "write x[0:4]", "slice": "write x[0:4]", "left": "write x[0:4]",
	"md5": "write hash(x)", "sha1": "write hash(x)", "sha256": "write hash(x)", "digest": "write hash(x)", "checksum": "write hash(x)",
	"default": "write or(x, \"none\")", "coalesce": "write or(x, \"none\")", "ifnull": "write or(x, \"none\")",
	"str": "write string(x)", "tostring": "write string(x)", "itoa": "write string(x)", "sprintf": "write a + \":\" + b",
	"format": "write a + \":\" + b, and fmtTime(x, \"2006-01-02\") for a time", "formattime": "write fmtTime(x, \"2006-01-02\")",
	"uuid": "a key must be the same for the same request", "guid": "a key must be the same for the same request",
	"random": "a key must be the same for the same request", "rand": "a key must be the same for the same request",
	"env": "what does not come from the request is literal text", "getenv": "what does not come from the request is literal text",
}

// Without a guess the list of roots is shown, as there are only a few: to know them is what was
// missing.
func (c *compilation) unknownName(n *ast.IdentifierNode) error {
	if _, ok := c.conf.Env.Fields[n.Value]; ok {
		return nil
	}
	if _, ok := c.conf.Functions[n.Value]; ok {
		return nil
	}
	if access, ok := c.dashed(n); ok {
		return c.at(n, "unknown name %s: a name with a dash is written %s", n.Value, access)
	}
	if path, ok := c.inReach(n.Value); ok {
		return c.at(n, "unknown name %s: write %s", n.Value, path)
	}
	return c.at(n, "unknown name %s%s", n.Value, suggest.Ending(n.Value, slices.Collect(maps.Keys(c.roots))))
}

// dashed finds out whether n is a piece of header.X-Tenant-Id, and how that is written.
// header.X-Tenant is a subtraction to the engine, whose error is about Tenant. To find out what
// was meant, the source has to be looked at on both sides of the place.
func (c *compilation) dashed(n ast.Node) (access string, ok bool) {
	at := byteOffset(c.src, n.Location().From)
	inName := func(b byte) bool {
		return b == '-' || b == '_' || b >= '0' && b <= '9' || b|' ' >= 'a' && b|' ' <= 'z'
	}
	start, end := at, at
	for start > 0 && (inName(c.src[start-1]) || c.src[start-1] == '.') {
		start--
	}
	for end < len(c.src) && inName(c.src[end]) {
		end++
	}
	root, name, _ := strings.Cut(c.src[start:end], ".")
	if !c.roots[root].of.Lookup || !strings.Contains(name, "-") {
		return "", false
	}
	return fmt.Sprintf("%s[%q]", root, name), true
}

// unknownMember suggests fields for fields and methods for methods, and asks first whether a
// function was meant: x.lower() is how other languages write lower(x). An unexported field is
// there for whoever looks at the type, and is not there for a template. To say "unknown field",
// and to suggest another, would send its reader to look for a typing mistake.
func (c *compilation) unknownMember(n *ast.MemberNode) error {
	name, ok := n.Property.(*ast.StringNode)
	root, lookup := c.lookupRoot(n.Node)
	if lookup && (n.Method || !ok) {
		return c.at(n, onlyLookedUp, n.Node, n.Node, n.Node)
	}
	if !ok {
		return nil
	}
	if lookup {
		if !root.Closed || slices.Contains(root.Names, name.Value) {
			return nil
		}
		return c.at(n, "unknown name %s of %s%s", name.Value, c.source(n.Node), suggest.Ending(name.Value, root.Names))
	}
	base := n.Node.Nature().Deref(&c.conf.NtCache)
	if n.Method && slices.Contains(c.functionNames(), name.Value) {
		return c.at(n, "%s is a function, no method: write %s(%s)", name.Value, name.Value, c.source(n.Node))
	}
	// Before fields are suggested: texts and lists have none, and "type string has no method ToLower" is
	// something that its reader does not believe.
	if write := c.elsewhereCalled(n, name.Value, base.Kind); write != "" {
		return c.at(n, "%s", write)
	}
	if base.Kind != reflect.Struct {
		return nil
	}
	if _, ok := base.FieldByName(&c.conf.NtCache, name.Value); ok {
		return nil
	}
	if _, ok := n.Node.Nature().MethodByName(&c.conf.NtCache, name.Value); ok && n.Method {
		return c.at(n, onlyTelling)
	}
	if n.Method {
		return c.at(n, "unknown method %s of %s%s", name.Value, typeName(base.Type), suggest.Ending(name.Value, methodNames(n.Node.Type())))
	}
	if f, ok := base.Type.FieldByName(name.Value); ok && !f.IsExported() {
		return c.at(n, "field %s of %s is not exported: nothing outside of its package can read it", name.Value, typeName(base.Type))
	}
	names := slices.Collect(maps.Keys(nature.StructFields(&c.conf.NtCache, base.Type)))
	return c.at(n, "unknown field %s of %s%s", name.Value, typeName(base.Type), suggest.Ending(name.Value, names))
}

// elsewhereCalled says what is written here for a method or field that texts and lists have in other
// languages, and "" if it does not know.
func (c *compilation) elsewhereCalled(n *ast.MemberNode, name string, kind reflect.Kind) string {
	of, write := c.source(n.Node), elsewhere[strings.ToLower(name)]
	word := strings.ToLower(name[:min(1, len(name))]) + name[min(1, len(name)):]
	switch list := kind == reflect.Slice || kind == reflect.Array; {
	case kind != reflect.String && !list:
		return ""
	case write != "":
		return fmt.Sprintf("%s has no %s: %s", of, name, write)
	case n.Method && list && (word == "contains" || word == "includes"):
		return fmt.Sprintf("%s has no %s: write \"…\" in %s", of, name, of)
	case n.Method && !list && slices.Contains([]string{"contains", "startsWith", "endsWith", "matches"}, word):
		return fmt.Sprintf("%s has no method %s: write %s %s \"…\"", of, name, of, word)
	case n.Method || !list:
		return ""
	}
	if elem, _ := c.elemOf(n.Node); elem != nil && basicTypes[elem.Kind()] != nil {
		return fmt.Sprintf("%s is a list of %v: it has no fields, and %s[0] is its first element", of, elem, of)
	}
	return fmt.Sprintf("%s is a list: write map(%s, .%s), or %s[0].%s for one element", of, of, name, of, name)
}

// They include those that a key could not call, as the name is the question here; the next error
// is about the arguments.
func methodNames(t reflect.Type) (names []string) {
	for m := range t.Methods() {
		names = append(names, m.Name)
	}
	return names
}

// The package is left out where it can be: the type is in the program of whoever reads this.
func typeName(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.String()
}

// functionNames lists what can be called, for suggestions. Names that can't be written, such as
// that of the function which the checker puts in, are left out.
func (c *compilation) functionNames() (names []string) {
	for _, f := range builtin.Builtins {
		if allowed(f.Name, c.cond) {
			names = append(names, f.Name)
		}
	}
	for name := range c.hosts {
		if isLetter(rune(name[0])) {
			names = append(names, showOr(name))
		}
	}
	return names
}

// source returns the text of a node for messages, without what the engine adds. It spells the
// tree and not the text. The engine has no end of a node's place, and a message needs the node
// alone.
func (c *compilation) source(n ast.Node) string {
	return strings.ReplaceAll(run.Abridge(showOr(n.String())), "\n", " ")
}
