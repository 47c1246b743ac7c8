package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	old "github.com/latchkey-go/latchkey/keyexpr"
)

// texts returns all texts of the repository that may be templates or conditions.
func allTexts(t *testing.T) []string {
	var texts []string
	hole := regexp.MustCompile("`([^`\n]+)`|\"([^\"\n]+)\"|key = ([^\n]+)|^\\s{4}(\\S.*?)(?:\\s{2,}.*)?$")
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			if d != nil && (d.Name() == "spel" || d.Name() == ".git" || d.Name() == "next") {
				return fs.SkipDir
			}
			return err
		case strings.HasSuffix(path, ".go"):
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					s, _ := strconv.Unquote(lit.Value)
					texts = append(texts, s)
					for _, m := range regexp.MustCompile(`(?:guard|latchkey|when)[=:]"?([^;"]+)`).FindAllStringSubmatch(s, -1) {
						texts = append(texts, m[1])
					}
				}
				return true
			})
		case strings.HasSuffix(path, ".md") || strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".proto") || strings.HasSuffix(path, ".json"):
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.SplitSeq(string(b), "\n") {
				for _, m := range hole.FindAllStringSubmatch(line, -1) {
					for _, s := range m[1:] {
						if s != "" {
							texts = append(texts, s)
						}
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

type answer struct {
	start string
	keys  string
	fault string
}

func say(keys any, err error) (string, string) {
	if err != nil {
		return "", err.Error()
	}
	return fmt.Sprintf("%q", keys), ""
}

func reason(err error) string {
	var o *old.Error
	if errors.As(err, &o) {
		return o.Reason
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

func TestShadow(t *testing.T) {
	if os.Getenv("SHADOW") == "" {
		t.Skip()
	}
	oldRoots := old.Roots{"req": old.TypeFor[*payRequest](), "path": old.Names("id", "org"), "header": old.AnyName(), "body": old.Root{}, "method": old.TypeFor[string]()}
	anyRoots, oldAny := Roots{}, old.Roots{}
	for _, n := range []string{"req", "body", "claims", "item", "order"} {
		anyRoots[n], oldAny[n] = Root{}, old.Root{}
	}
	for _, n := range []string{"path", "query", "header", "md"} {
		anyRoots[n], oldAny[n] = AnyName(), old.AnyName()
	}
	for _, n := range []string{"method", "host"} {
		anyRoots[n], oldAny[n] = TypeFor[string](), old.TypeFor[string]()
	}
	full := &payRequest{OrderID: "o:42", Tenant: "Ac{me", Coupon: new("c%1"), Seq: 7, Shard: 1<<64 - 1, Urgent: true, Level: 3, Ref: uuid{1, 2}, Digest: []byte{1}, Amount: 2.5,
		Lines: []line{{"a:1", 1}, {"B", 2}}, Tags: []string{"x", "y"}, Tenants: []tenant{"t"}, Labels: map[string]string{"a": "b", "id": "i"}, Counts: map[string]int{"n": 1},
		Customer: &customer{Name: "Ann", Parent: &customer{Name: "Pa"}}, Any: map[string]any{"id": "z", "n": 3}}
	mine := []Facts{testFacts(full), testFacts(nil)}
	count := map[string]int{}
	seen := map[string][]string{}
	note := func(kind, text, detail string) {
		count[kind]++
		seen[kind] = append(seen[kind], fmt.Sprintf("%s\n      %s", text, detail))
	}
	for _, text := range allTexts(t) {
		for i := range 2 {
			or, nr := oldRoots, testRoots()
			if i == 1 {
				or, nr = oldAny, anyRoots
			}
			ot, oerr := old.Parse(text, or, old.OneKey())
			nt, nerr := Parse(text, nr, OneKey())
			if oerr != nil && nerr != nil {
				if strings.Contains(text, "#{") {
					count["refused by both"]++
				}
				continue
			}
			if !strings.Contains(text, "#{") {
				if (oerr == nil) != (nerr == nil) {
					note("literal differs", text, fmt.Sprint(oerr, nerr))
				}
				count["literal"]++
				continue
			}
			kind := []string{"typed", "untyped"}[i]
			if oerr == nil && nerr != nil {
				note(kind+": refused now", text, reason(nerr))
				continue
			}
			if oerr != nil {
				note(kind+": allowed now", text, reason(oerr))
				continue
			}
			facts := mine
			if i == 1 {
				facts = []Facts{untyped(nt.Fields(), "v"), untyped(ot.Fields(), "V:%1")}
			}
			same := true
			for _, f := range facts {
				ok, of := say(ot.Expand(context.Background(), old.Facts(wrapOld(f))))
				nk, nf := say(nt.Expand(context.Background(), f))
				if ok != nk {
					note(kind+": other key", text, fmt.Sprintf("%s %s -> %s %s", ok, of, nk, nf))
					same = false
					break
				}
			}
			if same {
				count[kind+": same"]++
				if ot.Shape() != nt.Shape() || !reflect.DeepEqual(ot.Fields(), nt.Fields()) || !reflect.DeepEqual(ot.Roots(), nt.Roots()) || (ot.Pattern() == nil) != (nt.Pattern() == nil) {
					note("inspect", text, fmt.Sprint(ot.Shape(), nt.Shape(), ot.Fields(), nt.Fields(), ot.Pattern() == nil, nt.Pattern() == nil))
				}
				for _, f := range facts {
					keys, _ := nt.Expand(context.Background(), f)
					for _, k := range keys {
						a, aok := ot.Match(k)
						b, bok := nt.Match(k)
						if aok != bok || !slices.Equal(a, b) {
							note("match", text, fmt.Sprint(k, a, aok, b, bok))
						}
					}
				}
			}
		}
		// conditions
		oc, oerr := old.ParseCondition(text, oldRoots)
		nc, nerr := ParseCondition(text, testRoots())
		switch {
		case oerr != nil && nerr != nil:
		case oerr == nil && nerr != nil:
			note("condition: refused now", text, reason(nerr))
		case oerr != nil:
			note("condition: allowed now", text, reason(oerr))
		default:
			for _, f := range mine {
				a, ae := oc.Eval(context.Background(), old.Facts(wrapOld(f)))
				b, be := nc.Eval(context.Background(), f)
				if a != b || (ae == nil) != (be == nil) {
					note("condition: other answer", text, fmt.Sprint(a, ae, b, be))
				} else {
					count["condition: same"]++
				}
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(count)) {
		fmt.Printf("%5d %s\n", count[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		fmt.Println("=====", k)
		for _, s := range seen[k] {
			fmt.Println("  ", s)
		}
	}
}

func wrapOld(f Facts) func(string) (any, error) {
	return func(root string) (any, error) {
		v, err := f(root)
		if l, ok := v.(Lookup); ok {
			return old.Lookup(l), err
		}
		return v, err
	}
}

// untyped gives each field that is read a text.
func untyped(fields []string, value string) Facts {
	return func(root string) (any, error) {
		switch root {
		case "path", "query", "header", "md":
			return Lookup(func(name string) (string, bool, error) { return value + name, true, nil }), nil
		case "method", "host":
			return value, nil
		}
		top := map[string]any{}
		for _, f := range fields {
			at := top
			names := strings.Split(f, ".")
			if names[0] != root {
				continue
			}
			for i, n := range names[1:] {
				if i == len(names)-2 {
					if _, ok := at[n]; !ok {
						at[n] = value + n
					}
				} else {
					next, ok := at[n].(map[string]any)
					if !ok {
						next = map[string]any{}
						at[n] = next
					}
					at = next
				}
			}
		}
		return top, nil
	}
}
