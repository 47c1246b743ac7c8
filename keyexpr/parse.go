package keyexpr

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/parser"
)

// A hole, and a condition, is an expression of expr-lang. Of its grammar this is what passes,
// from the loosest operator to the tightest:
//
//	expression  = [ "let" name "=" expression ";" ] choice
//	choice      = or [ "?" expression ":" expression ] | "if" or "{" expression "}" "else" …
//	or, and     = operands of "or" "||", "and" "&&"
//	comparison  = "==" "!=" "<" "<=" ">" ">=" "in" "matches" "contains" "startsWith" "endsWith", "not" in front of a word
//	sum         = ".." , then "+" "-" , then "*" "%" ; conditions also have "/" "**" "^"
//	default     = operand "??" operand
//	unary       = "!" "not" "-" "+"
//	postfix     = primary { "." name | "?." name | "[" expression "]" | "[" from ":" to "]" | "(" ")" | "|" function }
//	primary     = root | literal | list | map | function "(" arguments ")" | "#" in a loop | "(" expression ")"

// Builtins of the engine that keys and conditions may use. Those that depend on time or on the
// order of a map, that build up values without bound, or that are done better in func.go are missing
// on purpose. Each of those that are here is our own code in func.go and the files beside it, since
// the engine's has no budget. This list is what may be called, so that a function which a new
// version of the engine brings does not get into keys by itself.
const (
	keyBuiltins  = " all any none one filter map find findLast findIndex count sortBy len trim trimPrefix trimSuffix indexOf lastIndexOf hasPrefix hasSuffix max min first last get take reverse concat flatten sort "
	condBuiltins = " abs ceil floor round float sum mean median date duration timezone type "
)

// Conditions may do more, as what they compute is thrown away: a float or the time of day
// decides, and is no part of a key.
func allowed(name string, cond bool) bool {
	name = " " + name + " "
	return strings.Contains(keyBuiltins, name) || cond && strings.Contains(condBuiltins, name)
}

// whyNot says what to do instead of using a builtin that is not allowed. A name that the engine
// knows, and that is refused, would otherwise be answered with "unknown name", which nobody
// believes who has just read about it in the engine's manual.
func whyNot(name string) string {
	switch name {
	case "now", "date":
		return ": a key with the time in it is never the same twice; conditions may use it"
	case "keys", "values", "toPairs":
		return ": a map has no order, so the key would not be the same twice"
	case "toJSON":
		return ": use hash(x)"
	case "reduce", "sum":
		return ": use join, map or filter"
	case "repeat":
		return ": it makes text without bound"
	case "fromPairs", "groupBy":
		return ": a map is no key material"
	}
	return ""
}

// javaName finds what Java's expressions have, and templates only in loops. It knows letters of
// all alphabets, as Java does.
var javaName = regexp.MustCompile(`#[\pL_][\pL_\d]*`)

// javaText explains an error by a # that belongs to Java, if there is one. #index and #acc are
// words of the engine. Whatever else begins with # comes from a Java annotation, and the
// engine's own words for it ("unexpected token Operator") lead nowhere.
func (c *compilation) javaText() (*Error, bool) {
	for _, at := range javaName.FindAllStringIndex(c.src, -1) {
		if name := c.src[at[0]:at[1]]; name != "#index" && name != "#acc" {
			return errAt(c.text, c.off+at[0], "names have no # here: write %s; a key in Java's language goes through package spel", name[1:]), true
		}
	}
	return nil, false
}

// The rules are checked on the tree as it was written, before types are known: a function that
// is not allowed should be named, and not its argument that is of the wrong type.
func (c *compilation) parse() (*parser.Tree, error) {
	tree, err := parser.ParseWithConfig(hideOr(c.src), c.conf)
	if err != nil {
		return nil, c.engineError(err)
	}
	// The engine has expanded what it calls builtins by now, pipes among them, so that the rules see a | f()
	// as f(a) and need to know one spelling.
	v := ruleVisitor{c: c}
	ast.Walk(&tree.Node, &v)
	if v.err != nil {
		return nil, v.err
	}
	return tree, nil
}

