package keyexpr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// ring is a value that has no end.
type ring struct{ Next any }

// greedy is a request that wants to take all time or all memory, whatever a template asks of it.
type greedy struct {
	Text   string // 1 MiB
	Huge   string // 64 MiB
	Near   string // as Text, but for its end
	A, B   string
	Many   []string
	Ints   []int
	Arr    [4096]int
	Nested any
	Big    *big.Int
	Map    map[string]int
	Lists  [][]string
	Ring   any
}

func newGreedy() *greedy {
	g := &greedy{
		Text: strings.Repeat("v", 1<<20), Huge: strings.Repeat("v%", 32<<20), A: strings.Repeat("{", 300<<10), B: strings.Repeat(" ", 300<<10),
		Map: map[string]int{}, Big: new(big.Int).Lsh(big.NewInt(1), 1<<23),
	}
	g.Near = g.Text[1:] + "w"
	g.Ints = make([]int, 190_000)
	g.Many = slices.Repeat([]string{strings.Repeat("x", 1000)}, 100_000)
	for i := range 1_000_000 {
		g.Map[fmt.Sprint(i)] = i
	}
	g.Lists = slices.Repeat([][]string{g.Many}, 100)
	for range 100_000 {
		g.Nested = []any{g.Nested}
	}
	r := &ring{}
	r.Next = r
	g.Ring = r
	var p any
	p = &p // a pointer to itself
	g.Lists[0] = nil
	g.Nested = []any{g.Nested, p}
	return g
}

// What no template and no value may exceed. Steps and bytes are counted; time can't be, so that what was disturbed by
// something else on the machine is tried again.
const (
	mostTime  = slower * 50 * time.Millisecond
	mostBytes = 8 << 20
)

