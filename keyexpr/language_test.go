package keyexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr"
)

// library is what expressions are about here: types that the engine has no trouble with, so that it can be asked.
type library struct {
	Name   string
	Code   string
	Empty  string
	N, M   int
	Small  int8
	Big    int64
	F      float64
	Yes    bool
	No     bool
	Words  []string
	Nums   []int
	Books  []book
	Prices map[string]int
	Owner  *book
	Nobody *book
	At     time.Time
	Any    any
	Anys   []any
}

type book struct {
	Title string
	Pages int
	Tags  []string
}

func newLibrary() *library {
	return &library{
		Name: "Alexandria", Code: "ab,cd,ef", N: 7, M: -3, Small: 5, Big: 1 << 40, F: 2.5, Yes: true, Words: []string{"b", "a", "c", "a"}, Nums: []int{3, 1, 2},
		Books:  []book{{"Go", 300, []string{"x", "y"}}, {"Java", 900, nil}, {"Lua", 100, []string{"z"}}},
		Prices: map[string]int{"Go": 30, "Lua": 10}, Owner: &book{Title: "own", Pages: 1}, At: time.Date(2026, 3, 5, 7, 0, 0, 0, time.UTC),
		Any: "any", Anys: []any{1, "x", nil, true},
	}
}

// The engine's own words for these are the measure: what is evaluated here means what it means there.
var asTheEngine = []string{
	// Literals and operators.
	"1",
	"-1",
	"1.5",
	"true",
	"'a'",
	`"a\tb"`,
	"`raw`",
	"0x10 + 0b11",
	"[1, 2][1]",
	"{a: 1}.a",
	"1..3",
	"(1 + 2) * 3",
	"7 % 3",
	"-7 % 3",
	"N % 4",
	"2 - M",
	"N * M",
	"-N",
	"+N",
	"1 == 1.0",
	"'a' == 'b'",
	"N == 7",
	"N != 7",
	"M < N",
	"M <= -3",
	"'a' < 'b'",
	"F > 2",
	"F == 2.5",
	"Small == 5",
	"Big > N",
	"N >= Small",
	"Yes == true",
	"Nobody == nil",
	"Owner != nil",
	"Any == 'any'",
	"Any == 1",
	"Yes and No",
	"Yes && !No",
	"Yes or No",
	"not Yes",
	"!(N > 5)",
	"N > 5 ? 'big' : 'small'",
	"if No { 1 } else { 2 }",
	"Yes ? N : M",
	"Nobody?.Title ?? 'none'",
	"Nobody ?? 'x'",
	"Name ?? 'x'",
	"'a' in Words",
	"'z' in Words",
	"not ('z' in Words)",
	"N in 1..9",
	"N in [1, 2]",
	"'Go' in Prices",
	"'Perl' in Prices",
	"1 in Anys",
	"'x' in Anys",
	"'Title' in Owner",
	"1 < N < 9",
	"Name contains 'and'",
	"Name startsWith 'Al'",
	"Name endsWith 'x'",
	"Name matches '^A.*a$'",
	"Name matches '[0-9]'",
	"not (Name matches 'x$')",
	// Access.
	"Name",
	"Owner.Title",
	"Owner?.Title",
	"Books[0].Title",
	"Books[-1].Title",
	"Books[1:][0].Title",
	"Books[:1][0].Title",
	"Words[1:3]",
	"Words[5:9]",
	"Words[-2:]",
	"Name[0:3]",
	"Name[3:]",
	"Name[-3:]",
	"Prices['Go']",
	"Prices.Lua",
	"Prices[Books[0].Title]",
	"Anys[1]",
	"(Books | map(.Title))[0]",
	"let x = N; x + x",
	"let x = Words; let y = x[0]; y",
	"Books[N - 7].Pages",
	"At.Year()",
	"At.Unix()",
	// Functions on texts.
	"lower(Name)",
	"upper('ab')",
	"trim('  a ')",
	"trim('xaxx', 'x')",
	"trimPrefix('abc', 'a')",
	"trimSuffix('abc', 'c')",
	"trimPrefix(' a')",
	"trimSuffix('a ')",
	"indexOf(Name, 'x')",
	"lastIndexOf(Name, 'a')",
	"indexOf(Name, 'zz')",
	"hasPrefix(Name, 'Al')",
	"hasSuffix(Name, 'q')",
	"split(Code, ',')",
	"split(Code, ',', 2)",
	"replace(Name, 'a', 'o')",
	"len('héllo')",
	"toBase64('a')",
	"string(N)",
	"int('12')",
	"int(3.0)",
	// Functions on lists.
	"len(Words)",
	"len(Prices)",
	"first(Words)",
	"last(Words)",
	"get(Words, 1)",
	"get(Words, 99) ?? 'none'",
	"get(Prices, 'Go')",
	"get(Prices, 'nope') ?? 0",
	"first([]) ?? 'none'",
	"take(Words, 2)",
	"take(Words, 99)",
	"reverse(Words)",
	"concat(Words, ['z'])",
	"concat(Nums, [9], [10])",
	"flatten([[1, 2], [3, [4]]])",
	"sort(Words)",
	"sort(Words, 'desc')",
	"sort(Nums)",
	"uniq(Words)",
	"max(Nums)",
	"min(Nums)",
	"max(1, 5, 3)",
	"min(2, 1)",
	"map(Books, .Title)",
	"map(Books, #.Pages * 2)",
	"map(Words, # == 'a')",
	"map(Words, #index)",
	"map(1..3, # * #)",
	"filter(Books, .Pages > 200) | map(.Title)",
	"filter(Words, # != 'a')",
	"find(Books, .Pages > 200).Title",
	"findLast(Books, .Pages > 50).Title",
	"find(Words, # == 'q') ?? 'none'",
	"findIndex(Words, # == 'c')",
	"count(Words, # == 'a')",
	"all(Nums, # > 0)",
	"any(Nums, # > 2)",
	"none(Nums, # > 5)",
	"one(Nums, # == 1)",
	"sortBy(Books, .Pages) | map(.Title)",
	"sortBy(Books, .Title, 'desc') | map(.Title)",
	"map(Books, len(.Tags))",
	"map(Books, map(.Tags, #))",
	"all([], false)",
	"any([], true)",
	"count([true, false, true])",
	"map(filter(Books, 'z' in .Tags), .Title)",
	"any(Books, any(.Tags, # == 'z'))",
	// What only conditions have.
	"abs(M)",
	"ceil(1.2)",
	"floor(F)",
	"round(2.5)",
	"float('1.5')",
	"sum(Nums)",
	"sum(Books, .Pages)",
	"mean(Nums)",
	"median(Nums)",
	"7 / 2",
	"2 ** 3",
	"2 ^ 3",
	"type(N)",
	"type(Name)",
	"duration('1h').Minutes()",
	"date('2026-03-05').Year()",
	"At > date('2026-01-01')",
	"(At - date('2026-03-05T00:00:00Z')).Hours()",
	"At + duration('1h') > At",
	"N + F",
	"N * 1.5",
	"F - 1",
}

