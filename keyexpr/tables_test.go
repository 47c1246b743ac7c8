package keyexpr

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// The tables of testdata/*.txtar say what a text comes to:
//
//	table   = comment { "-- " sentence " --" { setting | case } }
//	case    = text { result }         a text that begins with a quote is one of Go; "? " begins a condition
//	result  = TAB "= " key            one line a key, and true or false for a condition
//	        | TAB "! " reason         the request is to blame
//	        | TAB "error " reason     somebody else is
//	        | spaces "^ " reason      it does not start, for what the caret is under
//	        | TAB "shape " … | TAB "fields " … | TAB "match " …     with @show
//	setting = "@" root " go " value   a value of goValues, whose type is known
//	        | "@" root " untyped " value, or "@" root " json " text, of which no type is known
//	        | "@" root " names " { name "=" text } | "@" root " any " { name "=" text }
//	        | "@onekey" | "@show" | "@functions"
//
// Settings in the comment are those of all tables of the file.

var update = flag.Bool("update", false, "write the tables of testdata anew")

// world is what a text is read and filled in with.
type world struct {
	roots  Roots
	facts  map[string]any
	opts   []Option
	onekey bool
	show   bool
}

func (w world) clone() world {
	w.roots, w.facts, w.opts = maps.Clone(w.roots), maps.Clone(w.facts), slices.Clone(w.opts)
	return w
}

func (w world) fact(root string) (any, error) {
	v := w.facts[root]
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v, nil
}

// set takes a line with a setting.
func (w *world) set(t *testing.T, line string) {
	t.Helper()
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "@"), " ")
	kind, value, _ := strings.Cut(rest, " ")
	switch {
	case name == "onekey":
		w.opts, w.onekey = append(w.opts, OneKey()), true
	case name == "show":
		w.show = true
	case name == "functions":
		w.opts = append(w.opts, userFunctions()...)
	case kind == "go":
		v, ok := goValues()[value]
		if !ok {
			t.Fatalf("%s: no value is called %s", line, value)
		}
		w.roots[name], w.facts[name] = Type(reflect.TypeOf(v)), v
	case kind == "untyped":
		w.roots[name], w.facts[name] = Root{}, goValues()[value]
	case kind == "json":
		v, err := Root{}.Decode([]byte(value))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		w.roots[name], w.facts[name] = Root{}, v
	case kind == "names" || kind == "any":
		values := map[string]string{}
		for pair := range strings.FieldsSeq(value) {
			k, v, _ := strings.Cut(pair, "=")
			values[k] = v
		}
		w.facts[name] = lookupOf(values)
		if w.roots[name] = AnyName(); kind == "names" {
			w.roots[name] = Names(slices.Collect(maps.Keys(values))...)
		}
	default:
		t.Fatalf("%s is no setting", line)
	}
}

// result is what a text comes to, in lines.
func (w world) result(t *testing.T, line string) string {
	t.Helper()
	text, condition := strings.CutPrefix(line, "? ")
	if strings.HasPrefix(text, `"`) && strings.HasSuffix(text, `"`) {
		var err error
		if text, err = strconv.Unquote(text); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if condition {
		c, err := ParseCondition(text, w.roots, w.opts...)
		if err != nil {
			return caret(t, line, text, err)
		}
		holds, err := c.Eval(context.Background(), w.fact)
		if err != nil {
			return fails(err)
		}
		return fmt.Sprintf("\t= %v\n", holds)
	}
	tmpl, err := Parse(text, w.roots, w.opts...)
	if err != nil {
		w.onlyOneKey(t, text, err)
		return caret(t, line, text, err)
	}
	if err := Check(text); err != nil {
		t.Errorf("Check(%s) = %v, and Parse finds nothing", line, err)
	}
	var out strings.Builder
	keys, err := w.keys(t, tmpl)
	if err != nil {
		out.WriteString(fails(err))
	}
	for _, key := range keys {
		shown := key
		if strings.ContainsFunc(key, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) {
			shown = strconv.Quote(key)
		}
		fmt.Fprintf(&out, "\t= %s\n", shown)
	}
	if w.show {
		fmt.Fprintf(&out, "\tshape %s\n\tfields %s\n", tmpl.Shape(), strings.Join(tmpl.Fields(), " "))
		for _, key := range keys {
			if values, ok := tmpl.Match(key); ok {
				fmt.Fprintf(&out, "\tmatch %q\n", values)
			}
		}
	}
	return out.String()
}

// keys expands a template in all ways that there are, and reads its keys back.
func (w world) keys(t *testing.T, tmpl *Template) ([]string, error) {
	t.Helper()
	keys, err := tmpl.Expand(context.Background(), w.fact)
	again, err2 := tmpl.AppendKeys(context.Background(), []string{"before"}, w.fact)
	if err == nil && (err2 != nil || !slices.Equal(again[1:], keys)) {
		t.Errorf("%s: AppendKeys = %q, %v, and Expand %q", tmpl, again, err2, keys)
	}
	if roots := tmpl.Roots(); len(roots) == 1 {
		_, _ = expandOf(t, tmpl, w.facts[roots[0]])
	}
	for _, key := range keys {
		_, ok := tmpl.Match(key)
		if readable := !tmpl.program.Raw && !strings.Contains(key, run.DigestMark); ok != readable {
			t.Errorf("%s: Match(%q) is %v", tmpl, key, ok)
		}
	}
	return keys, err
}

// onlyOneKey holds that OneKey lets nothing through but what it is there for.
func (w world) onlyOneKey(t *testing.T, text string, err error) {
	t.Helper()
	if w.onekey {
		return
	}
	_, err2 := Parse(text, w.roots, append(w.opts, OneKey())...)
	if meant := strings.Contains(err.Error(), "OneKey (one-key in a tag) says that it is meant"); meant != (err2 == nil) {
		t.Errorf("Parse(%q) = %v, and with OneKey %v", text, err, err2)
	}
}

func fails(err error) string {
	reason, blamed := strings.CutPrefix(err.Error(), ErrValue.Error()+": ")
	if blamed != errors.Is(err, ErrValue) {
		return "\tneither " + err.Error() + "\n"
	}
	reason, _, _ = strings.Cut(reason, " (at /") // the place of a panic
	if blamed {
		return "\t! " + reason + "\n"
	}
	return "\terror " + strings.TrimPrefix(reason, "keyexpr: ") + "\n"
}

// caret is the reason of an error below its place in the line.
func caret(t *testing.T, line, text string, err error) string {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok || fault.Text != text || fault.Offset > len(text) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%s: %v is no error with a place", line, err)
	}
	before := text[:fault.Offset]
	pad := 0
	if strings.HasPrefix(line, "? ") {
		pad = 2
	}
	if strings.HasPrefix(line[pad:], `"`) {
		before = strings.TrimSuffix(strconv.Quote(before), `"`)
	}
	return strings.Repeat(" ", pad+utf8.RuneCountInString(before)) + "^ " + fault.Reason + "\n"
}

