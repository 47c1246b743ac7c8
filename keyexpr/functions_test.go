package keyexpr

import (
	"strings"
	"testing"
	"time"
)

// functionFacts has one of each type that functions meet, what is empty, and what is not there.
type functionFacts struct {
	Name, Empty, Blank, Uni string
	Opt, None               *string
	Tenant                  tenant
	N, Neg, Zero            int64
	U                       uint64
	I8                      int8
	Yes                     bool
	Tags, NoTags            []string
	Nums                    []int
	Bigs                    []uint64
	Tenants                 []tenant
	ByTenant                map[tenant]int
	Lines                   []line
	Any, AnyNil             any
	Anys                    []any
	Map                     map[string]string
	At, Never               time.Time
	Data                    []byte
	Ref                     uuid
	Nested                  [][]string
}

func newFunctionFacts(string) (any, error) {
	opt := "opt"
	return functionFacts{
		Name: "Ada Lovelace", Blank: "  \t", Uni: "Ünïcödé→", Opt: &opt, Tenant: "Acme", N: 42, Neg: -7, U: 1<<64 - 1, I8: -128, Yes: true,
		Tags: []string{"b", "a", "c", "a"}, Nums: []int{3, 1, 2}, Bigs: []uint64{1<<64 - 1, 5}, Tenants: []tenant{"t2", "t1"}, ByTenant: map[tenant]int{"t1": 1},
		Lines: []line{{"b", 1}, {"a", 2}, {"b", 3}}, Any: "any", Anys: []any{1, "x", nil, true}, Map: map[string]string{"k": "v"},
		At: time.Date(2026, 3, 4, 23, 30, 0, 0, time.FixedZone("", -5*3600)), Data: []byte{0xca, 0xfe}, Ref: uuid{1, 2},
		Nested: [][]string{{"p", "q"}, {"r"}, {}},
	}, nil
}