func TestExpressionsMeanWhatTheyMeanToTheEngine(t *testing.T) {
	env := newLibrary()
	for _, text := range asTheEngine {
		want, err := expr.Eval(text, env)
		if err != nil {
			t.Errorf("the engine evaluates %q: %v", text, err)
			continue
		}
		if got, err := evaluate(text, env); err != nil || spelt(got) != spelt(want) {
			t.Errorf("%q = %s, %v; the engine says %s", text, spelt(got), err, spelt(want))
		}
	}
}

// evaluate compiles text as a condition may have it, over the fields of env.
func evaluate(text string, env *library) (v any, err error) {
	c, err := newCompilation(text, libraryRoots(), true, config{})
	if err != nil {
		return nil, err
	}
	node, err := c.tree(text, 0)
	if err != nil {
		return nil, err
	}
	x, err := c.compile(node)
	if err != nil {
		return nil, err
	}
	st := newTestState(c, env.fact)
	defer st.Release()
	return x.value(st)
}

// libraryRoots are the fields of a library as roots.
func libraryRoots() Roots {
	return Roots{
		"Name":   TypeFor[string](),
		"Code":   TypeFor[string](),
		"Empty":  TypeFor[string](),
		"N":      TypeFor[int](),
		"M":      TypeFor[int](),
		"Small":  TypeFor[int8](),
		"Big":    TypeFor[int64](),
		"F":      TypeFor[float64](),
		"Yes":    TypeFor[bool](),
		"No":     TypeFor[bool](),
		"Words":  TypeFor[[]string](),
		"Nums":   TypeFor[[]int](),
		"Books":  TypeFor[[]book](),
		"Prices": TypeFor[map[string]int](),
		"Owner":  TypeFor[*book](),
		"Nobody": TypeFor[*book](),
		"At":     TypeFor[time.Time](),
		"Any":    {},
		"Anys":   TypeFor[[]any](),
	}
}

// fact is a field by its name.
func (l *library) fact(root string) (any, error) {
	return reflect.ValueOf(l).Elem().FieldByName(root).Interface(), nil
}

// spelt is a value as JSON, in which whole numbers of all types are the same.
func spelt(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v)
	}
	return strings.TrimSuffix(string(doc), ".0")
}

// Where the engine says something else, it is on purpose.
func TestExpressionsThatTheEngineReadsOtherwise(t *testing.T) {
	env := newLibrary()
	for _, tt := range []struct{ text, want string }{
		{"Prices.Perl ?? 5", "5"},         // the engine: 0, so that all requests without it are one
		{"Prices['Perl'] == nil", "true"}, // the engine: false
		{"9223372036854775807 + 1", "calculates more than an int can hold"},
		{"Any + 1", "where a string is wanted"},
		{"1 + Any", "adds text to what is no text"},
		{"Words[9]", "asks a list of 4 elements for number 9"},
		{"Nobody.Title", "Nobody is nil"},
		{"Nobody?.Title == nil", "true"},
		{"len(Nobody)", "invalid argument for len"},
		{"int('x')", "no whole number"},
		{"int(2.5)", "no whole number"},
		{"N % (N - N)", "divides by zero"},
		{"sort(Anys)", "sorts what is neither all text nor all numbers"},
		{"sort(Words, 'up')", "sorts by neither asc nor desc"},
		{"uniq([[1], [1]])", "can't be compared"},
		{"Any.Name", "no fields or entries"},
		{"Any in 5..9", "false"},
		{"first(Any)", "where a list is wanted"},
		{"all(Any, true)", "where a list is wanted"},
		{"Anys[2] + 'x'", "adds text to what is no text"},
		{"Anys[2] * 2", "calculates with nil"},
		{"1..99999999", "too long a list"},
	} {
		v, err := evaluate(tt.text, env)
		got := spelt(v)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q = %s, want %s", tt.text, got, tt.want)
		}
		if fault, ok := errors.AsType[*Error](err); ok && fault.Reason == "" {
			t.Errorf("%q: an error without a reason", tt.text)
		}
	}
}
