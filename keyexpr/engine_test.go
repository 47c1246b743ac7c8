package keyexpr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// outcome is what a template comes to: the key, or "start: …" or "request: …" with a part of the error.
func outcome(text string, roots Roots, facts Facts, opts ...Option) string {
	tmpl, err := Parse(text, roots, append(opts, OneKey())...) // which is not what these are about
	return outcomeIn(context.Background(), tmpl, err, facts)
}

func outcomeIn(ctx context.Context, tmpl *Template, err error, facts Facts) string {
	if err != nil {
		return "start: " + err.Error()
	}
	keys, err := tmpl.Expand(ctx, facts)
	if err != nil {
		return "request: " + err.Error()
	}
	return strings.Join(keys, " ")
}

// agrees reports whether an outcome is as wanted: keys are equal, errors contain what is wanted of them.
func agrees(got, want string) bool {
	phase, reason, ok := strings.Cut(want, ": ")
	if !ok || phase != "start" && phase != "request" {
		return got == want
	}
	return strings.HasPrefix(got, phase+": ") && strings.Contains(got, reason)
}

type codeName string

type shelf struct {
	ID       int
	Big      uint64
	Name     string
	Code     codeName
	Opt      *string
	Next     *shelf
	List     []line
	Names    []string
	Map      map[string]string
	Anys     map[string]any
	Data     []byte
	At       time.Time
	Float    float64
	Any      any
	Registry map[string]*shelf
	Small    map[uint8]string
	ByCode   map[codeName]string
}

func (s *shelf) GetName() string { return s.Name }

func (s *shelf) Rename(to string) string { s.Name = to; return to }

func shelfFacts(root string) (any, error) {
	return &shelf{
		ID: 7, Big: 1<<64 - 1, Name: "ab", Code: "acme", List: []line{{"b", 1}, {"a", 2}}, Names: []string{"n1", "n2"},
		Map: map[string]string{"k": "v"}, Anys: map[string]any{"k": 1, "f": 1.5}, Data: []byte("raw"),
		At: time.Date(2026, 3, 4, 23, 0, 0, 0, time.FixedZone("", -5*3600)), Float: 1e21,
		Small: map[uint8]string{44: "x", 255: "y"}, ByCode: map[codeName]string{"acme": "c"},
	}, nil
}

