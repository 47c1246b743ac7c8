// Package spel makes keys from the texts of Java's lock annotations: from expressions in SpringEL, and
// from the names and prefixes that lock libraries put around them. A service in Go that declares
//
//	guard.KeyFrom(spel.Expression("'order:' + #order.id", spel.Params("order")))
//
// and one in Java that has @Lock(key = "'order:' + #order.id") take the same lock.
//
// The rule is: for each expression, on each request, the key that Spring makes, or an error. A mistake
// that can be known at start is an error at start, with its place in the Java text and with the text
// to write instead; one that depends on the facts is keyexpr.ErrValue. README.md in this folder has
// the table of refusals, with their reasons.
//
// Keys are not escaped and not shortened, as Java does neither: one of more than 512 bytes is
// refused, and so is one for which Java would write null.
package spel

// How a text becomes a key:
//
//	presets.go              puts around an expression what a lock library does: names, prefixes, separators
//	lex.go                  cuts an expression into tokens
//	parse.go, primary.go    make a tree of them
//	compile.go              finds out the types in Java of all nodes, and makes closures of them, with
//	                        operators.go, equals.go, methods.go, and properties.go for paths
//	key.go                  makes a program of the closures, for ../internal/run
//	values.go, lists.go     say what a value of Go is in Java
//	text.go                 says how it is spelt, and what Java's methods make of texts
//
// Nothing is shared with the language of templates but what runs a program, with its bounds.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Key is a key in Java's language, for guard.KeyFrom. It is immutable and safe for concurrent
// use. It knows the text alone. Facts come with Parse, since one key may guard several
// functions.
type Key struct {
	text  string // as the declaration in Java has it, for people
	java  *java
	parts []source
	err   error // a mistake that shows without the facts
	// one says that a list is one key, as it is converted to a text; else it is a key of each element.
	one bool
	// toString says that values are spelt as they spell themselves, and not converted.
	toString bool
	prefix   string // of each key
}

// source is a piece of a key: literal text, or an expression. An expression keeps the text that
// it stood in, for the places of errors: lock4j has a list of them.
type source struct {
	text  string
	node  *node
	whole string // what node was parsed from
}

// Expression is a key in SpringEL: an expression, or a text with expressions in #{…}. A list
// makes a key of each element.
//
// #p0 and #a0 are req. Other variables are facts of the same name, if no [Params] or [Var] says
// what they stand for. Types, beans, constructors and assignments have no counterpart; the error
// says what to write instead. A literal text is no expression: order:42 is a syntax error, as it
// is in Spring. Quotes make it one.
func Expression(text string, opts ...Option) *Key {
	k := newKey(text, opts)
	k.java.cacheRoot, k.java.path = true, true
	k.add(text, true)
	return k
}

func newKey(text string, opts []Option) *Key {
	k := &Key{text: text, java: &java{vars: map[string][]string{}}}
	for _, o := range opts {
		o.apply(k.java)
	}
	k.err = k.java.err
	return k
}

// String returns the text of the key as Java has it.
func (k *Key) String() string { return k.text }

// Check reports a mistake that shows without knowing the facts. It is an *keyexpr.Error with its
// place in the Java text.
func (k *Key) Check() error { return k.err }

// Parse type-checks the key against roots. Its error is an *keyexpr.Error with its place in the
// Java text. Options are those of keyexpr.Parse. It is what guard.KeyFrom calls, once for each
// guard.
func (k *Key) Parse(roots keyexpr.Roots, opts ...keyexpr.Option) (*keyexpr.Template, error) {
	if k.err != nil {
		return nil, k.err
	}
	return keyexpr.Compile(k.text, roots, opts, k.compile)
}

// Option sets a fact about the annotated Java method that a key can't know.
type Option interface{ apply(*java) }

type option func(*java)

func (o option) apply(j *java) { o(j) }

// java describes the annotated method, and the lock library around it. The options fill it in, and the
// presets say what each library adds.
type java struct {
	class, method string
	params        []string
	vars          map[string][]string // what each stands for: a root, and names from there
	plain         bool                // Java itself rather than SpringEL: names are written without #
	cacheRoot     bool                // #root is that of Spring's cache
	path          bool                // there is #executionPath
	prefix        string              // of all keys of a library
	err           error
}

// Params names the parameters of the Java method in their order. A single one is req; of
// several, each is the field of req that has its name. A Go handler has one request, which
// stands for one parameter or has a field for each.
func Params(names ...string) Option {
	return option(func(j *java) { j.params = names })
}