var hostile = []struct{ name, text string }{
	// Long values in holes, and what they become.
	{"a long value", "#{req.Text}"},
	{"a huge value", "#{req.Huge}"},
	{"many long values", strings.Repeat("#{req.Text}:", 20)},
	{"values of which all is escaped", "#{req.A}:#{req.B}"},
	{"a huge number", "#{req.Big}"},
	{"a long hash tag", "{#{req.Text}}"},
	// Text that grows.
	{"doubling", "#{let a = req.Text + ':' + req.Text; let b = a + ':' + a; let c = b + ':' + b; c + ':' + c}"},
	{"replacing", "#{replace(replace(replace(req.Text, 'v', 'vvvvvvvv'), 'v', 'vvvvvvvv'), 'v', 'vvvvvvvv')}"},
	{"joining", "#{join(req.Many, req.Text == '' ? ',' : ';') == ''}"},
	{"joining by parts", "#{join(req.Many, ',')}"},
	{"joining what is split", "#{len(join(split(req.A, ''), ',') )}"},
	{"upper of everything", "#{join(map(req.Many, upper(req.Text)), ',')}"},
	{"base64", "#{toBase64(toBase64(toBase64(toBase64(req.Text))))}"},
	// Loops in loops.
	{"loops in loops", "#{count(req.Many, count(req.Many, count(req.Many, # == 'x') > 0) > 0)}:#{req.Text == 'x'}"},
	{"ranges in ranges", "#{any(1..9000, any(1..9000, any(1..9000, false)))}:#{req.A == 'x'}"},
	{"a range of everything", "#{len(1..999999999)}:#{req.A == 'x'}"},
	{"a backward range", "#{len(-9223372036854775807..9223372036854775807)}:#{req.A == 'x'}"},
	{"hashing in a loop", "#{map(req.Many, hash(req.Text))}"},
	{"membership in a loop", "#{filter(req.Many, # in req.Many)}"},
	{"uniq in a loop", "#{map(req.Many, len(uniq(req.Many)))}"},
	{"comparing in a loop", "#{filter(req.Many, req.Text == req.Near)}"},
	{"searching in a loop", "#{filter(req.Many, req.Text contains 'vvvvw')}"},
	{"trimming in a loop", "#{filter(req.Many, trim(req.A, req.A) == '')}"},
	// Patterns.
	{"a pattern", "#{req.Text matches '(x|v)*(y|v)*z'}"},
	{"a pattern on 64 KiB", "#{req.Text[0:65536] matches '(x+x+)+y|(v|vv)*z'}"},
	{"patterns in a loop", "#{map(req.Many, # matches '(x+x+)+y')}"},
	{"a large pattern", "#{req.A matches '((a{30}){30}){30}'}"},
	// Lists and maps.
	{"a list of a hundred thousand", "#{req.Many}"},
	{"sorting", "#{sort(req.Many)[0]}"},
	{"sorting by", "#{sortBy(req.Many, #)[0]}"},
	{"concatenating", "#{len(concat(req.Many, req.Many, req.Many))}"},
	{"flattening", "#{len(flatten(req.Lists))}"},
	{"flattening what is deep", "#{len(flatten([req.Nested]))}"},
	{"reversing", "#{reverse(req.Many)[0]}"},
	{"the least of many", "#{min(req.Map)}"},
	{"hashing a map of a million", "#{hash(req.Map)}"},
	{"hashing many texts", "#{hash(req.Many)}"},
	{"hashing lists of lists", "#{hash(req.Lists)}"},
	{"hashing what is deep", "#{hash(req.Nested)}"},
	{"hashing a ring", "#{hash(req.Ring)}"},
	{"a ring in a hole", "#{req.Ring}"},
	{"a pointer to itself", "#{req.Nested[1]}"},
	{"comparing rings", "#{req.Ring == req.Ring}"},
	{"comparing lists", "#{req.Lists == [req.Many]}"},
	{"a thousand long keys", "#{map(req.Many[0:1024], req.A + ':' + #)}"},
	{"a long text between numbers", "#{join(req.Ints, '" + strings.Repeat("s", 3900) + "')}"},
	{"a long text with each number", "#{join(map(req.Ints, '" + strings.Repeat("s", 3900) + "' + string(#)), ',')}"},
	{"a long list in each key", "#{map(1..1000, join(req.Ints, '" + strings.Repeat("s", 3900) + "'))}"},
	{"many tests in a joined list", "#{join(map(req.Ints, (" + strings.Repeat("# == 1 or ", 45) + "false) ? 'x' : 'y'), ',')}"},
	{"many tests within a sum", "#{len(map(req.Ints, lower(((" + strings.Repeat("# == 1 or ", 40) + "false) ? 'x' : 'y') + ':' + string(#))))}"},
	{"pieces of arrays", "#{len(map(1..20000, req.Arr[0:4096]))}:#{req.A == 'x'}"},
	{"text behind many keys", "#{req.Many[0:1024]}:#{req.A}"},
	// Syntax.
	{"brackets", "#{" + strings.Repeat("(", 2000) + "1" + strings.Repeat(")", 2000) + "}"},
	{"lists in lists", "#{" + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}"},
	{"negations", "#{" + strings.Repeat("!", 4000) + "true}"},
	{"a long sum", "#{" + strings.Repeat("1+", 2000) + "1}"},
	{"braces", strings.Repeat("{", 4000)},
	{"hashes", strings.Repeat("#", 4000) + "{"},
	{"holes", strings.Repeat("#{req.A}:", 450)},
}

func TestNothingHostileTakesLong(t *testing.T) {
	g := newGreedy()
	for _, tt := range hostile {
		g.expand(t, tt.name, tt.text)
	}
}