// checkSyntax parses one expression. It has no roots, so that whatever is there may be meant.
// Patterns are looked at nevertheless. They must be written out, so that what is wrong with one
// shows without any type.
func checkSyntax(text, src string, off int, cond bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errAt(text, off, "the expression engine gives up: %v", r)
		}
	}()
	c := &compilation{text: text, src: src, off: off, cond: cond}
	c.conf = c.newConf()
	tree, err := parser.ParseWithConfig(hideOr(src), c.conf)
	if err != nil {
		_, err := c.parse()
		return err
	}
	v := patternVisitor{c: c}
	ast.Walk(&tree.Node, &v)
	return v.err
}

// ruleVisitor refuses what the profile does not have, before types are known. It stops at the
// first fault by keeping it, as the engine's walk can't be left.
type ruleVisitor struct {
	c   *compilation
	err error
}

// $env is a map of all roots by name. It would make every check of names void. The engine reads
// a ?: b as a choice whose test and first branch are one node, which is how it is told from a ?
// a : b.
func (v *ruleVisitor) Visit(node *ast.Node) {
	if v.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == "$env" {
			v.err = v.c.at(n, "$env is not here: name a root")
		}
	case *ast.BuiltinNode:
		if !allowed(n.Name, v.c.cond) {
			v.err = v.c.refuseBuiltin(n, n.Name)
		}
	case *ast.CallNode:
		v.err = v.c.checkCallee(n)
	case *ast.ConditionalNode:
		if n.Ternary && n.Cond == n.Exp1 {
			v.err = v.c.at(n.Cond, "?: is for true and false here: use or(a, b), or a ?? b")
		}
	case *ast.BinaryNode:
		if !v.c.cond && (n.Operator == "/" || n.Operator == "**" || n.Operator == "^") {
			v.err = v.c.at(n, "%s makes a float: use div(a, b) or another function", n.Operator)
		}
		if v.c.cond && (n.Operator == "==" || n.Operator == "!=" || n.Operator == "in") {
			v.err = v.c.checkFilled(n)
		}
		if n.Operator == "matches" {
			v.err = v.c.checkPattern(n.Right)
		}
		if i, ok := integer(n.Right); ok && i == 0 && n.Operator == "%" {
			v.err = v.c.at(n.Right, "nothing can be divided by 0")
		}
	}
}

// patternVisitor is ruleVisitor for patterns alone. Without roots nothing else of the profile
// can be held: a name that is no function may be one of the user's.
type patternVisitor struct {
	c   *compilation
	err error
}

func (v *patternVisitor) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.BinaryNode); ok && n.Operator == "matches" && v.err == nil {
		v.err = v.c.checkPattern(n.Right)
	}
}

// maxProgram is the size of the largest pattern, in instructions of its program. Matching takes
// its product with the size of the subject. Go's patterns take time in proportion to this
// product, whatever the pattern: they have no exponential cases as Java's and Perl's do. 500
// instructions are a pattern of some lines.
const maxProgram = 500

// checkPattern bounds a pattern, which must be written out: nobody else's pattern is run. A
// pattern that comes from a request is a program that comes from a request.
func (c *compilation) checkPattern(n ast.Node) error {
	pattern, ok := n.(*ast.StringNode)
	if !ok {
		return c.at(n, "a pattern must be written out")
	}
	if _, err := programSize(pattern.Value); err != nil {
		return c.at(n, "%v", err)
	}
	return nil
}

// programSize is measured on the program that will run. The length of a pattern says nothing:
// a{30}{30} has nine characters. Simplify has to come first, as regexp.Compile does it, too: it
// is what unrolls the repetitions.
func programSize(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, err
	}
	if n := len(prog.Inst); n <= maxProgram {
		return n, nil
	}
	return 0, errLargePattern
}

// The engine would find out by itself that a root is no function, and says it in words about
// types.
func (c *compilation) checkCallee(n *ast.CallNode) error {
	name, ok := n.Callee.(*ast.IdentifierNode)
	if !ok {
		return nil
	}
	if _, ok := c.hosts[name.Value]; ok {
		return c.checkArguments(n, name.Value)
	}
	if _, ok := builtin.Index[name.Value]; ok && !allowed(name.Value, c.cond) {
		return c.refuseBuiltin(n, name.Value)
	}
	if root, ok := c.roots[name.Value]; ok && root.of.Lookup {
		return c.at(n, "%s is not a function: "+onlyLookedUp, name.Value, "it", name.Value, name.Value)
	} else if ok {
		return c.at(n, "%s is not a function", name.Value)
	}
	return nil
}