// What each function makes of usual values, of the ends of its range, and of what is not there: the key, or the whole sentence.
var functionOutcomes = []struct{ expr, want string }{
	// lower and upper map letters of all alphabets, and want a text.
	{"lower(req.Name)", "ada%20lovelace"},
	{"upper(req.Name)", "ADA%20LOVELACE"},
	{"upper(req.Uni)", "ÜNÏCÖDÉ→"},
	{"lower(req.Tenant)", "acme"},
	{"lower(req.Opt)", "opt"},
	{"lower(req.None)", "request: has nil where a string is wanted"},
	{"lower(req.Empty)", "request: is empty"},
	{"lower(req.Any)", "any"},
	{"lower(req.AnyNil)", "request: has nil where a string is wanted"},
	{"lower(req.Anys[0])", "request: has a value of type int where a string is wanted: use string(x)"},
	{"req.Name | lower() | upper()", "ADA%20LOVELACE"},
	// trim and its kin.
	{"trim(req.Blank)", "request: is empty"},
	{"trim(req.Blank + 'x ')", "x"},
	{"trim(req.Name, 'Ae')", "da%20Lovelac"},
	{"trim(req.Name, '')", "Ada%20Lovelace"},
	{"trimPrefix(req.Name, 'Ada ')", "Lovelace"},
	{"trimPrefix(req.Name, 'Bob')", "Ada%20Lovelace"},
	{"trimSuffix(req.Name, 'lace')", "Ada%20Love"},
	{"trimPrefix(' a')", "a"},
	{"trim(req.None)", "request: has nil where a string is wanted"},
	{"trim(req.Uni, '→Ü')", "nïcödé"},
	// Finding and replacing counts bytes, as Go does.
	{"indexOf(req.Name, 'L')", "4"},
	{"indexOf(req.Name, 'z')", "-1"},
	{"indexOf(req.Uni, '→')", "11"},
	{"lastIndexOf(req.Name, 'a')", "9"},
	{"replace(req.Name, 'a', 'o')", "Ado%20Loveloce"},
	{"replace(req.Name, '', '-')", "-A-d-a-%20-L-o-v-e-l-a-c-e-"},
	{"replace(req.Name, 'Ada', '')", "%20Lovelace"},
	{"replace(req.Name, ' ', req.None)", "request: has nil where a string is wanted"},
	{"hasPrefix(req.Name, 'Ada')", "true"},
	{"hasSuffix(req.Name, '')", "true"},
	{"req.Name contains 'Love'", "true"},
	{"req.Uni startsWith 'Ü'", "true"},
	{"req.Name endsWith req.Name", "true"},
	{"req.None contains 'x'", "false"},
	{"req.Name matches '^[A-Z][a-z]+ '", "true"},
	{"req.None matches '.+'", "false"},
	// split makes texts, and Go's empty ones among them.
	{"split(req.Name, ' ')[1]", "Lovelace"},
	{"split('a,,b', ',')[1] == ''", "true"},
	{"len(split('a,,b,,', ','))", "5"},
	{"len(split('', ','))", "1"},
	{"len(split('abc', ''))", "3"},
	{"split('a,b,c', ',', 2)[1]", "b,c"},
	{"len(split('a,b', ',', 0))", "0"},
	{"split(req.None, ',')[0]", "request: has nil where a string is wanted"},
	// join puts a text between, and refuses what is no text.
	{"join(req.Tags, '-')", "b-a-c-a"},
	{"join(req.Nums, '-')", "3-1-2"},
	{"join(req.NoTags, '-')", "request: is empty"},
	{"join(req.Tenants, ',')", "t2,t1"},
	{"join(req.Anys, ',')", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"join(map(req.Nested, len(#)), ',')", "2,1,0"},
	{"join(req.Tags, ',') == 'b,a,c,a'", "true"},
	{"join(['x'], ',')", "x"},
	// string spells as a hole does; int reads whole numbers only.
	{"string(req.N) + '!'", "42!"},
	{"string(req.Ref) + '!'", "01020000-0000-0000-0000-000000000000!"},
	{"string(req.Data) + '!'", "cafe!"},
	{"string(req.Yes) + '!'", "true!"},
	{"string(req.None) + '!'", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"string(req.Tenant) + '!'", "Acme!"},
	{"int('42')", "42"},
	{"int('-7')", "-7"},
	{"int('+7')", "7"},
	{"int('07')", "7"},
	{"int('7 ')", "request: has text that is no whole number"},
	{"int('')", "request: has text that is no whole number"},
	{"int('1e3')", "request: has text that is no whole number"},
	{"int('0x10')", "request: has text that is no whole number"},
	{"int('9223372036854775808')", "request: has text that is no whole number"},
	{"int(req.N)", "42"},
	{"int(req.U)", "request: has a number that is too large to calculate with"},
	{"int(2.0)", "2"},
	{"int(2.5)", "request: has a float that is no whole number"},
	{"int(req.Any)", "request: has text that is no whole number"},
	{"int(req.Yes)", "request: has a value of type bool where a whole number is wanted"},
	// Lengths and pieces.
	{"len(req.Name)", "12"},
	{"len(req.Uni)", "8"},
	{"len(req.Tags)", "4"},
	{"len(req.Map)", "1"},
	{"len(req.Any)", "3"},
	{"len(req.AnyNil)", "request: asks nil for its length"},
	{"len(req.Data)", "2"},
	{"req.Name[0:3]", "Ada"},
	{"req.Name[4:]", "Lovelace"},
	{"req.Name[-4:]", "lace"},
	{"req.Name[5:2] + 'x'", "request: is empty"},
	{"req.Name[0:99]", "Ada%20Lovelace"},
	{"req.Name[99:] + 'x'", "request: is empty"},
	{"req.Uni[0:2]", "Ü"},
	{"join(req.Tags[1:3], ',')", "a,c"},
	{"join(req.Tags[-2:], ',')", "c,a"},
	{"req.Any[1:]", "ny"},
	{"req.Anys[0][1:]", "request: takes a piece of what is neither text nor a list"},
	{"toBase64(req.Name)", "QWRhIExvdmVsYWNl"},
	{"toBase64(req.Empty)", "request: is empty"},
	// Whole numbers are exact, or an error.
	{"req.N + 1", "43"},
	{"req.N - 50", "-8"},
	{"req.N * -2", "-84"},
	{"req.N % 5", "2"},
	{"req.Neg % 5", "-2"},
	{"req.N % -5", "2"},
	{"req.N % 0", "start: nothing can be divided by 0"},
	{"req.N % (req.N - 42)", "request: divides by zero"},
	{"div(req.N, 0)", "start: nothing can be divided by 0"},
	{"div(req.N, req.N - 42)", "request: divides by zero"},
	{"req.Zero % 3", "0"},
	{"mod(req.Neg, 5)", "3"},
	{"mod(req.U, 10)", "5"},
	{"mod(req.N, 0)", "start: mod divides by 1 or more"},
	{"mod(req.N, -3)", "start: mod divides by 1 or more"},
	{"mod(req.N, req.N - 42)", "request: divides by what is not positive"},
	{"div(req.N, 5)", "8"},
	{"div(req.Neg, 2)", "-3"},
	{"div(req.U, 2)", "9223372036854775807"},
	{"div(req.U, 1)", "request: has a number that is too large to calculate with"},
	{"div(req.N, req.Zero)", "request: divides by zero"},
	{"div(req.U, -1)", "request: has a number that is too large to calculate with"},
	{"-req.N", "-42"},
	{"-req.Neg", "7"},
	{"-req.I8", "128"},
	{"req.U % 16", "15"},
	{"req.U + 1", "request: has a number that is too large to calculate with"},
	{"9223372036854775807 + req.Zero", "9223372036854775807"},
	{"9223372036854775807 + req.N", "request: calculates more than an int can hold"},
	{"-9223372036854775807 - req.N", "request: calculates more than an int can hold"},
	{"4611686018427387904 * 2", "request: calculates more than an int can hold"},
	{"-4611686018427387904 * 2", "-9223372036854775808"},
	{"3037000500 * 3037000500", "request: calculates more than an int can hold"},
	{"req.I8 * req.I8", "16384"},
	{"req.N in 1..50", "true"},
	{"req.N in [41, 42]", "true"},
	{"req.U == 18446744073709551615", "start: invalid integer literal: strconv.ParseInt: parsing \"18446744073709551615\": value out of range"},
	{"req.U > req.N", "true"},
	{"req.Neg < req.U", "true"},
	{"req.I8 == -128", "true"},
	{"req.N == 42.0", "true"},
	// Shards are the same everywhere.
	{"shard(req.Name, 16)", "0"},
	{"shard(req.N, 16)", "13"},
	{"shard(string(req.N), 16)", "13"},
	{"shard(req.I8, 16)", "3"},
	{"shard(req.Ref, 1000)", "333"},
	{"shard(req.Empty, 16)", "request: is empty"},
	{"shard(req.None, 16)", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"shard(req.N, 0)", "start: there are no shards: write how many, as in shard(x, 16)"},
	{"shard(req.N, -1)", "start: there are no shards: write how many, as in shard(x, 16)"},
	{"shard(req.N, req.N - 42)", "request: has no shards"},
	{"shard(req.Lines[0].SKU, 9223372036854775807)", "4477677635727087946"},
	// What stands for nil, for what is empty, and for what must not be.
	{"req.None ?? 'none'", "none"},
	{"req.Opt ?? 'none'", "opt"},
	{"req.Empty ?? 'none'", "request: is empty"},
	{"req.AnyNil ?? 'none'", "none"},
	{"req.Map.nope ?? 'none'", "none"},
	{"req.Map.k ?? 'none'", "v"},
	{"or(req.Empty, 'none')", "none"},
	{"or(req.None, req.Empty, req.Name)", "Ada%20Lovelace"},
	{"or(req.Zero, 7)", "0"},
	{"or(req.NoTags, req.Tags)[0]", "b"},
	{"or(req.None, req.Empty)", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"or(req.AnyNil, req.Any)", "any"},
	{"required(req.Name)", "Ada%20Lovelace"},
	{"required(req.Empty)", "request: is missing: it is nil, empty or zero"},
	{"required(req.Zero)", "request: is missing: it is nil, empty or zero"},
	{"required(req.Zero, 'order id')", "request: is missing: order id"},
	{"required(req.None, 'coupon')", "request: is missing: coupon"},
	{"required(req.Yes)", "true"},
	{"required(req.Ref)", "01020000-0000-0000-0000-000000000000"},
	{"required(req.Data)", "cafe"},
	{"required(req.NoTags)[0]", "request: is missing: it is nil, empty or zero"},
	// Times are spelt in UTC.
	{"fmtTime(req.At, '2006-01-02')", "2026-03-05"},
	{"fmtTime(req.At, '15:04')", "04:30"},
	{"fmtTime(req.Never, '2006')", "request: is empty"},
	{"fmtTime(req.Any, '2006')", "request: is no time, but of type string"},
	{"fmtTime(req.At, '')", "start: this layout is the same for all times: one of Go is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, trim(' '))", "request: is empty"},
	{"fmtTime(req.At, 'day')", "start: this layout is the same for all times: one of Go is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, 'Z07:00 MST')", "start: this layout is the same for all times: one of Go is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, 'YYYY-MM-DD')", "start: YYYY is no part of a layout of Go, which is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, '2006-MM-dd')", "start: MM is no part of a layout of Go, which is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, 'yyyyMMdd')", "start: yyyyMMdd is no part of a layout of Go, which is made of 2006-01-02 15:04:05"},
	{"fmtTime(req.At, '%Y-%m-%d')", "start: %Y is no part of a layout of Go, which is made of 2006-01-02 15:04:05"},
	// Lists.
	{"first(req.Tags)", "b"},
	{"last(req.Tags)", "a"},
	{"first(req.NoTags) ?? 'none'", "none"},
	{"last(req.NoTags)", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"get(req.Tags, 1)", "a"},
	{"get(req.Tags, -1)", "a"},
	{"get(req.Tags, 9) ?? 'none'", "none"},
	{"get(req.Map, 'k')", "v"},
	{"get(req.Map, 'nope') ?? 'none'", "none"},
	{"get(req.Lines, 0).SKU", "b"},
	{"join(take(req.Tags, 2), ',')", "b,a"},
	{"join(take(req.Tags, 99), ',')", "b,a,c,a"},
	{"len(take(req.Tags, 0))", "0"},
	{"join(reverse(req.Tags), ',')", "a,c,a,b"},
	{"join(concat(req.Tags, ['z']), ',')", "b,a,c,a,z"},
	{"join(concat(req.Tags, req.NoTags), ',')", "b,a,c,a"},
	{"join(flatten(req.Nested), ',')", "p,q,r"},
	{"len(flatten([req.Nested]))", "3"},
	{"join(uniq(req.Tags), ',')", "b,a,c"},
	{"len(uniq(req.Anys))", "4"},
	{"len(uniq(req.Lines))", "3"},
	{"len(uniq(req.Nested))", "request: has elements that can't be compared"},
	{"join(sort(req.Tags), ',')", "a,a,b,c"},
	{"join(sort(req.Tags, 'desc'), ',')", "c,b,a,a"},
	{"sort(req.Nums)[0]", "1"},
	{"sort(req.Nums, 'desc')[0]", "3"},
	{"sort(req.Anys)[0]", "request: sorts what is neither all text nor all numbers"},
	{"sort(req.Tags, 'up')[0]", "request: sorts by neither asc nor desc"},
	{"join(map(sortBy(req.Lines, .Qty, 'desc'), .SKU), ',')", "b,a,b"},
	{"join(map(sortBy(req.Lines, .SKU), string(.Qty)), ',')", "2,1,3"},
	{"max(req.Nums)", "3"},
	{"min(req.Nums)", "1"},
	{"max(req.N, req.Neg)", "42"},
	{"min(1, 2, 3)", "1"},
	{"max(req.NoTags)", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	// Loops.
	{"join(map(req.Lines, .SKU), ',')", "b,a,b"},
	{"join(map(req.Lines, .SKU + ':' + string(.Qty)), ',')", "b:1,a:2,b:3"},
	{"join(map(req.Tags, string(#index) + '=' + #), ',')", "0=b,1=a,2=c,3=a"},
	{"join(map(req.Nested, join(#, '+') ), ',')", "request: is empty"},
	{"join(map(filter(req.Lines, .Qty > 1), .SKU), ',')", "a,b"},
	{"find(req.Lines, .Qty > 1).SKU", "a"},
	{"find(req.Lines, .Qty > 9)?.SKU ?? 'none'", "none"},
	{"findLast(req.Lines, .SKU == 'b').Qty", "3"},
	{"findIndex(req.Tags, # == 'c')", "2"},
	{"findIndex(req.Tags, # == 'z') ?? -1", "-1"},
	{"any(req.Tags, # == 'a')", "true"},
	{"all(req.Tags, # != 'z')", "true"},
	{"none(req.Tags, # == 'z')", "true"},
	{"one(req.Tags, # == 'b')", "true"},
	{"one(req.Tags, # == 'a')", "false"},
	{"count(req.Tags, # == 'a')", "2"},
	{"any(req.NoTags, true)", "false"},
	{"all(req.NoTags, false)", "true"},
	{"count(req.NoTags, true)", "0"},
	{"any(req.Any, true)", "request: has a value of type string where a list is wanted"},
	{"map(req.AnyNil, #)", "request: is nil; if it may be, write what stands for it: ?? \"none\", or ?: 'none' in Java's text"},
	{"any(req.Nested, any(#, # == 'r'))", "true"},
	{"count(req.Lines, .SKU in req.Tags)", "3"},
	// Membership.
	{"'a' in req.Tags", "true"},
	{"'z' in req.Tags", "false"},
	{"'k' in req.Map", "true"},
	{"'t1' in req.Tenants", "true"},
	{"req.Tenant in ['Acme']", "true"},
	{"req.N in req.Nums", "false"},
	{"5 in req.Bigs", "true"},
	{"'x' in req.Anys", "true"},
	{"1 in req.Anys", "true"},
	{"'a' in req.AnyNil", "false"},
	{"'a' in req.Any", "request: looks for something in a value of type string"},
	{"'t3' in req.Tenants", "false"},
	{"'t1' in req.ByTenant", "true"},
	{"req.Tenant in req.ByTenant", "false"},
	{"req.Tenants[0] in req.Tenants", "true"},
}

func TestFunctions(t *testing.T) {
	roots := Roots{"req": TypeFor[functionFacts]()}
	for _, tt := range functionOutcomes {
		got := outcome("#{"+tt.expr+"}", roots, newFunctionFacts)
		got = strings.Replace(got, "keyexpr: unusable value: "+tt.expr+" ", "", 1)
		if rest, ok := strings.CutPrefix(got, "start: keyexpr: "); ok {
			reason, _, _ := strings.Cut(rest, " (at offset")
			got = "start: " + reason
		}
		if got != tt.want {
			t.Errorf("%s comes to %q, want %q", tt.expr, got, tt.want)
		}
	}
}
