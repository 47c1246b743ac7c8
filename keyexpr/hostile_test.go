package keyexpr

import (
	"encoding/json"
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
	At     time.Time
	Ratio  *big.Rat
	Number json.Number    // of ten million digits
	JSON   map[string]any // with such a number
	Shapes []any          // structs
	Notes  []*fakeMessage
	IDs    []uuid
	Runes  string // for which there is no quick way
	Ab     string // what patterns have to go back for
	Fields [20]string
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
	g.At, g.Ratio = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), new(big.Rat).SetFrac(big.NewInt(1), g.Big)
	g.Number = json.Number(strings.Repeat("1", 10<<20))
	g.JSON = map[string]any{"n": g.Number}
	for i := range 20_000 {
		g.Shapes = append(g.Shapes, stockLine{})
		g.Notes = append(g.Notes, &fakeMessage{name: fmt.Sprint(i)})
		g.IDs = append(g.IDs, uuid{byte(i), byte(i >> 8)})
	}
	g.Runes, g.Ab = strings.Repeat("é", 500), strings.Repeat("ab", 30_000)
	for i := range g.Fields {
		g.Fields[i] = g.Huge[:10<<20]
	}
	return g
}

// What no template and no value may exceed. Steps and bytes are counted; time can't be, so that what was disturbed by
// something else on the machine is tried again.
const (
	mostTime  = slower * 50 * time.Millisecond
	mostStart = slower * 200 * time.Millisecond // which comes once, and from the program itself
	mostBytes = slower * 8 << 20                // with the race detector, a sync.Pool forgets what it is given
)

// twenty writes a hole for each of the fields.
func twenty(hole string) string {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, hole, i)
	}
	return b.String()
}

var hostile = []struct{ name, text string }{
	// Long values in holes, and what they become.
	{"a long value", "#{req.Text}"},
	{"a huge value", "#{req.Huge}"},
	{"many long values", strings.Repeat("#{req.Text}:", 20)},
	{"twenty values of 10 MiB", twenty("#{req.Fields[%d]}:")},
	{"twenty values of 10 MiB, some of each", twenty("#{req.Fields[%d][0:400]}:")},
	{"values of which all is escaped", "#{req.A}:#{req.B}"},
	{"a huge number", "#{req.Big}"},
	{"a huge ratio", "#{req.Ratio}"},
	{"a number of ten million digits", "#{req.Number}"},
	{"such a number in a loop", "#{count(1..15000, req.JSON.n == 5)}:#{req.A == 'x'}"},
	{"many texts that values say themselves", "#{join(req.IDs, ',')}"},
	{"a long hash tag", "{#{req.Text}}"},
	// Text that grows.
	{"doubling", "#{let a = req.Text + ':' + req.Text; let b = a + ':' + a; let c = b + ':' + b; c + ':' + c}"},
	{"replacing", "#{replace(replace(replace(req.Text, 'v', 'vvvvvvvv'), 'v', 'vvvvvvvv'), 'v', 'vvvvvvvv')}"},
	{"joining", "#{join(req.Many, req.Text == '' ? ',' : ';') == ''}"},
	{"joining by parts", "#{join(req.Many, ',')}"},
	{"joining what is split", "#{len(join(split(req.A, ''), ',') )}"},
	{"upper of everything", "#{join(map(req.Many, upper(req.Text)), ',')}"},
	{"a time in a long layout", "#{count(1..15000, fmtTime(req.At, '" + strings.Repeat("Monday January 2006 ", 190) + "') == 'x')}"},
	{"a time in a loop", "#{count(1..15000, fmtTime(req.At, '2006-01-02') == 'x')}"},
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
	{"trimming many characters by many", "#{count(1..15000, trim(req.Runes, req.Runes) == 'z')}"},
	{"hashing next to nothing in a loop", "#{count(1..15000, hash(#) == 'z')}:#{req.A == 'x'}"},
	{"a method in a loop", "#{count(1..15000, req.Notes[0].GetName() == 'z')}:#{req.A == 'x'}"},
	{"trimming in a loop", "#{filter(req.Many, trim(req.A, req.A) == '')}"},
	// Patterns.
	{"a pattern", "#{req.Text matches '(x|v)*(y|v)*z'}"},
	{"a pattern on 64 KiB", "#{req.Text[0:65536] matches '(x+x+)+y|(v|vv)*z'}"},
	{"a pattern of many ways", "#{req.Ab matches '(a|b|ab|ba)*(a|b)*(aab|abb)*c'}"},
	{"a pattern of many parts", "#{req.Ab matches '^(a?b?){40}$'}"},
	{"a small text and a pattern in a loop", "#{count(1..15000, 'x' matches '^(a?b?){40}$')}:#{req.A == 'x'}"},
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
	{"hashing many structs", "#{hash(req.Shapes)}"},
	{"hashing many messages", "#{hash(req.Notes)}"},
	{"hashing a number of ten million digits", "#{hash(req.JSON)}"},
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
	// What is the same for all requests, and found out at start.
	{"constants that take long", "#{(any(1..40000, # < 0)" + strings.Repeat(" or any(1..40000, # < 0)", 14) + ") ? req.A : req.B}"},
	{"constants in constants", "#{or(" + strings.Repeat("upper(any(1..40000, # < 0) ? 'x' : '') + ':' + ", 9) + "'y', req.A)}"},
	// Syntax.
	{"a template of 64 KiB", strings.Repeat("#{req.A}:", 7000)},
	{"an expression of 64 KiB", "#{" + strings.Repeat("lower(", 6000) + "req.A" + strings.Repeat(")", 6000) + "}"},
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
	start := time.Now()
	tmpl, err := Parse(text, Roots{"req": TypeFor[*greedy]()}, OneKey())
	for try := 0; try < 20 && time.Since(start) > mostStart; try++ {
		start = time.Now()
		_, _ = Parse(text, Roots{"req": TypeFor[*greedy]()}, OneKey())
	}
	if took := time.Since(start); took > mostStart {
		t.Errorf("%s takes %v at start", name, took)
	}
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
		"or(T, T)",
		"join(L, ',')",
		"join(L, 'ssssssssssssssssssssssssssssssssssssssssssss')",
		"replace(T, 'x', T)",
		"L[0]",
		"(T)[N:N]",
		"hash(L)",
		"string(N)",
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
