package keyexpr

import (
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

type stockLine struct{ Warehouse, SKU string }

type stockRequest struct {
	A, B, C string
	Lines   []stockLine
	Tags    []string
	Nested  [][]string
}

var stockRoots = Roots{"req": TypeFor[stockRequest]()}

func stockKeys(t testing.TB, text string, req stockRequest) []string {
	t.Helper()
	tmpl, err := Parse(text, stockRoots)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	keys, err := expandOf(t, tmpl, req)
	if err != nil {
		t.Fatalf("Expand(%q): %v", text, err)
	}
	return keys
}

// together are ways to put values together, and the keys that they make of the request in TestParts.
var together = []struct{ text, want string }{
	// + in a hole is what holes beside each other are.
	{"#{req.A + ':' + req.B}", "a%3Ab:c/d"},
	{"#{req.A}:#{req.B}", "a%3Ab:c/d"},
	{"#{req.A + '/' + req.B + '/' + req.C}", "a:b/c%2Fd/e,f"},
	{"#{'x' + req.A}", "xa:b"},
	{"#{'x' + (req.A + ':') + req.B}", "xa%3Ab:c/d"},
	{"#{req.A + ':' + req.B}/#{req.C}", "a%3Ab:c%2Fd/e,f"},
	{"#{'n' + string(req.A) + ':'}", "na%3Ab:"},
	{"#{'{' + req.A + '}:' + req.B}", "{a:b}:c/d"},
	// So is join, whose values may also be followed by what is behind it.
	{"#{join(req.Tags, ',')}", "x%2Cy,z"},
	{"#{join(req.Tags, ',')}:#{req.A}", "x%2Cy,z:a:b"},
	{"#{join(req.Tags, '--')}", "x,y--z"},
	{"#{join(map(req.Lines, .SKU), ',')}", "s%2C1,s2"},
	{"#{join(map(req.Lines, .Warehouse + ':' + .SKU), ',')}", "w%3A1:s%2C1,w2:s2"},
	{"#{join(map(req.Nested, join(#, ',')), ';')}", "p%2Cq,r;s%3Bt"},
	{"t#{'[' + join(req.Tags, ',') + ']'}", "t[x%2Cy,z]"},
	// And the elements of a list that makes keys.
	{"#{map(req.Lines, .Warehouse + ':' + .SKU)}", "w%3A1:s,1 w2:s2"},
	{"#{map(req.Lines, 'stock:' + .SKU)}", "stock:s,1 stock:s2"},
	{"stock:#{map(req.Lines, .SKU)}", "stock:s,1 stock:s2"},
	{"stock:#{map(req.Lines, .SKU)}:x", "stock:s,1:x stock:s2:x"},
	{"#{req.A}:#{map(req.Lines, .Warehouse)}:#{req.B}", "a%3Ab:w%3A1:c/d a%3Ab:w2:c/d"},
	{"#{[req.A + ':' + req.B, req.C]}", "a%3Ab:c/d e,f"},
	{"#{concat(map(req.Lines, 'l:' + .SKU), req.Tags)}", "l:s,1 l:s2 x,y z"},
	{"#{uniq(map(req.Lines, .Warehouse + ':' + .SKU))}", "w%3A1:s,1 w2:s2"},
	{"#{sort(reverse(map(req.Lines, .SKU)))}", "s,1 s2"},
	// string is for +, and required is for what may be empty: neither makes one value of a sum.
	{"#{string(req.A + ':' + req.B)}", "a%3Ab:c/d"},
	{"#{'x' + string(req.A + ':' + req.B)}", "xa%3Ab:c/d"},
	{"#{required(req.A + ':' + req.B)}", "a%3Ab:c/d"},
	{"#{join(map(req.Lines, string(.Warehouse + ':' + .SKU)), ',')}", "w%3A1:s%2C1,w2:s2"},
	// In anything else a sum is one value: its text says what it was made of, and is then escaped as any text is.
	{"#{lower(req.A + ':' + req.B)}", "a%253ab:c/d"},
	{"#{req.A == 'x' ? 'y' : req.A + ':' + req.B}", "a%253Ab:c/d"},
	{"#{if req.A == 'x' {'y'} else {req.A + ':' + req.B}}", "a%253Ab:c/d"},
	{"#{req.Tags[5:][0:1] == [] ? req.A + ':' + req.B : 'x'}:pay", "a%253Ab%3Ac/d:pay"},
	{"#{or('', req.A + ':' + req.B)}", "a%253Ab:c/d"},
	{"#{let x = req.A + ':' + req.B; x}", "a%253Ab:c/d"},
	{"#{let x = req.A; x + ':' + req.B}", "a%253Ab:c/d"},
	{"#{filter(map(req.Lines, .Warehouse + ':' + .SKU), # != '')}", "w%253A1:s,1 w2:s2"},
	{"#{take(map(req.Lines, .Warehouse + ':' + .SKU), 1)}", "w%253A1:s,1"},
	// A sum of one value and literals needs no escapes to be read.
	{"#{lower('X' + req.A)}", "xa:b"},
	{"#{lower('X:' + req.A)}:y", "x%3Aa%3Ab:y"},
	{"#{'x:' + lower(req.A)}:y", "x:a%3Ab:y"},
	// What is taken apart inside of a value is put together in the same way, so that these are spellings of one key.
	{"#{map(filter(req.Lines, .SKU != ''), .Warehouse + ':' + .SKU)}", "w%3A1:s,1 w2:s2"},
	{"#{map(take(req.Lines, 1), .Warehouse + ':' + .SKU)}", "w%3A1:s,1"},
	// raw is as it is, all through.
	{"#{raw(req.A + ':' + req.B)}", "a:b:c/d"},
	{"#{raw(join(req.Tags, ','))}", "x,y,z"},
	{"#{raw(map(req.Lines, .Warehouse + ':' + .SKU))}", "w2:s2 w:1:s,1"},
	{"#{raw(req.A) + ':' + req.B}", "a:b:c/d"},
	{"#{lower('X' + lower(req.A + ':' + req.B))}", "xa%253ab:c/d"},
	// Compared, counted and given to functions of the user's, it is as it is.
	{"#{req.A + ':' + req.B == 'a:b:c/d'}", "true"},
	{"#{req.A + ':' + req.B contains 'b:c'}", "true"},
}

// What puts values together keeps them apart: each is escaped for what follows it.
func TestParts(t *testing.T) {
	req := stockRequest{
		A: "a:b", B: "c/d", C: "e,f", Lines: []stockLine{{"w:1", "s,1"}, {"w2", "s2"}}, Tags: []string{"x,y", "z"},
		Nested: [][]string{{"p,q", "r"}, {"s;t"}},
	}
	for _, tt := range together {
		if got, want := stockKeys(t, tt.text, req), strings.Fields(tt.want); !slices.Equal(got, want) {
			t.Errorf("Expand(%q) = %q, want %q", tt.text, got, want)
		}
	}
}

// Why a choice is one value. If its branches were taken apart as a hole is, these two orders would make one key, x:y:z: nobody
// could say where the choice ends.
func TestChoicesAreOneValue(t *testing.T) {
	const text = "#{req.C == 'both' ? req.A + ':' + req.B : req.A}:#{req.C}"
	both := stockRequest{A: "x", B: "y", C: "both"}
	one := stockRequest{A: "x", B: "-", C: "y:both"}
	if got := stockKeys(t, text, both); !slices.Equal(got, []string{"x%3Ay:both"}) {
		t.Errorf("Expand(%q) = %q", text, got)
	}
	if got := stockKeys(t, text, one); !slices.Equal(got, []string{"x:y:both"}) {
		t.Errorf("Expand(%q) = %q", text, got)
	}
}

// Values behind functions are told apart as well: a digest, a case or a choice forgets what its own rule is, and not where one
// value ends and the next begins.
func TestPartsWithinFunctionsAreToldApart(t *testing.T) {
	for _, form := range []string{
		"#{%s}",
		"#{lower(%s)}",
		"#{upper(%s)}",
		"#{hash(%s)}",
		"#{toBase64(%s)}",
		"#{trim(%s)}",
		"#{string(%s)}",
		"#{required(%s)}",
		"#{or(%s, 'x')}",
		"#{(%s) ?? 'x'}",
		"#{len(req.Tags) == 0 ? (%s) : 'x'}",
		"#{let x = %s; x}",
		"#{lower('x' + lower(%s))}",
		"#{[%s]}",
		"#{first([%s])}",
		"#{map(['x'], %s)}",
		"#{reverse(map(['x'], %s))}",
		"#{filter(map(['x'], %s), true)}",
		"#{join([%s], ',')}",
		"#{join(map(['x'], %s), ',')}",
		"#{replace(%s, 'q', 'r')}",
		"#{shard(%s, 1000000007)}",
		"x#{%s};y",
		"x#{lower(%s)}:y",
	} {
		for _, sum := range []string{"req.A + ':' + req.B", "join([req.A, req.B], ':')", "'-' + req.A + ':' + req.B + '-'"} {
			text := strings.ReplaceAll(form, "%s", sum)
			seen := map[string]stockRequest{}
			for _, req := range []stockRequest{
				{A: "a:b", B: "c"},
				{A: "a", B: "b:c"},
				{A: "a%3Ab", B: "c"},
				{A: "a", B: "b%3Ac"},
				{A: "a%253Ab", B: "c"},
				{A: "a%3ab", B: "d"},
				{A: "a:", B: ":c"},
				{A: "a::", B: "c"},
				{A: "a", B: "::c"},
			} {
				key := stockKeys(t, text, req)[0]
				if other, ok := seen[key]; ok {
					t.Errorf("%q makes %q of %q, %q and of %q, %q", text, key, req.A, req.B, other.A, other.B)
				}
				seen[key] = req
			}
		}
	}
}

// Values that could not be told apart are refused at start.
func TestPartsThatRunTogether(t *testing.T) {
	for _, tt := range []struct{ text, reason string }{
		{"#{req.A}#{req.B}", "two holes without a literal between them"},
		{"#{req.A + req.B}", "two values without text between them"},
		{"#{req.A + '' + req.B}", "two values without text between them"},
		{"#{'x' + req.A + req.B}", "two values without text between them"},
		{"#{req.A + string(req.B)}", "two values without text between them"},
		{"#{map(req.Lines, .Warehouse + .SKU)}", "two values without text between them"},
		{"#{lower(req.A + req.B)}", "two values without text between them"},
		{"#{req.A + join(req.Tags, ',')}", "two values without text between them"},
		{"#{join(req.Tags)}", "join needs a text"},
		{"#{join(req.Tags, '')}", "join needs a text"},
		{"#{join(req.Tags, req.A)}", "must be written out"},
		{"#{join(req.Tags, ':')}:#{req.A}", "begins like what is between its values"},
		{"#{join(map(req.Nested, join(#, ',')), ',')}", "begins like what is between its values"},
		{"#{req.Tags}:#{req.Tags}", "a second list"},
		// A % next to a value would look like an escape, or like the digest of a long key.
		{"#{req.A}%#{req.B}", "would look like an escape"},
		{"#{req.A + '%' + req.B}", "would look like an escape"},
		{"#{join(req.Tags, '%')}", "would look like an escape"},
		{"#{join(req.Tags, ',')}%", "would look like an escape"},
		{"#{map(req.Lines, .SKU)}%", "would look like an escape"},
		{"#{['x:', req.A]}%", "would look like an escape"},
		{"x%#{req.A}", "could look like the digest"},
		{"#{'x%' + req.A}", "could look like the digest"},
		{"#{join(req.Tags, ',%')}", "could look like the digest"},
		{"x%~#{req.A}", "marks the digest of a long key"},
		{"#{req.A}:%~", "marks the digest of a long key"},
		{"#{req.A + ':%~'}", "marks the digest of a long key"},
		{"#{map(req.Lines, .SKU + ':%~')}", "marks the digest of a long key"},
		{"#{join(req.Tags, '%~')}", "escape"},
	} {
		_, err := Parse(tt.text, stockRoots)
		if err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Parse(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		text, key string
		want      []string // nil for no match
	}{
		{"order:#{req.A}", "order:7", []string{"7"}},
		{"order:#{req.A}", "order:", nil},
		{"order:#{req.A}", "other:7", nil},
		{"order:#{req.A}:x", "order:7", nil},
		{"order:#{req.A}:#{req.B}", "order:a%3Ab:c", []string{"a:b", "c"}},
		{"order:#{req.A}:#{req.B}", "order:a:b:c", []string{"a", "b:c"}},
		{"order:#{req.A}:#{req.B}", "order:a%:c", nil},
		{"order:#{req.A}:#{req.B}", "order:a%zz:c", nil},
		{"order:#{req.A}:#{req.B}", "order:%61:c", nil}, // nobody escapes an a
		{"#{join(req.Tags, ',')};#{req.A}", "x,y%3B;z", []string{"x", "y;", "z"}},
		{"stock:#{map(req.Lines, .Warehouse + ':' + .SKU)}", "stock:w%3A:s", []string{"w:", "s"}},
		{"#{[req.A + ':x', req.B + ':y']}", "7:y", []string{"7"}},
		{"#{raw(req.A)}", "7", nil},
		{"order:#{req.A}", "order:" + strings.Repeat("x", 440) + run.DigestMark + strings.Repeat("0", 64), nil},
	} {
		tmpl, err := Parse(tt.text, stockRoots)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := tmpl.Match(tt.key); ok != (tt.want != nil) || !slices.Equal(got, tt.want) {
			t.Errorf("Match(%q) by %q = %q, %v, want %q", tt.key, tt.text, got, ok, tt.want)
		}
	}
}

// fakeMessage is like a protobuf message whose fields only getters read.
type fakeMessage struct {
	name string
	set  bool
}

func (*fakeMessage) ProtoReflect() int  { return 0 }
func (*fakeMessage) String() string     { return "for people" }
func (m *fakeMessage) GetName() string  { return m.name }
func (m *fakeMessage) HasName() bool    { return m.set }
func (m *fakeMessage) SetName(s string) { m.name = s }

// The String of a message has other blanks in each build of a program, and a text for no message at all.
func TestStringOfAMessage(t *testing.T) {
	type request struct {
		Message *fakeMessage
		Any     any
	}
	roots := Roots{"req": TypeFor[request]()}
	for _, text := range []string{"order:#{req.Message.String()}", "order:#{req.Message?.String()}", "order:#{[req.Message][0].String()}", "#{map([req.Message], .String())}"} {
		if _, err := Parse(text, roots); err == nil || !strings.Contains(err.Error(), "is for people") {
			t.Errorf("Parse(%q) = %v, want it refused", text, err)
		}
	}
	if _, err := ParseCondition(`req.Message.String() == "x"`, roots); err == nil {
		t.Error("a condition may ask for it")
	}
	for _, text := range []string{"order:#{req.Any}", "order:#{string(req.Any)}"} {
		tmpl, err := Parse(text, roots)
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := expandOf(t, tmpl, request{Any: &fakeMessage{}}); err == nil {
			t.Errorf("%s makes %q of a message", text, keys)
		}
	}
}

// What has nothing to hash is refused, at start where the type is known.
func TestHashRefuses(t *testing.T) {
	type hidden struct{ a string }
	type request struct {
		Hidden hidden
		Inner  struct{ H hidden }
		List   []hidden
		Call   func()
		Pipe   chan int
		Any    any
	}
	roots := Roots{"req": TypeFor[request]()}
	for _, field := range []string{"Hidden", "Inner", "List", "Call", "Pipe"} {
		if _, err := Parse("#{hash(req."+field+")}", roots); err == nil || !strings.Contains(err.Error(), "what hash gets") {
			t.Errorf("hash(req.%s) = %v, want it refused at start", field, err)
		}
	}
	tmpl, err := Parse("#{hash(req.Any)}", roots)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{hidden{"x"}, []any{hidden{"x"}}, func() {}, make(chan int), nil, ""} {
		if keys, err := expandOf(t, tmpl, request{Any: v}); err == nil {
			t.Errorf("hash(%#v) = %q, want an error", v, keys)
		}
	}
}