// Each row is a feature of SpringEL, and what has its place here.
var features = []struct{ name, text, want string }{
	{"1 string literal", "#{'a' + \"b\" + `c`}", "abc"},
	{"2 number literals", "#{42 + 0x2A + 0b1 + 0o7}", "92"},
	{"2 float literal", "#{1e3}", "start: is a float"},
	{"3 null", "#{nil}", "start: nil makes no key"},
	{"3 booleans", "#{true}", "true"},
	{"4 argument by name", "#{req.Name}", "ab"},
	{"4 argument with a hash", "#{#user}", "start: names have no # here: write user"},
	{"5 argument by position", "#{p0}", "start: unknown name p0"},
	{"6 root metadata", "#{method}", "start: unknown name method"},
	{"7 root itself", "#{$env}", "start: $env is not here"},
	{"8 result", "#{result}", "start: unknown name result"},
	{"9 property", "#{req.Name}:#{req['Name']}:#{req.name}", "ab:ab:ab"},
	{"9 property that is not there", "#{req.Naem}", "start: did you mean Name?"},
	{"10 safe navigation stops the whole chain", "#{req.Next?.Next.Name ?? 'none'}", "none"},
	{"11 safe method call", "#{req.Next?.GetName() ?? 'none'}", "none"},
	{"12 safe index", "#{req.Next?.List?.[0].SKU ?? 'none'}", "none"},
	{"12 index beyond the end", "#{req.List[9].SKU}", "request: list of 2 elements"},
	{"12 get beyond the end", "#{get(req.Names, 9) ?? 'none'}", "none"},
	{"13 list index", "#{req.Names[0]}:#{req.Names[-1]}:#{join(req.Names[0:1], '/')}", "n1:n2:n1"},
	{"14 map index", "#{req.Map['k']}:#{req.Map.k}", "v:v"},
	{"14 missing entry of a map of strings", "#{req.Map.nope}", "request: is nil"},
	{"14 missing entry of a map of any", "#{req.Anys.nope}", "request: is nil"},
	{"15 string index", "#{req.Name[0]}", "start: a text has no elements"},
	{"15 string slice", "#{req.Name[0:1]}", "a"},
	{"16 property by name", "#{req[\"Name\"]}", "ab"},
	{"17 method call", "#{req.GetName()}", "ab"},
	{"17 method with effects", "#{req.Rename('x')}", "start: only methods without arguments"},
	{"17 methods of strings", "#{upper(req.Name)}:#{req.Name[1:]}", "AB:b"},
	{"18 varargs", "#{or(req.Opt, '', req.Name)}", "ab"},
	{"19 static types", "#{T(java.lang.Math).abs(1)}", "start: unknown function T"},
	{"19 functions instead", "#{tenantOf(req.ID)}", "t7"},
	{"20 constructors", "#{new X()}", "start: unexpected \"X\""},
	{"21 beans", "#{@svc.tenant()}", "start: unrecognized character"},
	{"22 ternary", "#{req.ID > 5 ? 'big' : 'small'}:#{if req.ID > 5 {'b'} else {'s'}}", "big:b"},
	{"23 Elvis", "#{req.Name ?: 'x'}", "start: use or(a, b)"},
	{"23 or is Elvis", "#{or(req.Opt, 'x')}:#{or('', 'y')}", "x:y"},
	{"23 ?? is for nil alone", "#{'' ?? 'x'}", "request: is empty"},
	{"24 equality", "#{req.Code == 'acme'}:#{req.ID != 7}:#{'a' < 'b'}", "true:false:true"},
	{"24 textual operators", "#{req.ID eq 7}", "start: unexpected \"eq\""},
	{"25 logic", "#{true and not false || false}", "true"},
	{"26 arithmetic", "#{req.ID * 2 - 1}:#{req.ID % 4}:#{div(req.ID, 2)}", "13:3:3"},
	{"26 division", "#{req.ID / 2}", "start: use div(a, b)"},
	{"26 power", "#{req.ID ** 2}", "start: makes a float"},
	{"27 string operators", "#{'a' * 3}", "start: * is not for string and int"},
	{"28 concatenation does not coerce", "#{'o:' + req.ID}", "start: + does not put string and int together"},
	{"28 concatenation with string", "#{'o:' + string(req.ID)}", "o:7"},
	{"28 concatenation with any", "#{'o:' + req.Anys.k}", "o:1"},
	{"29 regex", "#{req.Name matches '^a'}", "true"},
	{"29 bad regex", "#{req.Name matches '('}", "start: missing closing"},
	{"30 between", "#{req.ID in 1..9}:#{1 <= req.ID <= 9}", "true:true"},
	{"31 instanceof", "#{type(req.ID)}", "start: type is not allowed"},
	{"32 membership", "#{req.ID in [1, 7]}:#{'k' in req.Map}", "true:true"},
	{"33 selection", "#{join(map(filter(req.List, .Qty > 1), .SKU), ',')}", "a"},
	{"33 selection of a map", "#{len(filter(req.Map, true))}", "start: takes only array"},
	{"34 first and last match", "#{find(req.List, .Qty > 0).SKU}:#{findLast(req.List, .Qty > 0).SKU}", "b:a"},
	{"34 last match within a call", "#{lower(findLast(req.List, .Qty > 0).SKU)}", "a"},
	{"35 projection", "#{map(req.List, .SKU)}", "a b"},
	{"35 projection with index", "#{map(req.List, string(#index) + ':' + .SKU)}", "0:b 1:a"},
	{"36 safe projection", "#{join(map(req.Next?.List ?? [], .SKU), ',') == ''}", "true"},
	{"37 inline list", "#{[1, 2]}", "1 2"},
	{"37 inline map", "#{ {a: 'x'}.a }", "x"},
	{"38 variables", "#{let x = req.Name; x + ':' + x}", "ab:ab"},
	{"39 functions", "#{tenantOf(1)}", "t1"},
	{"40 assignment", "#{req.Name = 'x'}", "start: unexpected \"=\""},
	{"41 templates", "order-#{req.ID}", "order-7"},
	{"42 optional", "#{'u:' + req.Opt}", "request: is nil"},
	{"43 conversion of the result", "#{req.Code}", "acme"},
	{"44 dates", "#{fmtTime(req.At, '2006-01-02')}", "2026-03-05"},
	{"44 now", "#{now()}", "start: never the same twice"},
	{"45 other lists", "#{uniq(concat(req.Names, ['n1', 'x']))}", "n1 n2 x"},
	{"45 uniq of lists", "#{len(uniq([[1], [1]]))}", "request: can't be compared"},
	{"45 base64", "#{toBase64(req.Name)}", "YWI="},
	{"45 pipes", "#{req.Name | upper() | trim()}", "AB"},
}

