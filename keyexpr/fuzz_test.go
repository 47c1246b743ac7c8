package keyexpr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// FuzzDifferentValues holds the promise of keys: different values of holes, different keys. Templates are random, over the whole
// language; the generator knows what the holes come to for each of two requests.
func FuzzDifferentValues(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, "a:b", "c", "%3A")
	}
	f.Add(uint64(1), "\xff", "{", "é→")
	roots := Roots{"req": TypeFor[*fuzzRequest](), "header": AnyName(), "body": Root{}}
	f.Fuzz(func(t *testing.T, seed uint64, a, b, c string) {
		g := &templates{Rand: rand.New(rand.NewPCG(seed, 5))}
		text, vectors := g.template()
		tmpl, err := Parse(text, roots, OneKey())
		if err != nil {
			checkError(t, text, err)
			return
		}
		g.pieces = []string{a, b, c, a + ":" + b, b + ":" + c, strings.ReplaceAll(a, ":", "%3A"), c + a, "x", "7"}
		values, keys := map[string]string{}, map[string]bool{}
		for range 2 {
			r := g.request()
			made, err := tmpl.Expand(t.Context(), r.fact)
			if err != nil {
				if !errors.Is(err, ErrValue) {
					t.Errorf("Expand(%q) = %v, want ErrValue", text, err)
				}
				continue
			}
			all := vectors(r)
			for _, v := range all {
				values[fmt.Sprintf("%q", v)] = fmt.Sprintf("%+v", *r)
			}
			for _, key := range made {
				keys[key] = true
				checkRead(t, tmpl, key, all)
			}
		}
		if len(keys) != len(values) {
			t.Errorf("%q makes %d keys of %d values: %v of %v", text, len(keys), len(values), keys, values)
		}
	})
}

// checkRead reads a key back to the values that it was made of.
func checkRead(t *testing.T, tmpl *Template, key string, vectors [][]string) {
	t.Helper()
	if len(key) > run.MaxKey {
		t.Errorf("%q makes a key of %d bytes", tmpl, len(key))
	}
	if strings.Contains(key, run.DigestMark) {
		return
	}
	read, ok := tmpl.Match(key)
	if fits := func(v []string) bool {
		return slices.EqualFunc(v, read, func(want, got string) bool {
			return want == got || strings.HasPrefix(want, "hash of ") && len(got) == 32
		})
	}; !ok || !slices.ContainsFunc(vectors, fits) {
		t.Errorf("Match(%q) by %q = %q, %v, want one of %q", key, tmpl, read, ok, vectors)
	}
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	fault, ok := errors.AsType[*Error](err)
	if !ok || fault.Offset < 0 || fault.Offset > len(text) || fault.Reason == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("Parse(%q) = %#v", text, err)
	}
}

// FuzzParse holds whatever somebody writes to an error with a place, or to keys or an error of the request.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"order:#{req.OrderID}", "##{a}", "{#a}", "#{", "#{}", "#{'}'}", "#{`}``", "#{a /* }", "#{(}", "é#{path.id}\xff", "#{1..1000000000}", "#{let a = method; a}",
		"#{req.OrdreID}", "#{header?.A?.b[0] ?? 'x'}", "#{map(req.Lines, .SKU)}", "#{$env}", "#{now()}", "#{1 < int(method) < 2}", "#{true ?: false}", "#{b'\\xff'}", "#{{}}", "#{[]}",
		"#{header.X-Tenant}", "#{#order.id}", "${a}", "{{.b}}", "x%#{method}", "#{raw(req.Tags)}", "#{key(req.OrderID, coalesce(req.Tenant, 'x'))}", "#{req.Urgent ? '' : 'x'}:#{not 1}",
		"#{req.Tags | filter(# != 'x') | map(upper(#))}", "#{req.Lines[0].SKU matches '(a|b)*'}", "#{mod(req.Seq, 7) in [1, 2]}", "#{fmtTime(body.at, '2006')}", "#{req?.Customer?.GetName()}",
	} {
		f.Add(seed)
	}
	roots, facts := testRoots(), testFacts(nil)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text, roots); err != nil {
			checkError(t, text, err)
		} else if _, err := c.Eval(t.Context(), facts); err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("Eval(%q) = %v", text, err)
		}
		tmpl, err := Parse(text, roots, OneKey())
		if err != nil {
			checkError(t, text, err)
			return
		}
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v, and Parse finds nothing", text, err)
		}
		keys, err := tmpl.Expand(t.Context(), facts)
		if (err == nil) == (len(keys) == 0) || slices.Contains(keys, "") || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %q, %v", text, keys, err)
		}
	})
}

