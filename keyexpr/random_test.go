package keyexpr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/expr-lang/expr"
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
	for range 3000 {
		text := test(3)
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
	}
}