// expand holds an expansion to the bounds, and to an error that is the value's fault.
func (g *greedy) expand(t *testing.T, name, text string) {
	t.Helper()
	facts := func(string) (any, error) { return g, nil }
	tmpl, err := Parse(text, Roots{"req": TypeFor[*greedy]()}, OneKey())
	if err != nil {
		checkError(t, text, err)
		return
	}
	least, made := time.Hour, uint64(math.MaxUint64)
	for try := 0; try < 20 && (least > mostTime || made > mostBytes); try++ { // until one is not disturbed
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err = tmpl.Expand(t.Context(), facts)
		least = min(least, time.Since(start))
		runtime.ReadMemStats(&after)
		made = min(made, after.TotalAlloc-before.TotalAlloc)
	}
	steps, bytes := tmpl.spent(t, facts)
	t.Logf("%-40s %8v %7d KiB made, %7d steps, %8d bytes, %.60v", name, least.Round(time.Microsecond), made>>10, steps, bytes, err)
	if least > mostTime || made > mostBytes {
		t.Errorf("%s takes %v and %d MiB", name, least, made>>20)
	}
	if steps > run.MaxSteps || bytes > run.MaxBytes {
		t.Errorf("%s takes %d steps and %d bytes", name, steps, bytes)
	}
	if err != nil && !errors.Is(err, ErrValue) {
		t.Errorf("%s: %v, want ErrValue", name, err)
	}
}

// FuzzHostile holds templates that nobody thought of to the same bounds, on the same values.
func FuzzHostile(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	g := newGreedy()
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := hostileGenerator{rand.New(rand.NewPCG(seed, 7))}
		text := "#{" + r.pick(r.text(1+r.IntN(5)), r.list(1+r.IntN(5))) + "}"
		g.expand(t, text, text)
	})
}

// hostileGenerator writes expressions that make much of what is there, most of them of the right types.
type hostileGenerator struct{ *rand.Rand }

func (r hostileGenerator) pick(list ...string) string { return list[r.IntN(len(list))] }

