package keyexpr

import (
	"context"
	"fmt"
	"go/types"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/internal/gotype"
	"github.com/latchkey-go/latchkey/internal/gotype/gotypetest"
	"github.com/latchkey-go/latchkey/keyexpr/internal/keytest"
)

// twins are roots twice: of types that were compiled into the test, and of the same types in its source.
type twins struct{ compiled, source Roots }

// twinsOf are the roots of a request of type t, and those of a request for each field of t.
func twinsOf(t *testing.T, pkg *gotypetest.Package, world *gotype.World, compiled reflect.Type) (request, fields twins) {
	t.Helper()
	var source reflect.Type
	if compiled.Kind() == reflect.Pointer {
		source = world.Of(types.NewPointer(pkg.Type(compiled.Elem().Name())))
	} else {
		source = world.Of(pkg.Type(compiled.Name()))
	}
	requestOf := func(t reflect.Type) Roots {
		r := testRoots()
		r["req"], r["order"] = Type(t), Type(t)
		return r
	}
	fieldsOf := func(t reflect.Type) Roots {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		r := Roots{}
		for f := range t.Fields() {
			r[f.Name] = Type(f.Type)
		}
		return r
	}
	return twins{requestOf(compiled), requestOf(source)}, twins{fieldsOf(compiled), fieldsOf(source)}
}

// verdict is all that can be seen of a text at start, as a template and as a condition. A text without holes is one of each.
func verdict(text string, roots Roots) string {
	template := text
	if !strings.Contains(text, "#{") {
		template = "k:#{" + text + "}"
	}
	key, err := Parse(template, roots)
	if err == nil {
		err = fmt.Errorf("%s %q %q", key.Shape(), key.Fields(), key.Roots())
	}
	c, unless := ParseCondition(text, roots)
	if unless == nil {
		unless = fmt.Errorf("%q %q", c.Fields(), c.Roots())
	}
	return fmt.Sprintf("%v\n%v", err, unless)
}

// TestTypesOfSourceAreCheckedAlike holds that a tool which knows a program by its source alone says of each text in the tests of this
// package what the program says when it starts.
func TestTypesOfSourceAreCheckedAlike(t *testing.T) {
	pkg, err := gotypetest.Load(false)
	if err != nil {
		t.Fatal(err)
	}
	world := gotype.New()
	texts := slices.Concat(keytest.Literals(t), textsOfTypes())
	started, refused := 0, 0
	for _, compiled := range []reflect.Type{
		reflect.TypeFor[*payRequest](), reflect.TypeFor[payRequest](), reflect.TypeFor[shelf](), reflect.TypeFor[*parcel](),
		reflect.TypeFor[holeFacts](), reflect.TypeFor[*aliased](), reflect.TypeFor[*opaque](), reflect.TypeFor[library](),
		reflect.TypeFor[*book](), reflect.TypeFor[pairRequest](), reflect.TypeFor[hashTagged](), reflect.TypeFor[hashEmbedded](),
		reflect.TypeFor[greedy](), reflect.TypeFor[stockRequest](), reflect.TypeFor[*fakeMessage](), reflect.TypeFor[*tiredRequest](),
		reflect.TypeFor[functionRequest](), reflect.TypeFor[functionFacts](),
	} {
		request, fields := twinsOf(t, pkg, world, compiled)
		for i, text := range texts {
			if slower > 1 && i%8 != 0 { // there is no concurrency here for the race detector
				continue
			}
			roots := fields
			if strings.Contains(text, "req.") || strings.Contains(text, "order.") {
				roots = request
			}
			if len(text) > 300 || !names(text, fields.compiled) { // which is about size and not about types
				continue
			}
			want, got := verdict(text, roots.compiled), verdict(text, roots.source)
			if got != want {
				t.Errorf("%v: %q is checked against the source as\n%s\nand when the program starts as\n%s", compiled, text, got, want)
			}
			if strings.HasPrefix(want, "keyexpr: ") {
				refused++
			} else {
				started++
			}
		}
	}
	if slower == 1 && (started < 1000 || refused < 1000) {
		t.Errorf("%d templates start and %d do not: too few to show anything", started, refused)
	}
}

// names reports whether a text may name one of roots, or a field of that name.
func names(text string, roots Roots) bool {
	for name := range roots {
		if len(name) > 1 && strings.Contains(text, name) {
			return true
		}
	}
	return false
}

// textsOfTypes are about bodies of loops that are of types which only the source has, and some that nobody thought of.
func textsOfTypes() (texts []string) {
	for _, loop := range []string{
		"map(L, B)", "filter(L, B)", "any(L, B)", "all(L, B)", "none(L, B)", "one(L, B)", "count(L, B)", "find(L, B)", "findIndex(L, B)",
		"findLast(L, B)", "sum(L, B)", "sortBy(L, B)", "sortBy(L, B, \"desc\")", "reduce(L, B)", "map(map(L, B), #)", "map(L, B)[0]",
		"sum(L, B) > 3", "join(map(L, B), \",\")", "map(L, map(L, B))[0][0]", "first(map(L, B))", "map(L, B)[0].SKU", "any(map(L, B), # == \"a\")",
	} {
		for _, list := range []string{"req.Lines", "req.Tenants", "req.Tags", "req.OrderID", "req.Any", "req.Labels"} {
			for _, body := range []string{"#", ".SKU", ".Qty", "req.Level", "req.Tenant", "req.Ref", "# == req.Tenant", "nil", "req.Customer", "req.Customr", "req.Kind()", "lower(req.Kindd())", "string(req.SKUU) == \"\" ? req.Tenant : req.Tenant"} {
				texts = append(texts, strings.NewReplacer("L", list, "B", body).Replace(loop))
			}
		}
	}
	for seed := range uint64(300) {
		texts = append(texts, (&templates{Rand: rand.New(rand.NewPCG(seed, 1))}).template())
	}
	return texts
}

// A function of the user's is known by its type.
func TestFunctionsOfSourceAreCheckedAlike(t *testing.T) {
	pkg, err := gotypetest.Load(false)
	if err != nil {
		t.Fatal(err)
	}
	world := gotype.New()
	request, _ := twinsOf(t, pkg, world, reflect.TypeFor[*payRequest]())
	here := pkg.Types.Scope().Lookup("textsOfTypes").Pos() // in a file that imports what the types name
	for _, tt := range []struct {
		fn     any
		source string
	}{
		{func(tenant) level { return 0 }, "func(tenant) level"},
		{func(...line) (*customer, error) { return nil, nil }, "func(...line) (*customer, error)"},
		{func(context.Context, []tenant) uuid { return uuid{} }, "func(context.Context, []tenant) uuid"},
		{func(payRequest) {}, "func(payRequest)"},
		{func() (level, *customer, error) { return 0, nil, nil }, "func() (level, *customer, error)"},
	} {
		expr, err := types.Eval(pkg.Fset, pkg.Types, here, tt.source)
		if err != nil {
			t.Fatal(err)
		}
		source := world.Of(expr.Type)
		for _, arg := range []string{"", "req.Tenant", "req.Tenants", "req.Tags", "req.Lines[0]", "req.Lines", "req.Seq", "*", "req.OrderID", "req", "req.Level, 1"} {
			text := "k:#{f(" + arg + ")}"
			_, want := Parse(text, request.compiled, Func("f", tt.fn))
			_, got := Parse(text, request.source, Func("f", source))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %q is checked against the source as\n%v\nand when the program starts as\n%v", tt.source, text, got, want)
			}
		}
	}
}
