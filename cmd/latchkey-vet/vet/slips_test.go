package vet_test

import (
	"encoding/json"
	"go/ast"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
	r := &row{replaced: lit.Elts[0], want: unquoted(want.ExactString())}
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
	case "besideGood":
		return newly("") + "api := struct { Pay func(context.Context, Order) error " + s.of(args[0]) + "; Drop func(context.Context, Order) error `guard:\"drop:#{req.ID}\"` }{dropOrder, dropOrder}; return guard.Bind(g, &api) }"
	case "boundTo":
		return newly(s.args(args[1:])) + "return guard.Bind(g, " + s.of(args[0]) + ") }"
	case "stackOf":
		return "func() error { g, err := guard.Stack(" + strings.TrimPrefix(s.args(args), ", ") + ")" + behindNew +
			"_, err = guard.Func(g, payOrder); return err }"
	}
	return ""
}

// guardTables are those of package guard.
var guardTables = table{
	dir: "guard", files: []string{"mistakes_test.go", "mistakes_more_test.go"}, row: slip,
	unseen: map[string]*regexp.Regexp{
		"only a value shows it": regexp.MustCompile(` is nil$|: nil \*|guarded already|that is a copy|Bind of a nil \*|not <nil>$`),
		"it is about functions": regexp.MustCompile(`Fallback is a |KeyFunc takes`),
		"it comes up later":     regexp.MustCompile(`that New did not make|that NewRegistry did not make|Override|name is taken|can't be switched|with a nil guard|number 2 is a nil guard|^guard "order.pay": limit 3`),
		"it is in an adapter":   regexp.MustCompile(`for methods of all kinds`),
	},
}

func TestTheTablesOfGuard(t *testing.T) {
	actual := make(map[string]string) // where the table leaves the words of package keyexpr to that
	for _, line := range saidAtStart(t, "guard", guardSaid) {
		want, said, _ := strings.Cut(line, "\x00")
		actual[want] = said
	}
	if seen, unseen := guardTables.check(t, func(_ int, r *row) string { return atFirstCall.ReplaceAllString(actual[r.want], "") }); seen < 205 || unseen > 32 {
		t.Errorf("%d rows are seen and %d are not", seen, unseen)
	}
}

// middlewareTables has a table whose rows are structs.
var middlewareTables = table{dir: "middleware", files: []string{"mistakes_test.go"}, row: handlerSlip, unseen: map[string]*regexp.Regexp{
	"it is about functions": regexp.MustCompile(`KeyFunc takes|a Fallback works with`),
}}

func TestTheTablesOfMiddleware(t *testing.T) {
	said := saidAtStart(t, "middleware", middlewareSaid)
	if seen, unseen := middlewareTables.check(t, func(i int, _ *row) string { return said[i] }); seen < 48 || unseen > 3 {
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

// saidAtStart is what TestSaid prints, the text of a file that is put into the package in dir: what the program says to the rows of a table.
func saidAtStart(t *testing.T, dir, text string) (said []string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	test, overlay := filepath.Join(temp, "said_test.go"), filepath.Join(temp, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, dir, "said_test.go"): test}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{test: text, overlay: string(list)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-run", "^TestSaid$", "-overlay", overlay, "./"+dir)
	cmd.Dir = root
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

// guardSaid prints each row of the tables with what it gets.
const guardSaid = `package guard_test

import (
	"fmt"
	"slices"
	"testing"
)

func TestSaid(t *testing.T) {
	for _, tt := range slices.Concat(optionMistakes(), templateMistakes(), tagMistakes(), bindMistakes(), functionMistakes(),
		valueMistakes(), textMistakes(), placeMistakes()) {
		fmt.Printf("SAID %q\n", tt.want+"\x00"+fmt.Sprint(tt.declare()))
	}
}
`

// middlewareSaid prints what TestMistakesAreFoundAtStart compares with.
const middlewareSaid = `package middleware_test

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
var ginTables = table{dir: "middleware/ginguard", files: []string{"mistakes_test.go"}, row: ginSlip, part: true, unseen: map[string]*regexp.Regexp{
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