// tables calls each with every text of a file, and returns the file as it would be written.
func tables(t *testing.T, file string, each func(w world, line string) string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	common := world{roots: Roots{}, facts: map[string]any{}}
	w, inTable := common, false
	var out strings.Builder
	for line := range strings.Lines(string(content)) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "-- "):
			w, inTable = common.clone(), true
		case strings.HasPrefix(line, "@") && inTable:
			w.set(t, text)
		case strings.HasPrefix(line, "@"):
			common.set(t, text)
		case !inTable || text == "":
		case strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "^ "):
			continue // a result
		default:
			out.WriteString(line + each(w, text))
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

func tableFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	return files
}

// TestTables holds each text of testdata to what it comes to.
func TestTables(t *testing.T) {
	for _, file := range tableFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			got := tables(t, file, func(w world, line string) string { return w.result(t, line) })
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, _ := os.ReadFile(file)
			compareLines(t, strings.Split(got, "\n"), strings.Split(string(want), "\n"))
		})
	}
}

// compareLines reports what differs, with the text that it is about.
func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	blocks := func(lines []string) (list []string) {
		for _, line := range lines {
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "^ ") {
				list[len(list)-1] += "\n" + line
			} else {
				list = append(list, line)
			}
		}
		return list
	}
	a, b := blocks(got), blocks(want)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("got\n%s\nwant\n%s", a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d blocks, want %d", len(a), len(b))
	}
}

// TestTablesAgainstSource holds that a tool which knows a program by its source alone says of each text what the program says
// when it starts.
func TestTablesAgainstSource(t *testing.T) {
	pkg, err := gotypetest.Load(false)
	if err != nil {
		t.Fatal(err)
	}
	sources := gotype.New()
	started, refused := 0, 0
	for _, file := range tableFiles(t) {
		tables(t, file, func(w world, line string) string {
			source := Roots{}
			for name, root := range w.roots {
				source[name] = sourceOf(pkg, sources, root)
			}
			want, got := verdict(line, w.roots, w.opts), verdict(line, source, w.opts)
			if got != want {
				t.Errorf("%s is checked against the source as\n%s\nand when the program starts as\n%s", line, got, want)
			}
			if strings.HasPrefix(want, "keyexpr: ") {
				refused++
			} else {
				started++
			}
			return ""
		})
	}
	if started < 300 || refused < 200 {
		t.Errorf("%d texts start and %d do not: too few to show anything", started, refused)
	}
}

// verdict is all that can be seen of a text at start.
func verdict(line string, roots Roots, opts []Option) string {
	if text, ok := strings.CutPrefix(line, "? "); ok {
		c, err := ParseCondition(text, roots, opts...)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%q %q", c.Fields(), c.Roots())
	}
	text := line
	if unquoted, err := strconv.Unquote(line); err == nil {
		text = unquoted
	}
	key, err := Parse(text, roots, opts...)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %q %q", key.Shape(), key.Fields(), key.Roots())
}

// sourceOf is a root with the type that the source of these tests has.
func sourceOf(pkg *gotypetest.Package, world *gotype.World, root Root) Root {
	t := root.of.Type
	switch {
	case t == nil:
	case t.Kind() == reflect.Pointer && t.Elem().PkgPath() != "":
		return Type(world.Of(types.NewPointer(pkg.Type(t.Elem().Name()))))
	case t.PkgPath() != "":
		return Type(world.Of(pkg.Type(t.Name())))
	}
	return root
}

// TestManyRequestsAtOnce expands each template in several goroutines at once, which the race detector looks at.
func TestManyRequestsAtOnce(t *testing.T) {
	for _, file := range tableFiles(t) {
		tables(t, file, func(w world, line string) string {
			tmpl, err := Parse(line, w.roots, w.opts...)
			if err != nil {
				return ""
			}
			want, fault := tmpl.Expand(context.Background(), w.fact)
			var others sync.WaitGroup
			for range 4 {
				others.Go(func() {
					got, err := tmpl.Expand(context.Background(), w.fact)
					if !slices.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(fault) {
						t.Errorf("%s comes to %q, %v among others, and to %q, %v alone", line, got, err, want, fault)
					}
				})
			}
			others.Wait()
			return ""
		})
	}
}