// checkArguments refuses arguments that are written out and can't be meant, whatever the request is.
// The message of required goes to logs and may be answered to a client: one that is computed could
// hold the value that it is about.
func (c *compilation) checkArguments(n *ast.CallNode, name string) error {
	if len(n.Arguments) != 2 {
		return nil
	}
	second := n.Arguments[1]
	text, written := second.(*ast.StringNode)
	number, fixed := integer(second)
	switch {
	case name == "required" && !written:
		return c.at(second, "the message of required must be written out")
	case name == "fmtTime" && written:
		if why := layoutFault(text.Value); why != "" {
			return c.at(second, "%s", why)
		}
	case fixed && number == 0 && name == "div":
		return c.at(second, "nothing can be divided by 0")
	case fixed && number < 1 && name == "mod":
		return c.at(second, "mod divides by 1 or more")
	case fixed && number < 1 && name == "shard":
		return c.at(second, "there are no shards: write how many, as in shard(x, 16)")
	}
	return nil
}

// It is the same sentence whether the engine's parser or its checker comes upon the name.
func (c *compilation) refuseBuiltin(n ast.Node, name string) error {
	return c.at(n, "%s is not allowed here%s", name, whyNot(name))
}

// orName is what the function or is called for the engine, to which the word is always an
// operator. It has as many runes, so that offsets stay the same. To hide a name is less than to
// patch the engine's lexer, and the checker, which has to know the function by some name.
const orName = "o\u0155"

// hideOr renames calls of the function or in an expression: those where an operand may begin.
// Whether or is the operator or the function shows by what is in front of it: an operator stands
// behind an operand. It must be a call, too. So `a or (b)` stays what it is, and `or(a, b)`, `x
// | or(y)` and `[or(a, b)]` are calls.
func hideOr(src string) string {
	if !strings.Contains(src, "or") {
		return src
	}
	var b strings.Builder
	operand := false // the last token ends an operand
	for i := 0; i < len(src); {
		n := 1
		switch c := src[i]; {
		case c == '\'' || c == '"' || c == '`':
			n, operand = max(skipQuoted(src[i:]), 1), true
		case c == '/' && skipQuoted(src[i:]) != 1:
			n = max(skipQuoted(src[i:]), 1)
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case wordAt(src[i:]) > 0:
			n = wordAt(src[i:])
			word := src[i : i+n]
			call := strings.HasPrefix(strings.TrimLeft(src[i+n:], " \t\r\n"), "(")
			if word == "or" && !operand && call {
				b.WriteString(orName)
				i, operand = i+n, true
				continue
			}
			operand = isName(word) || slices.Contains([]string{"true", "false", "nil"}, word) || word[0] <= '9'
		default:
			operand = c == ')' || c == ']' || c == '}' || c == '#'
		}
		b.WriteString(src[i : i+n])
		i += n
	}
	return b.String()
}

// wordAt returns the length of the name or number that s begins with. It ends where the engine's
// lexer ends a name, so that for and order are words, and no or within.
func wordAt(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool { return !isLetter(r) && r != '$' && (r < '0' || r > '9') })
	if n < 0 {
		return len(s)
	}
	return n
}

// showOr gives the function its name back, in messages. A name that nobody has written would
// send its reader to look for it.
func showOr(s string) string { return strings.ReplaceAll(s, orName, "or") }

// skipQuoted returns the length of the string or comment that s begins with, 1 if it begins with
// neither, and -1 if its end is missing. A slash alone divides. What follows it is part of the
// expression, and must be looked at for brackets.
func skipQuoted(s string) int {
	switch {
	case strings.HasPrefix(s, "//"):
		return lengthTo(s, 2, "\n")
	case strings.HasPrefix(s, "/*"):
		return lengthTo(s, 2, "*/")
	case s[0] == '/':
		return 1
	case s[0] == '`':
		return skipRaw(s)
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return -1
}

// skipRaw is skipQuoted for a string in backquotes, in which two backquotes stand for one. In a
// raw string nothing is escaped, and so the backslash of a pattern does not hide its end.
func skipRaw(s string) int {
	for i := 1; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		if i+1 == len(s) || s[i+1] != '`' {
			return i + 1
		}
		i++
	}
	return -1
}

func lengthTo(s string, from int, end string) int {
	i := strings.Index(s[from:], end)
	if i < 0 {
		return -1
	}
	return from + i + len(end)
}

// The place of the error is where it began, since where it should have ended is not known.
func quotedName(s string) string {
	if s[0] == '/' {
		return "the comment"
	}
	return "the string"
}
