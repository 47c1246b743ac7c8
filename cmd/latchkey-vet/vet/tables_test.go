package vet_test

import (
	"go/ast"
	"go/build"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The tables of mistakes in the tests of Latchkey have declarations, and what the program says to each when it starts. Here the
// helpers of those tests are written out in a copy of their source, as people write declarations, and the analyser must say of
// each row what the table says: the same lines, and nothing else.

// table is a test package with tables of mistakes.
type table struct {
	dir   string
	files []string
	// row writes a declaration out, if it is a row of a table.
	row func(s *source, lit *ast.CompositeLit) (written *row)
	// part says that rows have a part of what is said.
	part bool
	// unseen are the rows that the analyser does not see, with a reason.
	unseen map[string]*regexp.Regexp
}

// row is a declaration of a table.
type row struct {
	replaced   ast.Node // by text
	text       string
	want       string // all that is said at start
	start, end int    // of the text in the copy
}

// source is a file of a test package.
type source struct {
	pkg  *packages.Package
	file *ast.File
	text []byte
}

// of is the text of a node, in which the helpers that make guards are written out.
func (s *source) of(n ast.Node) string {
	at := func(pos token.Pos) int { return s.pkg.Fset.Position(pos).Offset }
	var parts []string
	last := at(n.Pos())
	ast.Inspect(n, func(inner ast.Node) bool {
		if call, ok := inner.(*ast.CallExpr); ok {
			if text := s.made(call); text != "" {
				parts = append(parts, string(s.text[last:at(call.Pos())]), text)
				last = at(call.End())
				return false
			}
		}
		return true
	})
	return strings.Join(append(parts, string(s.text[last:at(n.End())])), "")
}

// made is a call of made or madeAs, written out.
func (s *source) made(call *ast.CallExpr) string {
	switch name, args := calls(call), s.args(call.Args); name {
	case "claimsFact":
		return "middleware.WithFacts(" + s.of(call.Args[0]) + `, func(*http.Request) (struct{ Tenant string }, error) { return struct{ Tenant string }{"acme"}, nil })`
	case "made":
		return "guard.Must(guard.New(memlock.New()" + args + "))"
	case "madeAs":
		return "guard.Must(guard.New(memlock.New()" + s.args(call.Args[1:]) + ", guard.Name(" + s.of(call.Args[0]) + "), guard.Key(\"order:#{req.ID}\")))"
	}
	return ""
}

// args is the text of arguments, each behind a comma.
func (s *source) args(list []ast.Expr) string {
	var b strings.Builder
	for _, arg := range list {
		b.WriteString(", " + s.of(arg))
	}
	return b.String()
}

func calls(e ast.Expr) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	if id, ok := fun.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func unquoted(constant string) string {
	text, err := strconv.Unquote(constant)
	if err != nil {
		panic(constant)
	}
	return text
}

// check holds the analyser to the rows of a table. said is what the program says to the i-th row, if the table has only a part of it.
func (tt *table) check(t *testing.T, said func(i int, r *row) string) (seen, unseen int) {
	t.Helper()
	dir := filepath.Join("../../..", tt.dir)
	folder, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	path := folder.Name + "_test"
	files := read(t, dir, folder.XTestGoFiles)
	original := checked(t, path, files)
	rows := make(map[string][]*row)
	for _, file := range original.Syntax {
		name := original.Fset.Position(file.Pos()).Filename
		if slices.Contains(tt.files, filepath.Base(name)) {
			s := &source{original, file, files[name]}
			rows[name] = s.rows(tt)
			files[name] = s.copy(rows[name])
		}
	}
	copied := checked(t, path, files)
	found := diagnostics(t, copied, "latchkeydecl")
	everywhere := make(map[string]bool)
	for _, d := range found {
		everywhere[d.Message] = true
	}
	i := 0
	for _, path := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range rows[path] {
			if said != nil {
				r.want = said(i, r)
			}
			i++
			var got []string
			for _, d := range found {
				if p := copied.Fset.Position(d.Pos); p.Filename == path && p.Offset >= r.start && p.Offset < r.end {
					got = append(got, d.Message)
				}
			}
			if r.agrees(got, everywhere) || tt.part && strings.Contains(strings.Join(got, "\n"), r.want) {
				seen++
			} else if why := tt.why(r.want); why != "" && (len(got) == 0 || strings.HasSuffix(r.want, "fmt.Stringer is nil")) { // or refused for its type
				unseen++
			} else {
				t.Errorf("%s\nthe analyser says %q, and the program\n%s", r.text, got, r.want)
			}
		}
	}
	return seen, unseen
}

// agrees reports whether the analyser says what the program says, line by line. What is wrong with a part that stands
// elsewhere is said there.
func (r *row) agrees(got []string, everywhere map[string]bool) bool {
	want := strings.Split(r.want, "\n")
	for _, message := range got {
		if !slices.Contains(want, message) {
			return false
		}
	}
	return !slices.ContainsFunc(want, func(line string) bool { return !slices.Contains(got, line) && !everywhere[line] })
}

func (tt *table) why(want string) string {
	for why, rows := range tt.unseen {
		if rows.MatchString(want) {
			return why
		}
	}
	return ""
}

// rows are the declarations of the tables in a file.
func (s *source) rows(tt *table) (rows []*row) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			if r := tt.row(s, lit); r != nil {
				rows = append(rows, r)
				return false
			}
		}
		return true
	})
	return rows
}

// copy is the file with all rows written out.
func (s *source) copy(rows []*row) []byte {
	var b strings.Builder
	last := 0
	for _, r := range rows {
		at := func(pos token.Pos) int { return s.pkg.Fset.Position(pos).Offset }
		b.Write(s.text[last:at(r.replaced.Pos())])
		r.start = b.Len()
		b.WriteString(r.text)
		r.end = b.Len()
		last = at(r.replaced.End())
	}
	b.Write(s.text[last:])
	return []byte(b.String())
}
