package gen

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	"github.com/latchkey-go/latchkey/internal/suggest"
)

// directive is a comment //latchkey:guard with what it says.
type directive struct {
	pos  token.Pos
	text string
}

// prefix begins a directive.
const prefix = "//latchkey:guard"

// example is a directive to copy.
const example = prefix + " order:#{id}; wait=5s"

// spot is where the comments of a group stand.
type spot struct {
	name  *ast.Ident // of a method or function; nil where a directive can't be
	fault string     // what is wrong with a directive there
}

// scan returns the directives of a file by the places of the names that they are about, and the mistakes in others.
func scan(f *ast.File) (map[token.Pos]directive, []fault) {
	found, faults := make(map[token.Pos]directive), []fault(nil)
	spots := spotsOf(f)
	for _, group := range f.Comments {
		at, known := spots[group]
		if !known {
			at.fault = "stands where there is nothing to guard: write it right above a method of an interface, or a function, of the package"
		}
		for _, c := range group.List {
			text, ok, wrong := read(c.Text)
			switch {
			case wrong != "":
				faults = append(faults, fault{c.Pos(), wrong})
			case !ok:
			case at.fault != "":
				faults = append(faults, fault{c.Pos(), "directive " + at.fault})
			case found[at.name.Pos()].pos.IsValid():
				faults = append(faults, fault{c.Pos(), fmt.Sprintf("second directive of %s: write one, with semicolons between its parts", at.name.Name)})
			default:
				found[at.name.Pos()] = directive{c.Pos(), text}
			}
		}
	}
	return found, faults
}

// spotsOf are the groups of comments at declarations.
func spotsOf(f *ast.File) map[*ast.CommentGroup]spot {
	spots := make(map[*ast.CommentGroup]spot)
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			spots[d.Doc] = spot{name: d.Name}
			if d.Recv != nil {
				spots[d.Doc] = spot{fault: fmt.Sprintf("above a method of a type: declare an interface with %s, and write it there", d.Name.Name)}
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				addSpec(spots, d, s)
			}
		}
	}
	delete(spots, nil)
	return spots
}

func addSpec(spots map[*ast.CommentGroup]spot, d *ast.GenDecl, s ast.Spec) {
	no := spot{fault: fmt.Sprintf("above a %s: only methods of interfaces, and functions, can be guarded", d.Tok)}
	switch s := s.(type) {
	case *ast.ValueSpec:
		spots[s.Doc], spots[s.Comment] = no, no
	case *ast.TypeSpec:
		if t, ok := s.Type.(*ast.InterfaceType); ok {
			no.fault = "above a type: write it above each of its methods that is to be guarded"
			addMethods(spots, t)
		}
		spots[s.Doc], spots[s.Comment] = no, no
	}
	spots[d.Doc] = no
}

func addMethods(spots map[*ast.CommentGroup]spot, t *ast.InterfaceType) {
	for _, m := range t.Methods.List {
		if len(m.Names) == 0 {
			spots[m.Doc] = spot{fault: "above an embedded interface: write it above the methods, where they are declared"}
			spots[m.Comment] = spots[m.Doc]
			continue
		}
		spots[m.Doc] = spot{name: m.Names[0]}
		spots[m.Comment] = spot{fault: fmt.Sprintf("behind %s: write it on a line of its own above", m.Names[0].Name)}
	}
}

var (
	spaced  = regexp.MustCompile(`^//\s+latchkey:guard(?:\s+(.*))?$`)
	glued   = regexp.MustCompile(`(?i)^//latchkey[-_. =/]?guard\b`)
	parted  = regexp.MustCompile(`(?i)^/[/*]\P{L}*latchkey\s*[:;：；]+\s*guard\b`) // perhaps by what can't be seen
	likely  = regexp.MustCompile(`^//\s*([A-Za-z]+):([A-Za-z-]+)`)
	nested  = regexp.MustCompile(`^//\s.*//`) // a directive that is shown, or is no more
	blocked = regexp.MustCompile(`^/\*+\s*latchkey:guard\b`)
)

// read returns what the directive in a comment says. wrong is why a comment that was meant to be one is none: nothing would
// be guarded.
func read(comment string) (text string, ok bool, wrong string) {
	if rest, is := strings.CutPrefix(comment, prefix); is && (rest == "" || strings.ContainsAny(rest[:1], " \t")) {
		text = strings.TrimSpace(rest)
		if before, _, commented := strings.Cut(" "+text, " //"); commented {
			return "", false, fmt.Sprintf("a comment behind a directive would be a part of it: write %s%s", prefix, before)
		}
		return text, true, ""
	}
	if m := spaced.FindStringSubmatch(comment); m != nil {
		return "", false, "a directive has no blank behind its slashes: write " + strings.TrimSpace(prefix+" "+m[1])
	}
	m := likely.FindStringSubmatch(comment)
	switch {
	case blocked.MatchString(comment):
		return "", false, "a directive is a comment with two slashes: write " + example
	case glued.MatchString(comment):
		return "", false, "this is no directive: write " + example
	case m == nil && parted.MatchString(comment) && !nested.MatchString(comment):
		return "", false, "this is no directive: write " + example
	case m == nil:
		return "", false, ""
	}
	tool, name := strings.ToLower(m[1]), strings.ToLower(m[2])
	if strings.HasPrefix(comment, "//latchkey:") && tool+name != "latchkeyguard" {
		return "", false, fmt.Sprintf("unknown directive latchkey:%s: write %s", m[2], example)
	}
	if suggest.Distance(tool, "latchkey") <= 2 && suggest.Distance(name, "guard") <= 2 {
		return "", false, fmt.Sprintf("%s:%s is nobody's directive: write %s", m[1], m[2], example)
	}
	return "", false, ""
}
