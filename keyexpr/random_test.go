package keyexpr

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// TestRandomConditions compares with the engine what nobody thought of.
func TestRandomConditions(t *testing.T) {
	env := newLibrary()
	r := rand.New(rand.NewPCG(7, 7))
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	var number, text, test func(depth int) string
	number = func(depth int) string {
		if depth == 0 {
			return pick("N", "M", "Small", "3", "0", "Nums[0]", "len(Words)", "Books[1].Pages", "Prices.Go", "Big")
		}
		return pick("("+number(depth-1)+pick(" + ", " - ", " * ")+number(depth-1)+")", "("+test(depth-1)+" ? "+number(depth-1)+" : "+number(depth-1)+")", "len("+text(depth-1)+")",
			"count(Nums, # > "+number(0)+")", "max("+number(depth-1)+", "+number(depth-1)+")", "indexOf("+text(depth-1)+", 'a')", "-"+number(0))
	}
	text = func(depth int) string {
		if depth == 0 {
			return pick("Name", "Code", "Empty", "'a'", "''", "Words[0]", "Books[0].Title", "Owner.Title", "(Nobody?.Title ?? 'none')")
		}
		return pick("lower("+text(depth-1)+")", "("+text(depth-1)+" + "+text(depth-1)+")", "trim("+text(depth-1)+")", "replace("+text(depth-1)+", 'a', 'bb')", "join(map(Books, .Title), "+text(0)+")",
			"("+test(depth-1)+" ? "+text(depth-1)+" : "+text(depth-1)+")", "string("+number(depth-1)+")", "(find(Words, # == "+text(0)+") ?? 'none')")
	}
	test = func(depth int) string {
		if depth == 0 {
			return pick("Yes", "No", "true", "Nobody == nil", "Any == 'any'")
		}
		return pick("("+number(depth-1)+pick(" == ", " != ", " < ", " <= ", " > ", " >= ")+number(depth-1)+")", "("+text(depth-1)+pick(" == ", " != ", " < ", " contains ", " startsWith ", " endsWith ")+text(depth-1)+")",
			"("+test(depth-1)+pick(" and ", " or ", " && ", " || ")+test(depth-1)+")",
			"not ("+test(depth-1)+")",
			"("+text(depth-1)+" in Words)",
			"("+number(depth-1)+" in Nums)",
			"any(Nums, # == "+number(0)+")",
			"all(Books, .Pages > "+number(0)+")", "("+text(depth-1)+" matches '^[a-z]+$')")
	}
	constants := 0
	for range 3000 {
		text := test(1 + r.IntN(3))
		want, err := expr.Eval(text, env)
		got, ours := evaluate(text, env)
		switch {
		case err != nil || ours != nil:
			if (err == nil) != (ours == nil) && !strings.Contains(fmt.Sprint(ours), "more than an int") {
				t.Errorf("%q: %v; the engine says %v", text, ours, err)
			}
		case got != want:
			t.Errorf("%q = %v, the engine says %v", text, got, want)
		}
		constants += checkConstant(t, r, text)
	}
	if constants < 100 {
		t.Errorf("%d conditions are known to be constant, which is too few to say anything", constants)
	}
}

// checkConstant holds a condition that is said to be the same for all requests against some, and returns 1 if it is one.
func checkConstant(t *testing.T, r *rand.Rand, text string) int {
	t.Helper()
	c, err := ParseCondition(text, libraryRoots())
	if err != nil {
		return 0
	}
	holds, ok := c.Constant()
	if !ok {
		return 0
	}
	for range 20 {
		l := randomLibrary(r)
		if got, err := c.Eval(t.Context(), l.fact); err == nil && got != holds {
			t.Errorf("%q is %v for %+v, and is said to be %v for all", text, got, *l, holds)
		}
	}
	return 1
}

// randomLibrary has few values, so that those that a condition compares are often the same.
func randomLibrary(r *rand.Rand) *library {
	l := newLibrary()
	word := func() string { return []string{"", "a", "b", "A", "bb", "none", "own", "3", "ab,cd"}[r.IntN(9)] }
	number := func() int { return r.IntN(7) - 2 }
	l.Name, l.Code, l.Empty, l.Owner.Title, l.Any = word(), word(), word(), word(), []any{nil, "any", word()}[r.IntN(3)]
	l.N, l.M, l.Small, l.Big, l.Yes, l.No = number(), number(), int8(number()), int64(number()), r.IntN(2) == 0, r.IntN(2) == 0
	l.Words, l.Nums, l.Books, l.Prices = nil, nil, nil, map[string]int{"Go": number()}
	for range r.IntN(4) {
		l.Words, l.Nums = append(l.Words, word()), append(l.Nums, number())
		l.Books = append(l.Books, book{Title: word(), Pages: number()})
	}
	if r.IntN(2) == 0 {
		l.Nobody = &book{Title: word()}
	}
	return l
}

type leg struct {
	From, To string
	Seats    int
}

type trip struct {
	Name  string
	Legs  []leg // in the place of a text of leg, which a path through the wrong root would find
	First *leg
	Code  string
}

// TestRandomPaths mixes literals with paths through two roots, which are not asked for twice, and of which some texts are empty or long.
func TestRandomPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	value := func() string {
		switch r.IntN(40) {
		case 0:
			return ""
		case 1:
			return strings.Repeat("x", run.MaxKey/2)
		}
		return string(rune('a' + r.IntN(26)))
	}
	for range 2000 {
		a := &trip{Name: value(), Code: value(), First: &leg{From: value(), To: value(), Seats: r.IntN(9)}}
		b := leg{From: value(), To: value(), Seats: r.IntN(9)}
		holes := []struct{ path, want string }{
			{"a.Name", a.Name}, {"a.Code", a.Code}, {"a.First.From", a.First.From}, {"a.First.Seats", fmt.Sprint(a.First.Seats)},
			{"b.From", b.From}, {"b.To", b.To}, {"b.Seats", fmt.Sprint(b.Seats)}, {"upper(b.To)", strings.ToUpper(b.To)},
		}
		text, want, empty := "k", "k", ""
		for range 1 + r.IntN(7) {
			hole := holes[r.IntN(len(holes))]
			text += ":#{" + hole.path + "}"
			want += ":" + hole.want
			if hole.want == "" && empty == "" {
				empty = hole.path
			}
		}
		tmpl, err := Parse(text, Roots{"a": TypeFor[*trip](), "b": TypeFor[leg]()})
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]int{}
		keys, err := tmpl.Expand(context.Background(), func(root string) (any, error) {
			asked[root]++
			if root == "a" {
				return a, nil
			}
			return b, nil
		})
		switch {
		case asked["a"] > 1 || asked["b"] > 1:
			t.Errorf("%s: asked for %v", text, asked)
		case empty != "":
			if err == nil || !strings.Contains(err.Error(), empty) {
				t.Errorf("%s with an empty %s: %.40q, %v", text, empty, keys, err)
			}
		case len(want) > run.MaxKey:
			if err != nil || len(keys) != 1 || len(keys[0]) > run.MaxKey {
				t.Errorf("%s: %.40q, %v, want a digest", text, keys, err)
			}
		case err != nil || !slices.Equal(keys, []string{want}):
			t.Errorf("%s = %.60q, %v, want %.60q", text, keys, err, want)
		}
	}
}