// fill writes a form with T, L, N and C for an expression that is a text, a list, a number and a condition.
func (r hostileGenerator) fill(depth int, form string) string {
	var b strings.Builder
	for _, c := range form {
		switch c {
		case 'T':
			b.WriteString(r.text(depth))
		case 'L':
			b.WriteString(r.list(depth))
		case 'N':
			b.WriteString(r.number(depth))
		case 'C':
			b.WriteString(r.condition(depth))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func (r hostileGenerator) text(depth int) string {
	if depth <= 0 {
		return r.pick("req.Text", "req.A", "req.B", "'x'", "req.Near", "'%'", "req.Many[5]", "req.Big", "req.Lists[1][1]", "#", "req.Huge")
	}
	return r.fill(depth-1, r.pick("T + ':' + T", "lower(T)", "upper(T)", "trim(T)", "toBase64(T)", "hash(T)", "string(T)", "required(T)", "(C ? T : T)", "(T ?? T)",
		"or(T, T)", "join(L, ',')", "join(L, 'ssssssssssssssssssssssssssssssssssssssssssss')", "replace(T, 'x', T)", "L[0]", "(T)[N:N]", "hash(L)", "string(N)",
		"trim(T, T)", "find(L, C)"))
}

func (r hostileGenerator) list(depth int) string {
	if depth <= 0 {
		return r.pick("req.Many", "req.Ints", "req.Lists", "req.Arr", "req.Lists[1]", "req.Nested", "1..9000", "1..300", "req.Many[0:1000]", "req.Ring")
	}
	return r.fill(depth-1, r.pick("map(L, T)", "map(L, L)", "filter(L, C)", "concat(L, L)", "reverse(L)", "sort(L)", "uniq(L)", "flatten(L)", "sortBy(L, T)",
		"split(T, 'v')", "[T, T, N]", "L[N:N]", "take(L, N)"))
}

func (r hostileGenerator) number(depth int) string {
	if depth <= 0 {
		return r.pick("0", "5", "100", "70000", "-1", "#index", "len(req.Many)")
	}
	return r.fill(depth-1, r.pick("len(L)", "len(T)", "count(L, C)", "shard(T, 100)", "(N + N)", "(N * N)", "indexOf(T, T)"))
}

func (r hostileGenerator) condition(depth int) string {
	if depth <= 0 {
		return r.pick("true", "# == 1", "# == 'x'", "#index > 5", "req.Text == req.Near")
	}
	return r.fill(depth-1, r.pick("(T == T)", "(T < T)", "(T contains T)", "(T in L)", "any(L, C)", "all(L, C)", "one(L, C)", "(C and C)", "(C or C)",
		"(T matches '(a|b|v)*(x|y|v)+z')", "(L == L)", "(N > N)"))
}

// spent returns what an expansion has cost.
func (t *Template) spent(tb testing.TB, facts Facts) (steps, bytes int) {
	st := run.NewState(tb.Context(), facts, t.program.Roots)
	defer st.Release()
	_, _ = t.program.ExpandWith(st, nil)
	return st.Spent()
}

// tagOf returns what Redis hashes of a key.
func tagOf(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
		return tag
	}
	return key
}

func TestHostileValues(t *testing.T) {
	values := []string{
		"a:b", ":", "::", "}", "{", "{x}", "}{", "%", "%3A", "%25", "a%7Db", "\x00", "a\r\nSET x 1\r\n", " ", "\t", "#{req.Tenant}", "#{",
		"\xff\xfe", "\xc3", "\ufeff", "\u2028", "../..", "order:43", "42:acme", "*", "[a-z]", "\x1b[31m", "nil", "<nil>", "null", "none",
		run.DigestMark + strings.Repeat("0", 64), strings.Repeat("v", 1<<18), strings.Repeat("}", 600), strings.Repeat("\xff", 600), "é", "e\u0301",
	}
	tmpl := mustParse(t, "o:{#{req.Tenant}}:#{req.OrderID}:#{req.Any}:end")
	seen := map[string]string{}
	for _, id := range values {
		for _, name := range values {
			req := &payRequest{Tenant: "acme", OrderID: id, Any: name}
			keys, err := tmpl.Expand(t.Context(), testFacts(req))
			if err != nil || len(keys) != 1 {
				t.Fatalf("Expand(%.20q, %.20q) = %q, %v", id, name, keys, err)
			}
			key, facts := keys[0], fmt.Sprintf("%q, %q", id, name)
			if other, taken := seen[key]; taken {
				t.Errorf("%.40q is the key of %.40s and of %.40s", key, facts, other)
			}
			seen[key] = facts
			if tagOf(key) != "acme" || len(key) > run.MaxKey {
				t.Errorf("%.40q has slot %q and %d bytes", key, tagOf(key), len(key))
			}
			if len(key) < run.MaxKey-4 && strings.Count(key, ":") != 4 {
				t.Errorf("%.40q has another number of parts", key)
			}
		}
	}
}

func TestHostileTags(t *testing.T) {
	tmpl := mustParse(t, "{#{req.OrderID}}:x")
	for _, id := range []string{"}", "{", "}{", "a}b", "", "\x00", "%7D"} {
		keys, err := tmpl.Expand(t.Context(), testFacts(&payRequest{OrderID: id}))
		if id == "" {
			if !errors.Is(err, ErrValue) {
				t.Errorf("an empty tag makes %q, %v", keys, err)
			}
			continue
		}
		want := strings.NewReplacer("}", "%7D", "{", "%7B", "\x00", "%00", "%", "%25").Replace(id)
		if err != nil || tagOf(keys[0]) != want {
			t.Errorf("Expand(%q) = %q, %v, want tag %q", id, keys, err, want)
		}
	}
}

func TestLongValues(t *testing.T) {
	huge := strings.Repeat("v", 1<<18)
	keys, err := expand(t, "o:{#{req.Tenant}}:#{req.OrderID}", &payRequest{Tenant: "acme", OrderID: huge})
	if err != nil || !strings.HasPrefix(keys[0], "o:{acme}:vvv") || len(keys[0]) > run.MaxKey {
		t.Errorf("Expand = %q, %v, want a bounded key with its hash tag", keys, err)
	}
	if _, err := expand(t, "o:{#{req.OrderID}}", &payRequest{OrderID: huge}); !errors.Is(err, ErrValue) {
		t.Errorf("Expand = %v, want ErrValue for a hash tag that can't be kept", err)
	}
}
