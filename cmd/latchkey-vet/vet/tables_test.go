package vet_test

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// The tables of mistakes in the tests of Latchkey have declarations, and what the program says to each when it starts. Here the
// helpers of those tests are written out in a copy of their source, as people write declarations, and the analyser must say of
// each row what the table says: the same lines, and nothing else.

// table is a test package with tables of mistakes.
type table struct {
	dir, name string
	files     []string
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

const behindNew = "; if err != nil { return err }; "

// slip writes out a row of the tables of package guard: {declaration, what it gets}.
func slip(s *source, lit *ast.CompositeLit) *row {
	if len(lit.Elts) != 2 {
		return nil
	}
	want := s.pkg.TypesInfo.Types[lit.Elts[1]].Value
	call, isCall := lit.Elts[0].(*ast.CallExpr)
	fn, isFunc := lit.Elts[0].(*ast.FuncLit)
	if want == nil || !isCall && !isFunc || s.pkg.TypesInfo.TypeOf(lit.Elts[0]).String() != "func() error" {
		return nil
	}
	r := &row{replaced: lit.Elts[0], want: atFirstCall.ReplaceAllString(unquoted(want.ExactString()), "")}
	if isFunc {
		r.text = s.of(fn)
		return r
	}
	if r.text = s.slip(call); r.text == "" {
		r.text = s.of(call)
	}
	return r
}

// atFirstCall is how Do, which is not asked at start, begins its error.
var atFirstCall = regexp.MustCompile(`^guard "[^"]*": fault of the program or of the lock service: `)

func (s *source) slip(call *ast.CallExpr) string {
	args := call.Args
	newly := func(opts string) string {
		return "func() error { g, err := guard.New(memlock.New()" + opts + ")" + behindNew
	}
	settle := `, guard.Name("order.settle")`
	switch calls(call) {
	case "declared":
		return newly(settle+s.args(args)) + "_, err = guard.Func(g, payOrder); return err }"
	case "keyed":
		return newly(settle+`, guard.Key("order:#{req.ID}")`+s.args(args)) + "_, err = guard.Func(g, payOrder); return err }"
	case "newly":
		return "func() error { _, err := guard.New(" + s.of(args[0]) + s.args(args[1:]) + "); return err }"
	case "requested":
		req := s.of(call.Fun.(*ast.IndexExpr).Index)
		return newly(s.args(args)) + "_, err = guard.Func(g, func(context.Context, " + req + ") (int, error) { return 0, nil }); return err }"
	case "specified":
		return "func() error { return new(guard.Spec).UnmarshalText([]byte(" + s.of(args[0]) + ")) }"
	case "overriding":
		return "func() error { _, err := guard.ParseSpecs(" + s.of(args[0]) + "); return err }"
	case "bound":
		t := types.TypeString(s.pkg.TypesInfo.TypeOf(args[1]), func(p *types.Package) string {
			if p == s.pkg.Types {
				return ""
			}
			return p.Name()
		})
		return newly(s.args(args[2:])) + "api := struct { Pay " + t + " " + s.of(args[0]) + " }{" + s.of(args[1]) + "}; return guard.Bind(g, &api) }"
	case "boundTo":
		return newly(s.args(args[1:])) + "return guard.Bind(g, " + s.of(args[0]) + ") }"
	case "stackOf":
		return "func() error { g, err := guard.Stack(" + strings.TrimPrefix(s.args(args), ", ") + ")" + behindNew +
			"_, err = guard.Func(g, payOrder); return err }"
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

// guardTables are those of package guard.
var guardTables = table{
	dir: "guard", name: "guard_test", files: []string{"mistakes_test.go", "mistakes_more_test.go"}, row: slip,
	unseen: map[string]*regexp.Regexp{
		"only a value shows it": regexp.MustCompile(` is nil$|: nil \*|guarded already|that is a copy|Bind of a nil \*|not <nil>$`),
		"it is about functions": regexp.MustCompile(`Fallback is a |KeyFunc takes`),
		"it comes up later":     regexp.MustCompile(`that New did not make|that NewRegistry did not make|Override|name is taken|can't be switched|with a nil guard|number 2 is a nil guard|^guard "order.pay": limit 3`),
		"it is in an adapter":   regexp.MustCompile(`for methods of all kinds`),
	},
}

func TestTheTablesOfGuard(t *testing.T) {
	if seen, unseen := guardTables.check(t, nil); seen < 205 || unseen > 32 {
		t.Errorf("%d rows are seen and %d are not", seen, unseen)
	}
}

// middlewareTables has a table whose rows are structs.
var middlewareTables = table{dir: "middleware", name: "middleware_test", files: []string{"mistakes_test.go"}, row: handlerSlip, unseen: map[string]*regexp.Regexp{
	"it is about functions": regexp.MustCompile(`KeyFunc takes|a Fallback works with`),
}}

func TestTheTablesOfMiddleware(t *testing.T) {
	if seen, unseen := middlewareTables.check(t, saidAtStart(t)); seen < 48 || unseen > 3 {
		t.Errorf("%d rows are seen and %d are not", seen, unseen)
	}
}

// handlerSlip writes out a row of the table of package middleware.
func handlerSlip(s *source, lit *ast.CompositeLit) *row {
	fields := make(map[string]ast.Expr)
	for _, elt := range lit.Elts {
		if pair, ok := elt.(*ast.KeyValueExpr); ok {
			if id, ok := pair.Key.(*ast.Ident); ok {
				fields[id.Name] = pair.Value
			}
		}
	}
	if fields["name"] == nil || fields["want"] == nil {
		return nil
	}
	opts := func(name string) string {
		if call, ok := fields[name].(*ast.CallExpr); ok {
			return s.args(call.Args)
		}
		return ""
	}
	key := `, guard.Key("order:#{path.id}")`
	if e := fields["key"]; e != nil {
		if key = ", guard.Key(" + s.of(e) + ")"; s.of(e) == `"-"` {
			key = ""
		}
	}
	return &row{replaced: fields["want"], text: `func() string { g, err := guard.New(memlock.New(), guard.Name("order.settle")` + key + opts("guard") + `)
		if err == nil { _, err = middleware.New(g` + opts("opts") + `) }
		return ` + s.of(fields["want"]) + ` }()`}
}

// saidAtStart is what the program says to each row of that table, which has only a part of it.
func saidAtStart(t *testing.T) (said []string) {
	t.Helper()
	dir := t.TempDir()
	test, overlay := filepath.Join(dir, "said_test.go"), filepath.Join(dir, "overlay.json")
	files := map[string]map[string]string{"Replace": {filepath.Join(root(t), "middleware", "said_test.go"): test}}
	list, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{test: saidTest, overlay: string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^TestSaid$", "-overlay", overlay, "./middleware")
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if text, ok := strings.CutPrefix(line, "SAID "); ok {
			said = append(said, unquoted(text))
		}
	}
	return said
}

// saidTest prints what TestMistakesAreFoundAtStart compares with.
const saidTest = `package middleware_test

import (
	"fmt"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

func TestSaid(t *testing.T) {
	for _, tt := range mistakes {
		opts := gs(guard.Name("order.settle"))
		switch tt.key {
		case "-":
		case "":
			opts = append(opts, guard.Key("order:#{path.id}"))
		default:
			opts = append(opts, guard.Key(tt.key))
		}
		g, err := guard.New(memlock.New(), append(opts, tt.guard...)...)
		if err == nil {
			_, err = middleware.New(g, tt.opts...)
		}
		fmt.Printf("SAID %q\n", fmt.Sprint(err))
	}
}
`

// ginTables has rows with a part of what is said.
var ginTables = table{dir: "middleware/ginguard", name: "ginguard_test", files: []string{"mistakes_test.go"}, row: ginSlip, part: true, unseen: map[string]*regexp.Regexp{
	"it is about functions": regexp.MustCompile(`KeyFunc`),
}}

func TestTheTablesOfGin(t *testing.T) {
	if seen, unseen := ginTables.check(t, nil); seen < 16 || unseen > 1 {
		t.Errorf("%d rows are seen and %d are not", seen, unseen)
	}
}

// ginSlip writes out a row of the table of package ginguard.
func ginSlip(s *source, lit *ast.CompositeLit) *row {
	if len(lit.Elts) != 4 || s.pkg.TypesInfo.TypeOf(lit.Elts[1]).String() != "github.com/latchkey-go/latchkey/guard.Option" {
		return nil
	}
	opts, key := "", s.of(lit.Elts[1])
	if list, ok := lit.Elts[2].(*ast.CompositeLit); ok {
		opts = s.args(list.Elts)
	}
	if id, ok := lit.Elts[1].(*ast.Ident); ok && id.Name == "key" {
		key = `guard.Key("order:#{path.id}")`
	}
	want := s.pkg.TypesInfo.Types[lit.Elts[3]].Value
	return &row{replaced: lit.Elts[3], want: unquoted(want.ExactString()), text: `func() string {
		_, _ = ginguard.New(guard.Must(guard.New(memlock.New(), guard.Name("order.settle"), ` + key + `))` + opts + `)
		return ` + s.of(lit.Elts[3]) + ` }()`}
}

// check holds the analyser to the rows of a table. said is what the program says to each row, in their order, if the table has
// only a part of it.
func (tt *table) check(t *testing.T, said []string) (seen, unseen int) {
	t.Helper()
	original := load(t, tt.dir, tt.name, nil)
	overlay := make(map[string][]byte)
	rows := make(map[string][]*row)
	for _, file := range original.Syntax {
		path := original.Fset.Position(file.Pos()).Filename
		if !slices.Contains(tt.files, filepath.Base(path)) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := &source{original, file, text}
		rows[path] = s.rows(tt)
		overlay[path] = s.copy(rows[path])
	}
	copied := load(t, tt.dir, tt.name, overlay)
	found := diagnostics(t, "latchkeydecl", copied)
	everywhere := make(map[string]bool)
	for _, d := range found {
		everywhere[d.Message] = true
	}
	i := 0
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for path := range rows {
			if !yield(path) {
				return
			}
		}
	}) {
		for _, r := range rows[path] {
			if said != nil {
				r.want = said[i]
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

// root is the folder of the root module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// load loads the package called name in a folder of the root module, tests and all.
func load(t *testing.T, dir, name string, overlay map[string][]byte) *packages.Package {
	t.Helper()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadSyntax | packages.NeedModule, Dir: root(t), Tests: true, Overlay: overlay, //nolint:staticcheck // what it stands for is longer
	}, "./"+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		if p.Name == name && strings.Contains(p.ID, "[") {
			for _, e := range p.Errors {
				t.Fatal(e)
			}
			return p
		}
	}
	t.Fatalf("no package %s in %s", name, dir)
	return nil
}

// diagnostics are what an analyser finds in a package, in the order of the source.
func diagnostics(t *testing.T, name string, pkg *packages.Package) []analysis.Diagnostic {
	t.Helper()
	graph, err := checker.Analyze([]*analysis.Analyzer{analyser(name)}, []*packages.Package{pkg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	found := graph.Roots[0].Diagnostics
	if graph.Roots[0].Err != nil {
		t.Fatal(graph.Roots[0].Err)
	}
	slices.SortFunc(found, func(a, b analysis.Diagnostic) int { return cmp.Compare(a.Pos, b.Pos) })
	return found
}
