package keyexpr

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// functionValues are operandValues and the ends of their ranges.
var functionValues = func() map[string]any {
	values := maps.Clone(operandValues)
	maps.Copy(values, map[string]any{"empty": "", "neg": -7, "no": []any{}, "nested": []any{[]int{2}, []int{1}}})
	return values
}()

// What functions of one argument make of each sort of value whose type is not known at start. A cell is a value, with commas for
// blanks, or a word for a refusal.
var functionTables = []struct{ about, table string }{
	{"Texts to texts. Only a text is one.", `
		.          text empty num  neg  big  real yes  none  list no   nested table rec
		lower      b    ""    text text text text text text? text text text   text  text
		upper      B    ""    text text text text text text? text text text   text  text
		trim       b    ""    text text text text text text? text text text   text  text
		trimPrefix b    ""    text text text text text text? text text text   text  text
		toBase64   Yg== ""    text text text text text text? text text text   text  text
	`},
	{"What a value is as a text or a number. A float, a list and a map have none.", `
		.      text   empty  num neg big                  real     yes   none   list  no    nested table rec
		string b      ""     7   -7  18446744073709551615 float    true  nil    nokey nokey nokey  nokey nokey
		raw    b      ""     7   -7  18446744073709551615 float    true  nil    [a,b] []    nokey  nokey nokey
		int    digits digits 7   -7  large                fraction whole whole? whole whole whole  whole whole
		float  !      !      7   -7  1.84e+19             2.5      !     !      !     !     !      !     !
		abs    !      !      7   7   18446744073709551615 2.5      !     !      !     !     !      !     !
		ceil   !      !      7   -7  1.84e+19             3        !     !      !     !     !      !     !
	`},
	{"How many there are of something.", `
		.   text empty num    neg    big    real   yes    none    list   no nested table rec
		len 1    0     length length length length length length? 2      0  2      1     length
		sum list list  list   list   list   list   list   list?   misfit 0  misfit list  list
	`},
	{"Lists. An empty one is a list, and nil is none.", `
		.       text empty num  neg  big  real yes  none  list     no    nested       table rec
		first   list list  list list list list list list? a        <nil> [2]          list  list
		last    list list  list list list list list list? b        <nil> [1]          list  list
		reverse list list  list list list list list list? [b,a] [] [[1],[2]] list  list
		flatten list list  list list list list list list? [a,b] [] [2,1]     list  list
		sort    list list  list list list list list list? [a,b] [] order        list  list
		uniq    list list  list list list list list list? [a,b] [] compare      list  list
	`},
	{"Anything that is there.", `
		.        text empty   num neg big                  real yes  none    list  no      nested       table    rec
		required b    missing 7   -7  18446744073709551615 2.5  true missing [a,b] missing [[2],[1]] map[a:1] {b,7}
	`},
}

// The sentences of refusals, with the type of the value.
var functionRefusals = map[string]string{
	"text":     "has a value of type %T where a string is wanted: use string(x)",
	"text?":    "has nil where a string is wanted",
	"whole":    "has a value of type %T where a whole number is wanted",
	"whole?":   "has nil where a whole number is wanted",
	"digits":   "has text that is no whole number",
	"fraction": "has a float that is no whole number",
	"large":    "has a number that is too large to calculate with",
	"float":    "is a float, %T, which has many spellings: use a whole number or a string",
	"nil":      "is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text",
	"length":   "asks a value of type %T for its length",
	"length?":  "asks nil for its length",
	"list":     "has a value of type %T where a list is wanted",
	"list?":    "has nil where a list is wanted",
	"order":    "sorts what is neither all text nor all numbers",
	"compare":  "has elements that can't be compared",
	"missing":  "is missing: it is nil, empty or zero",
}