// Var says which fact the variable #name stands for: a path such as path.id or
// header["X-Tenant"]. It is also the way to what Java gets from elsewhere, such as a header that
// a filter puts into a parameter. A path that can't be read is kept as the error of the key,
// which Check and Parse give back: an option has no way to fail by itself.
func Var(name, path string) Option {
	return option(func(j *java) {
		steps, ok := steps(path)
		if !ok && j.err == nil {
			j.err = &keyexpr.Error{Text: path, Reason: fmt.Sprintf("Var(%q, …) wants a path such as path.id or header[\"X-Tenant\"]", name)}
		}
		j.vars[name] = steps
	})
}

// pathStep is a name of a path: behind a dot, or in brackets and quotes.
var pathStep = regexp.MustCompile(`^(?:\.([\pL\d_$]+)|\["([^"]+)"\])`)

// steps reads a path: name { "." name | "[" quoted "]" }.
func steps(path string) (names []string, ok bool) {
	for rest := "." + path; rest != ""; {
		m := pathStep.FindStringSubmatch(rest)
		if m == nil {
			return nil, false
		}
		names, rest = append(names, m[1]+m[2]), rest[len(m[0]):]
	}
	return names, true
}

// Method gives the full name of the Java class, as Class.getName has it, and the name of the
// method, for keys that are made of them. It can't be found out: the class is in another
// program.
func Method(class, name string) Option {
	return option(func(j *java) { j.class, j.method = class, name })
}

// variable returns the root that #name stands for, and the names from there. Without Params, any
// name may be a root, such as #header. With them, a name that is neither a parameter nor a root
// of an adapter is a typing mistake. MethodBasedEvaluationContext sets each argument by three
// names: p0, a0, and that of the parameter if the class was compiled with -parameters. All three
// mean the same value, and lead to the same fact here.
func (j *java) variable(name string) ([]string, bool) {
	if path, ok := j.vars[name]; ok {
		return path, true
	}
	for i, param := range slices.Backward(j.params) { // the last that is set
		if name == param || isPosition(name, i) {
			if len(j.params) == 1 {
				return []string{"req"}, true
			}
			return []string{"req", param}, true
		}
	}
	if isPosition(name, 0) && len(j.params) == 0 {
		return []string{"req"}, true
	}
	// #p2 of a method with two parameters is a mistake whatever roots there are: Spring would take
	// it for null.
	positional := len(name) > 1 && (name[0] == 'p' || name[0] == 'a') && strings.Trim(name[1:], "0123456789") == ""
	return []string{name}, !positional && (len(j.params) == 0 || isRoot(name))
}

func isPosition(name string, i int) bool {
	return name == fmt.Sprintf("p%d", i) || name == fmt.Sprintf("a%d", i)
}

// isRoot reports whether an adapter has a root of this name, which Params leaves alone. They are
// not parameters, and yet facts, in any guard. A filter in Java copies a header into a
// parameter; in Go it is read where it is. Without this exception, Params would hide it.
func isRoot(name string) bool {
	return slices.Contains([]string{"req", "path", "query", "header", "host", "body", "method", "md"}, name)
}

// known lists the variables, for suggestions.
func (c *compiler) known() []string {
	names := slices.AppendSeq(slices.Clone(c.params), maps.Keys(c.vars))
	if len(c.params) == 0 {
		names = slices.AppendSeq(names, maps.Keys(c.setup.Roots))
	}
	return names
}

// rootHint describes #root, which is the bean or null in most libraries.
func (c *compiler) rootHint() string {
	if c.cacheRoot {
		return "of #root there is methodName, method.name, targetClass.name, target.class.name and args[0]: name a parameter"
	}
	return "#root is not known here: name a parameter"
}

// metadata returns the text of a fact about the Java method itself, which is not there to ask. The
// names come from Method, and say nothing about the request.
func (c *compiler) metadata(n *node) (text string, ok bool) {
	name := dotted(n)
	if _, ok := c.vars[name]; ok || name == "" {
		return "", false
	}
	switch name {
	case "executionPath":
		text, ok = c.class+"."+c.method, c.path
	case "root.methodName", "root.method.name":
		text, ok = c.method, c.cacheRoot
	case "root.targetClass.name", "root.target.class.name", "root.method.declaringClass.name":
		text, ok = c.class, c.cacheRoot
	case "root.targetClass.simpleName", "root.target.class.simpleName":
		text, ok = c.class[strings.LastIndexAny(c.class, ".$")+1:], c.cacheRoot
	}
	if ok && (text == "" || c.method == "") {
		c.fail(n, "the Java method is not known: add Method(class, name)")
	}
	return text, ok
}

// dotted returns a variable with properties as root.method.name, and "" for everything else. getName()
// is name.
func dotted(n *node) string {
	switch n.kind {
	case kindVar:
		return n.text
	case kindProp, kindCall:
		if n.args[0] == nil || len(n.args) > 1 || n.safe {
			return ""
		}
		name := n.text
		if n.kind == kindCall {
			name, _ = accessor(name)
		}
		if base := dotted(n.args[0]); base != "" {
			return base + "." + name
		}
	}
	return ""
}
