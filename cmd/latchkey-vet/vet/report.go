package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// fault is one line of an error, and its place as far as it is known.
type fault struct {
	message string
	text    string // that it is about
	offset  int    // in text; -1 if it is not known
}

// faultsOf takes an error apart: a line for each mistake.
func faultsOf(err error) (faults []fault) {
	if err == nil {
		return nil
	}
	texts := templates(err)
	for message := range strings.SplitSeq(err.Error(), "\n") {
		f := fault{message: message, offset: -1}
		for _, e := range texts {
			if strings.HasSuffix(message, e.Error()) {
				f.text, f.offset = e.Text, e.Offset
			}
		}
		if m := tagPlace.FindStringSubmatch(message); f.text == "" && m != nil {
			f.text, _ = strconv.Unquote(m[1])
			f.offset, _ = strconv.Atoi(m[2])
		}
		faults = append(faults, f)
	}
	return faults
}

// tagPlace finds the text and the offset in an error about a tag.
var tagPlace = regexp.MustCompile(`tag ("(?:[^"\\]|\\.)*"): .* \(at offset (\d+)\)$`)

// templates are the errors of templates within err.
func templates(err error) (all []*keyexpr.Error) {
	switch e := err.(type) { //nolint:errorlint // it goes through all that is wrapped
	case *keyexpr.Error:
		return []*keyexpr.Error{e}
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			all = append(all, templates(err)...)
		}
	case interface{ Unwrap() error }:
		return templates(e.Unwrap())
	}
	return all
}

// fail reports each mistake in err that no option which is not known can have set right: at the text that it is about, and else at node.
func (p *pass) fail(err error, d *declared, node ast.Node, texts ...*ast.BasicLit) {
	for _, f := range d.filtered(err) {
		p.failOne(f, node, append(texts, d.texts...))
	}
}

func (p *pass) failOne(f fault, node ast.Node, texts []*ast.BasicLit) {
	d := analysis.Diagnostic{Pos: node.Pos(), End: node.End(), Message: f.message}
	if lit, pos := f.in(texts); lit != nil {
		d.Pos, d.End, d.SuggestedFixes = pos, lit.End(), fixes(lit, pos, f.message)
	} else if lit, ok := node.(*ast.BasicLit); ok {
		d.SuggestedFixes = tagFixes(lit, f.message)
	}
	p.emit(d)
}

// emit reports d, once, unless the line is excused.
func (p *pass) emit(d analysis.Diagnostic) {
	file, once := p.Fset.File(d.Pos), fmt.Sprint(d.Pos, d.Message)
	if file != nil && !p.reported[once] && !p.excused[file.LineStart(file.Line(d.Pos))] {
		p.reported[once] = true
		p.Report(d)
	}
}

// in returns the literal that f is about, and the place of the byte in it, if it has the text as it is. A literal that is the
// text comes before those that have it in them, as tags have.
func (f fault) in(texts []*ast.BasicLit) (found *ast.BasicLit, at token.Pos) {
	if f.offset < 0 || f.text == "" {
		return nil, 0
	}
	for _, lit := range texts {
		value, err := strconv.Unquote(lit.Value)
		if err != nil || value != f.text && (found != nil || !strings.Contains(value, f.text) && !strings.Contains(value, strconv.Quote(f.text))) {
			continue
		}
		found, at = lit, lit.Pos()
		if i := strings.Index(lit.Value, f.text); i >= 0 {
			at += token.Pos(i + f.offset)
		}
		if value == f.text {
			break
		}
	}
	return found, at
}

// These find what an error says should have been written.
var (
	nobodys = regexp.MustCompile(`tag (\S+):"\.\.\." is nobody's: write guard:`)
	renamed = regexp.MustCompile(`unknown (?:name|field|function|method|attribute|kind|policy) "?([\w-]+)"?(?: of [^,:]*)?, did you mean ([\w-]+)\?(?: \(at offset|$)`)
	instead = regexp.MustCompile(`not filled in: write (#\{.*\}) \(at offset`)
)

// fixes are the changes that an error asks for. The program does not start as it is, so that nothing can break.
func fixes(lit *ast.BasicLit, pos token.Pos, message string) []analysis.SuggestedFix {
	rest := lit.Value[pos-lit.Pos():]
	if m := renamed.FindStringSubmatch(message); m != nil && strings.HasPrefix(rest, m[1]) {
		return fix(pos, len(m[1]), m[2])
	}
	if strings.Contains(message, "attributes follow a semicolon, not a ") && rest != "" && strings.ContainsRune(" ,|", rune(rest[0])) {
		return fix(pos, len(strings.TrimSpace(rest[:1])), ";")
	}
	if m := instead.FindStringSubmatch(message); m != nil {
		if end := lookAlike.FindString(rest); end != "" && !strings.ContainsAny(m[1], "\"`\\…") {
			return fix(pos, len(end), m[1])
		}
	}
	return nil
}

// tagFixes are the changes of a struct tag that package reflect does not see.
func tagFixes(lit *ast.BasicLit, message string) []analysis.SuggestedFix {
	if i := strings.Index(lit.Value, `",guard:"`); i >= 0 && strings.Contains(message, "malformed struct tag") {
		return fix(lit.Pos()+token.Pos(i+1), 1, " ")
	}
	if m := nobodys.FindStringSubmatch(message); m != nil {
		if i := strings.Index(lit.Value, m[1]+`:"`); i >= 0 {
			return fix(lit.Pos()+token.Pos(i), len(m[1]), "guard")
		}
	}
	return nil
}

// lookAlike matches text that people write in the place of a hole.
var lookAlike = regexp.MustCompile(`^(?:\$\{[^{}]*\}|\{\{[^{}]*\}\})`)

func fix(pos token.Pos, length int, text string) []analysis.SuggestedFix {
	return []analysis.SuggestedFix{{
		Message:   "write " + text,
		TextEdits: []analysis.TextEdit{{Pos: pos, End: pos + token.Pos(length), NewText: []byte(text)}},
	}}
}