func TestFunctionsOverSortsOfValues(t *testing.T) {
	roots := untyped(functionValues)
	for _, tt := range functionTables {
		rows := strings.Split(strings.TrimSpace(tt.table), "\n")
		names := strings.Fields(rows[0])[1:]
		for _, row := range rows[1:] {
			cells := strings.Fields(row)
			for i, name := range names {
				text, want := cells[0]+"("+name+")", cells[1+i]
				got := calculated(text, roots, functionValues)
				switch sentence, refused := functionRefusals[want]; {
				case want == "!":
					want = "gives " + cells[0] + " what it does not take"
				case want == "misfit":
					want = "has operands of types int and string, which don't fit"
					if name == "nested" {
						want = "has operands of types int and []int, which don't fit"
					}
				case want == "nokey": // lists, maps and structs, each with a sentence of its own
					want, got = "name one of, or a hole of its own", strings.NewReplacer("name one of its fields", "name one of", "name one of its entries", "name one of").Replace(got)
					if strings.HasSuffix(got, "name one of") || strings.Contains(got, "a list makes keys only as a hole of its own") {
						got = want
					}
				case refused:
					want = strings.Replace(sentence, "%T", fmt.Sprintf("%T", functionValues[name]), 1)
				default:
					got = strings.ReplaceAll(got, " ", ",")
					want = strings.Trim(want, `"`)
				}
				if got != want {
					t.Errorf("%s = %q, want %q (%s)", text, got, want, tt.about)
				}
			}
		}
	}
}

// edges are where a function is easy to get wrong: the ends of types, texts that are no UTF-8, texts of runes of several bytes,
// and what JSON makes of numbers.
var edges = map[string]any{
	"bad":    "\xffÉ\xc3",
	"runes":  "İstanbul→ẞ",
	"sigma":  "ΟΔΟΣ",
	"wide":   "日本語",
	"nul":    "a\x00b",
	"least":  int64(-1 << 63),
	"most":   int64(1<<63 - 1),
	"huge":   uint64(1<<64 - 1),
	"tiny":   int8(-128),
	"zero":   0,
	"one":    1,
	"half":   0.5,
	"exact":  float64(1 << 53),
	"beyond": float64(1<<53) * 2,
	"day":    48 * time.Hour,
	"words":  []string{"é", "e", "E", "\xff", ""},
	"sizes":  []any{int8(3), uint64(1<<64 - 1), int64(-1 << 63), 2.5},
}