func TestSpELFeatureByFeature(t *testing.T) {
	tenantOf := Func("tenantOf", func(ctx context.Context, id int64) (string, error) { return fmt.Sprint("t", id), ctx.Err() })
	for _, tt := range features {
		if got := outcome(tt.text, Roots{"req": TypeFor[*shelf]()}, shelfFacts, tenantOf); !agrees(got, tt.want) {
			t.Errorf("%s: %q comes to %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}

// Each row is a trap of the engine.
func TestTraps(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"string of nil", "u:#{string(req.Next?.Name)}", "request: is nil"},
		{"missing header", "#{header.Nope}", "request: is nil"},
		{"nil where a string is expected", "#{req.Next?.Name}", "request: is nil"},
		{"named string as result", "#{req.Code}", "acme"},
		{"named string in a concatenation", "#{'t:' + req.Code}", "t:acme"},
		{"named string compared", "#{req.Code == 'acme'}", "true"},
		{"named string matched", "#{req.Code matches '^ac'}:#{req.Code startsWith 'ac'}:#{req.Code in ['acme']}", "true:true:true"},
		{"named string as argument", "#{upper(req.Code)}:#{len(req.Code)}", "ACME:4"},
		{"uint64 % 16", "#{req.Big % 16}:#{mod(req.Big, 16)}:#{div(req.Big, 16)}", "15:15:1152921504606846975"},
		{"uint64 compared", "#{req.Big > 5}:#{req.Big == -1}", "true:false"},
		{"division is float", "#{int(9007199254740993 / 1)}", "start: use div(a, b)"},
		{"exact division", "#{div(9007199254740993, 1)}", "9007199254740993"},
		{"overflow by +", "#{9223372036854775807 + 1}", "request: more than an int can hold"},
		{"overflow by *", "#{9223372036854775807 * 2}", "request: more than an int can hold"},
		{"overflow by -", "#{-9223372036854775807 - 2}", "request: more than an int can hold"},
		{"bytes", "#{req.Data}:#{string(req.Data)}", "726177:726177"},
		{"time", "#{req.At}", "start: use fmtTime"},
		{"string of a time", "#{string(req.At)}", "start: use fmtTime"},
		{"float", "#{req.Float}", "start: is a float"},
		{"string of a float", "#{string(req.Float)}", "start: is a float"},
		{"float of a map", "#{req.Anys.f}", "request: is a float"},
		{"keys of a map", "#{join(keys(req.Map))}", "start: a map has no order"},
		{"values of a map", "#{join(values(req.Map))}", "start: a map has no order"},
		{"pairs of a map", "#{toPairs(req.Map)}", "start: a map has no order"},
		{"toJSON", "#{toJSON(req.Map)}", "start: use hash(x)"},
		{"now", "#{string(now())}", "start: never the same twice"},
		{"undefined variable", "#{reqq.Name}", "start: did you mean req?"},
		{"panic in a method", "#{req.Next.GetName()}", "request: panicked: runtime error: invalid memory address"},
		{"reduce", "#{reduce(1..24, #acc + #acc, 'aaaaaaaa')}", "start: reduce is not allowed"},
		{"repeat", "#{repeat('a', 1000000)}", "start: repeat is not allowed"},
		{"entry by a number that does not fit", "#{req.Small[300] ?? 'none'}", "start: cannot use int"},
		{"entry of any by a number that does not fit", "#{req.Any[300] ?? 'none'}:#{req.Any[-1] ?? 'none'}:#{req.Any[44]}", "none:none:x"},
		{"entry by a number", "#{req.Small[44]}:#{lower(req.Small[44])}", "x:x"},
		{"entry by a named string", "#{req.Map[req.Code] ?? 'none'}:#{req.ByCode[req.Code]}:#{req.ByCode['acme']}:#{upper(req.ByCode.acme)}", "none:c:c:C"},
		{"nil entry on the way", "#{req.Registry.nope.Name}", "request: is nil"},
	} {
		facts := func(root string) (any, error) {
			if root == "header" {
				return lookupOf(nil), nil
			}
			v, err := shelfFacts(root)
			v.(*shelf).Any = v.(*shelf).Small
			return v, err
		}
		if got := outcome(tt.text, Roots{"req": TypeFor[*shelf](), "header": AnyName()}, facts); !agrees(got, tt.want) {
			t.Errorf("%s: %q comes to %q, want %q", tt.name, tt.text, got, tt.want)
		}
	}
}

var keyFunctions = []struct{ text, want string }{
	{"#{hash(req.ID)}", "d53bd0f7aaf1c9aa68a292e55ed6df6a"},
	{"#{hash(req.Code) == hash('c')}", "true"},
	{"#{hash(req.In) == hash(req.In)}", "true"},
	{"#{len(hash(req.In))}", "32"},
	{"#{hash(req.Zero)}", "request: is empty"},
	{"#{hash(req.Opt)}", "request: is empty"},
	{"#{hash(req.At)}", "start: use fmtTime"},
	{"#{hash()}", "start: 1 argument"},
	{"#{shard(req.ID, 16)}", "13"},
	{"#{shard(req.ID, 1)}:#{shard(req.U, 1)}", "0:0"},
	{"#{shard(req.ID, 0)}", "start: no shards"},
	{"#{shard(req.Zero, 3)}", "request: is empty"},
	{"#{shard(req.In, 3)}", "start: is a struct"},
	{"#{shard(req.ID, 'x')}", "start: no whole number"},
	{"#{mod(req.N, 3)}:#{mod(req.U, 10)}:#{mod(7, 3)}", "2:3:1"},
	{"#{mod(req.N, 0)}", "start: mod divides by 1 or more"},
	{"#{mod(req.ID, 3)}", "start: no whole number"},
	{"#{div(req.N, 2)}:#{div(req.U, 2)}:#{div(7, 2)}", "-3:4611686018427387906:3"},
	{"#{div(req.N, 0)}", "start: divided by 0"},
	{"#{div(req.U, req.N - req.N)}", "request: divides by zero"},
	{"#{div(req.U, 1)}", "request: too large"},
	{"#{or(req.Zero, req.Code)}:#{or(req.Opt, req.Zero, 'x')}", "c:x"},
	{"#{or(req.Opt, req.Zero)}", "request: is nil"},
	{"#{or(req.ID)}", "start: at least 2"},
	{"#{true or (false)}:#{or (req.Zero, 'y')}:#{req.Zero | or('z')}", "true:y:z"},
	{"#{required(req.ID, 'order id')}", "42"},
	{"#{required(req.Zero, 'order id')}", "request: is missing: order id"},
	{"#{required(req.ID, req.Code)}", "start: must be written out"},
	{"#{fmtTime(req.At, '20060102T15')}", "20260102T03"},
	{"#{fmtTime(req.Never, '2006')}", "request: is nil"},
	{"#{fmtTime(req.ID, '2006')}", "start: takes a time"},
	{"#{raw(req.Names[1])}%:#{req.ID}", "a{%:42"},
	{"#{raw(req.In)}", "start: is a struct"},
	{"#{raw(req.Zero)}", "request: is empty"},
	{"#{raw(req.Opt)}", "request: is nil"},
	{"#{req.Num + 1 == 13}", "start: + does not put string and int together"},
	{"#{req.Num}", "12"},
}

// functionRequest is what keyFunctions are about.
type functionRequest struct {
	ID    string
	Code  codeName
	N     int8
	U     uint64
	Zero  string
	Opt   *string
	At    time.Time
	Never *time.Time
	In    functionInner
	Num   json.Number
	Names []string
}

type functionInner struct {
	B map[string]int
	A []float64
}

func newFunctionRequest(id string, n int8) functionRequest {
	return functionRequest{
		ID: id, Code: "c", N: n, U: 1<<63 + 5, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Num: "12",
		In: functionInner{B: map[string]int{"y": 2, "x": 1}, A: []float64{1.5}}, Names: []string{"b c", "a{"},
	}
}

func TestKeyFunctions(t *testing.T) {
	req := newFunctionRequest("42", -7)
	for _, tt := range keyFunctions {
		facts := func(string) (any, error) { return req, nil }
		if got := outcome(tt.text, Roots{"req": TypeFor[functionRequest]()}, facts); !agrees(got, tt.want) {
			t.Errorf("%q comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}

// claimKey is where userFunctions find a claim in a context.
type claimKey struct{}

func userFunctions() []Option {
	return []Option{
		Func("claim", func(ctx context.Context, name string) (string, error) {
			if name == "bad" {
				return "", io.ErrUnexpectedEOF
			}
			return fmt.Sprint(ctx.Value(claimKey{}), "/", name), nil
		}),
		Func("double", func(n int32) int32 { return 2 * n }),
		Func("names", func(l []string, sep ...string) string { return strings.Join(l, strings.Join(sep, "")) }),
		Func("opt", func(s *string) bool { return s == nil }),
		Func("boom", func() string { panic("secret") }),
		Func("code", func(c codeName) codeName { return c + "!" }),
		Func("amount", func() float64 { return 1.5 }),
	}
}

func TestUserFunctions(t *testing.T) {
	ctx := context.WithValue(context.Background(), claimKey{}, "acme")
	for _, tt := range []struct{ text, want string }{
		{"#{claim('sub')}", "acme/sub"},
		{"#{claim(req.Code)}", "acme/acme"},
		{"#{claim(claim('x'))}", "acme/acme/x"},
		{"#{'sub' | claim()}", "acme/sub"},
		{"#{map(req.Names, claim(#))}", "acme/n1 acme/n2"},
		{"#{claim(req.Nope)}", "start: unknown field Nope"},
		{"#{claim(7)}", "start: argument 1 of claim is of type int"},
		{"#{claim()}", "start: 0 arguments for claim"},
		{"#{claim(req.Opt)}", "request: passes nil"},
		{"#{claim('bad')}", "request: function claim: unexpected EOF"},
		{"#{double(req.ID)}:#{double(4)}", "14:8"},
		{"#{double(req.Big)}", "request: does not fit"},
		{"#{names(req.Names, '-')}:#{names(map(req.List, .SKU))}", "n1-n2:ba"},
		{"#{opt(req.Opt)}", "true"},
		{"#{boom()}", "request: function boom: panicked: secret (at "},
		{"#{code(req.Code)}:#{code('x')}", "acme!:x!"},
		{"#{clam('x')}", "start: did you mean claim?"},
		{"#{amount()}", "start: is a float"},
	} {
		tmpl, err := Parse(tt.text, Roots{"req": TypeFor[*shelf]()}, append(userFunctions(), OneKey())...)
		got := outcomeIn(ctx, tmpl, err, shelfFacts)
		if !agrees(got, tt.want) {
			t.Errorf("%q comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestErrorOfAFunctionIsItsOwn(t *testing.T) {
	fail := Func("fail", func() (string, error) { return "", io.ErrUnexpectedEOF })
	for _, text := range []string{"#{fail()}", "#{map(1..2, fail())}"} {
		tmpl, err := Parse(text, nil, fail, OneKey())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = tmpl.Expand(t.Context(), nil); !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want the function's own error", text, err)
		}
	}
}

func TestBadUserFunctions(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fn     any
		reason string
	}{
		{"", strings.ToLower, "can't be called"},
		{"a-b", strings.ToLower, "can't be called"},
		{"or", strings.ToLower, "can't be called"},
		{"lower", strings.ToLower, "already"},
		{"hash", strings.ToLower, "already"},
		{"req", strings.ToLower, "already"},
		{"f", nil, "is of type <nil>"},
		{"f", "x", "is of type string"},
		{"f", (func() string)(nil), "is of type func() string"},
		{"f", func() {}, "must return a value"},
		{"f", func() error { return nil }, "must return a value"},
		{"f", func() (string, string) { return "", "" }, "must return a value"},
	} {
		if _, err := Parse("x", Roots{"req": {}}, Func(tt.name, tt.fn)); err == nil || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Func(%q, %T) = %v, want %q", tt.name, tt.fn, err, tt.reason)
		}
	}
}

func TestBodyNumbers(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(`{"i": 42, "big": 18446744073709551615, "f": 1.0, "e": 4e1}`))
	dec.UseNumber()
	var body any
	if err := dec.Decode(&body); err != nil {
		t.Fatal(err)
	}
	facts := func(string) (any, error) { return body, nil }
	for text, want := range map[string]string{"#{body.i}": "42", "#{body.big}": "18446744073709551615", "#{body.i + 1}": "43", "#{body.big > body.i}": "true"} {
		if keys, err := mustParse(t, text).Expand(t.Context(), facts); err != nil || keys[0] != want {
			t.Errorf("Expand(%q) = %q, %v, want %q", text, keys, err, want)
		}
	}
	for _, text := range []string{"#{body.f}", "#{body.e}"} {
		if keys, err := mustParse(t, text).Expand(t.Context(), facts); !errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %q, %v, want ErrValue", text, keys, err)
		}
	}
}