// FuzzHostile holds random expressions over the largest and strangest values to what they may use, by count: steps, bytes that are
// charged, bytes that are made, and keys.
func FuzzHostile(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	h := newHostileRequest()
	f.Fuzz(func(t *testing.T, seed uint64) {
		g := hostileExpressions{rand.New(rand.NewPCG(seed, 7))}
		text := "#{" + g.fill(1+g.IntN(4), g.pick("T", "N", "C", "L", "map(L, T)")) + "}"
		tmpl, err := Parse(text, Roots{"req": TypeFor[*hostileRequest]()}, OneKey())
		if err != nil {
			checkError(t, text, err)
			return
		}
		u := usedBy(t, tmpl, h)
		if u.steps > run.MaxSteps || u.bytes > run.MaxBytes || u.made > mostBytes || u.keys > run.MaxKeys {
			t.Errorf("%s takes %+v", text, u)
		}
		if u.err != nil && !errors.Is(u.err, ErrValue) {
			t.Errorf("%s: %v, want ErrValue", text, u.err)
		}
	})
}

// hostileExpressions are of texts, lists, numbers and conditions that make much of what is there.
type hostileExpressions struct{ *rand.Rand }

func (g hostileExpressions) pick(list ...string) string { return list[g.IntN(len(list))] }

// fill writes a form with T, L, N and C for an expression that is a text, a list, a number and a condition.
func (g hostileExpressions) fill(depth int, form string) string {
	var b strings.Builder
	for _, c := range form {
		forms, leaf := hostileForms[c], depth <= 0
		switch {
		case forms[0] == nil:
			b.WriteRune(c)
		case leaf:
			b.WriteString(g.pick(forms[0]...))
		default:
			b.WriteString(g.fill(depth-1, g.pick(forms[1]...)))
		}
	}
	return b.String()
}

// hostileForms are what is at the end of an expression, and what it is made of.
var hostileForms = map[rune][2][]string{
	'T': {
		{"req.S", "req.ID", "'x'", "'%'", "req.Texts[5]", "req.Huge", "#", "req.Ring.Next.Name", "req.U"},
		{"lower(T)", "upper(T)", "trim(T)", "trim(T, 'at')", "hash(T)", "hash(L)", "string(T)", "required(T)", "(C ? T : T)", "(T ?? T)", "coalesce(T, T)", "key(T, T)", "raw(T)", "first(L)", "last(L)", "string(N)"},
	},
	'L': {
		{"req.Big", "req.Lines", "req.Any", "req.Texts", "req.List", "req.Cy", "[1, 2]", "req.M", "req.Ring"},
		{"map(L, T)", "filter(L, C)", "[T, T]", "map(L, N)", "(C ? L : L)", "first(L)"},
	},
	'N': {
		{"0", "5", "70000", "-1", "req.N", "req.U"},
		{"len(L)", "len(T)", "shard(T, 100)", "mod(N, 7)", "div(N, 3)", "int(T)"},
	},
	'C': {
		{"true", "# == 1", "# == 'x'", "req.ID == req.S", "req.Any == req.Cy"},
		{"(T == T)", "(T < T)", "(T contains T)", "(T startsWith T)", "(T in L)", "(N in L)", "any(L, C)", "all(L, C)", "(C and C)", "(C or C)", "(not C)", "(T matches '(a|t|v)*(x|y|t)+z')", "(L == L)", "(N > N)"},
	},
}