// edgeOutcomes were worked out by hand, from the bits of the numbers and the code points of the texts.
var edgeOutcomes = []struct{ text, want string }{
	// Case: one rune to one rune, in no language. What is no UTF-8 stays as it is, so that two texts stay two.
	{"lower(bad)", "\xffé\xc3"},
	{"upper(bad)", "\xffÉ\xc3"},
	{"upper('é' + bad)", "É\xffÉ\xc3"},
	{"lower(runes)", "istanbul→ß"},
	{"upper(runes)", "İSTANBUL→ẞ"},
	{"lower(sigma)", "οδοσ"},
	{"upper('ß')", "ß"},
	{"lower(nul)", "a\x00b"},
	// Lengths count runes, and bytes that are none; positions and pieces count bytes.
	{"len(bad)", "3"},
	{"len(wide)", "3"},
	{"len(nul)", "3"},
	{"indexOf(wide, '語')", "6"},
	{"indexOf(wide, '')", "0"},
	{"lastIndexOf(wide, '')", "9"},
	{"indexOf('', 'x')", "-1"},
	{"wide[0:3]", "日"},
	{"wide[0:1]", "\xe6"},
	{"wide[-3:]", "語"},
	{"wide[2:1]", ""},
	{"wide[-99:99]", "日本語"},
	// Texts that are no UTF-8 are cut and put together as bytes.
	{"len(split(bad, ''))", "3"},
	{"split(bad, 'É')[0]", "\xff"},
	{"replace(bad, 'É', '')", "\xff\xc3"},
	{"trim(bad, 'É')", "\xffÉ\xc3"},
	{"trimSuffix(wide, '語')", "日本"},
	{"trimPrefix(wide, '本')", "日本語"},
	{"trim(wide, '語日')", "本"},
	{"bad contains 'É'", "true"},
	{"bad startsWith 'É'", "false"},
	{"wide endsWith ''", "true"},
	{"bad == bad", "true"},
	{"bad == '\ufffdÉ\ufffd'", "false"},
	{"toBase64(bad)", "/8OJww=="},
	{"string(bad) == bad", "true"},
	{"hash(bad) == hash('\ufffdÉ\ufffd')", "false"},
	// Ranges between the ends of int64 have more numbers than an int64 can say.
	{"len(least..most)", "makes too long a list"},
	{"len(least..-1)", "makes too long a list"},
	{"len(0..most)", "makes too long a list"},
	{"len(one..zero)", "0"},
	{"len(zero..zero)", "1"},
	{"len(most..least)", "0"},
	{"(most..most)[0]", "9223372036854775807"},
	{"(least..least)[0]", "-9223372036854775808"},
	{"len(1..20000)", "20000"},
	{"len(0..199999)", "takes or makes too much text"},
	{"len(0..200000)", "makes too long a list"},
	{"most in least..most", "makes too long a list"},
	// Sums, products and remainders are exact up to the last number, and an error one further.
	{"most + zero", "9223372036854775807"},
	{"most + one", "calculates more than an int can hold"},
	{"least + -1", "calculates more than an int can hold"},
	{"least - one", "calculates more than an int can hold"},
	{"zero - least", "calculates more than an int can hold"},
	{"-1 - least", "9223372036854775807"},
	{"-most", "-9223372036854775807"},
	{"-least", "calculates more than an int can hold"},
	{"least * one", "-9223372036854775808"},
	{"least * -1", "calculates more than an int can hold"},
	{"most * -1", "-9223372036854775807"},
	{"tiny * tiny", "16384"},
	{"-tiny", "128"},
	{"least % -1", "0"},
	{"least % most", "-1"},
	{"huge % most", "1"},
	{"huge % least", "9223372036854775807"},
	{"huge % zero", "divides by zero"},
	{"mod(most, most)", "0"},
	{"mod(most - 1, most)", "9223372036854775806"},
	{"mod(least, most)", "9223372036854775806"},
	{"mod(-1, most)", "9223372036854775806"},
	{"mod(huge, most)", "1"},
	{"mod(least, 1)", "0"},
	{"mod(one, huge)", "has a number that is too large to calculate with"},
	{"div(least, -1)", "calculates more than an int can hold"},
	{"div(least, 2)", "-4611686018427387904"},
	{"div(huge, huge)", "1"},
	{"div(huge, 3)", "6148914691236517205"},
	{"div(one, huge)", "has a number that is too large to calculate with"},
	{"div(zero, least)", "0"},
	// Comparisons know the sign of a number and all of its bits.
	{"least < huge", "true"},
	{"huge > most", "true"},
	{"huge == -1", "false"},
	{"huge == most", "false"},
	{"tiny == -128", "true"},
	{"least == -9223372036854775807 - 1", "true"},
	{"huge in [-1]", "false"},
	{"most in sizes", "false"},
	{"huge in sizes", "true"},
	{"3 in sizes", "true"},
	// Floats are whole numbers up to 2^53, where the next one is not known any more.
	{"int(exact)", "9007199254740992"},
	{"int(beyond)", "has a float that is no whole number"},
	{"int(half)", "has a float that is no whole number"},
	{"int(half - half)", "0"},
	{"half < one", "true"},
	{"half + half == one", "true"},
	// Durations are numbers to Go and no whole numbers here: their unit would be lost.
	{"day > duration('1h')", "true"},
	{"day == duration('48h')", "true"},
	{"string(day)", "48h0m0s"},
	// Order is that of bytes and of numbers, whatever their types are.
	{"join(sort(words), '|')", "|E|e|é|\xff"},
	{"join(sort(words, 'desc'), '|')", "\xff|é|e|E|"},
	{"string(first(sort(sizes)))", "-9223372036854775808"},
	{"string(last(sort(sizes)))", "18446744073709551615"},
	{"max(huge, one)", "18446744073709551615"},
	{"min(huge, one)", "1"},
	{"max(tiny, least)", "-128"},
	{"max([one, huge, least])", "18446744073709551615"},
	{"min(sizes)", "-9223372036854775808"},
	{"max(half, one)", "1"},
	{"max([])", "<nil>"},
	{"max(words)", "compares what is no number"},
	{"len(uniq(concat(words, words)))", "5"},
	{"join(reverse(words), '|')", "|\xff|E|e|é"},
	{"len(take(words, most))", "5"},
	{"len(take(words, least))", "0"},
	{"get(words, most)", "<nil>"},
	{"get(words, least)", "<nil>"},
	{"get(words, -5)", "é"},
	{"get(words, -6)", "<nil>"},
	{"words[-6]", "asks a list of 5 elements for number -6"},
	{"words[5]", "asks a list of 5 elements for number 5"},
	{"len(words[least:most])", "5"},
	{"len(words[most:least])", "0"},
}

func TestFunctionsAtTheirEdges(t *testing.T) {
	roots := untyped(edges)
	for _, tt := range edgeOutcomes {
		if got := calculated(tt.text, roots, edges); got != tt.want {
			t.Errorf("%s = %q, want %q", tt.text, got, tt.want)
		}
	}
}
