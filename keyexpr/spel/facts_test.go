package spel

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr"
)

type status string

// role may be a String where status is an enum, or another enum with the same names.
type role string

// phase is an enum as protoc and stringer make them.
type phase int32

func (p phase) String() string {
	if p > 1 {
		return strconv.Itoa(int(p)) // as protoc's
	}
	return [...]string{"NEW", "PAID"}[p]
}

type ident [16]byte

func (i ident) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", i[:4], i[4:6], i[6:8], i[8:10], i[10:])
}

// coded spells itself in a way that nobody knows of in Java.
type coded []byte

func (c coded) String() string { return "coded" }

// opaque is read by getters alone, as protobuf messages can be.
type opaque struct{ id int64 }

func (o *opaque) GetOrderID() int64 { return o.id }
func (o *opaque) GetSelf() *opaque  { return o }

// parcel is a message of protobuf with optional fields.
type parcel struct {
	ID    int64
	Note  *string
	Count *int32
	Inner *parcel
}

func (*parcel) ProtoReflect() int { return 0 }
func (p *parcel) GetNote() string {
	if p == nil || p.Note == nil {
		return ""
	}
	return *p.Note
}

func (p *parcel) GetCount() int32 {
	if p == nil || p.Count == nil {
		return 3 // as proto2 lets it declare
	}
	return *p.Count
}

// gofacts are facts whose types are Go's: what they are in Java is not always known.
type gofacts struct {
	I     int
	U     uint64
	I8    int8
	I16   int16
	I32   int32
	I64   int64
	F     float64
	S     string
	P     *string
	N     *int64
	St    status
	Ph    phase
	Role  role
	BySt  map[status]string
	Later phase
	Box   *parcel
	NoBox *parcel
	Mixed []any
	B     bool
	Ref   ident
	Code  coded
	Data  []byte
	At    time.Time
	Took  time.Duration
	Big   *big.Int
	Num   json.Number
	Any   any
	List  []int
	Texts []string
	Named []status
	ByInt map[int]string
	Attrs map[string]string
	JSON  map[string]any `json:"doc"`
	Msg   *opaque
	Func  func() string
}

var goFacts = gofacts{
	I: 7, U: 1 << 40, I8: 3, I16: 4, I32: 5, I64: 6, S: "text", St: "PAID", Ph: 1, Role: "PAID", BySt: map[status]string{"PAID": "p"}, Later: 7, Box: &parcel{ID: 5}, Mixed: []any{big.NewInt(12), status("PAID")}, B: true, Ref: ident{1, 2}, Data: []byte{1}, Big: big.NewInt(12), Num: "34",
	Any: map[string]any{"id": int64(9), "name": "n", "tags": []any{"x", "y"}, "none": nil, "deep": map[string]any{"id": "d"}}, List: []int{1, 2}, Texts: []string{"a"},
	Named: []status{"NEW"}, Attrs: map[string]string{"k": "v"}, JSON: map[string]any{"id": int64(8)}, Msg: &opaque{11},
}

// jsonOrder is what JSON of no declared type becomes.
var jsonOrder = map[string]any{
	"id": int64(7), "big": int64(1) << 40, "name": "Text", "empty": "", "none": nil, "yes": true, "half": 0.5,
	"tags": []any{"x", "y", int64(1), nil}, "lines": []any{map[string]any{"sku": "pen", "qty": int64(2)}, map[string]any{"sku": "ink", "qty": int64(0)}},
	"owner": map[string]any{"login": "kim", "boss": map[string]any{"login": "lee"}}, "grid": []any{[]any{int64(1)}, []any{}},
	"length": "six", "size": "L",
}

var goRoots = keyexpr.Roots{"req": keyexpr.TypeFor[gofacts](), "header": keyexpr.AnyName(), "path": keyexpr.Names("id"), "body": {}}

// goFactsOf offers v as req, and a few fixed values.
func goFactsOf(v any) keyexpr.Facts {
	return func(root string) (any, error) {
		switch root {
		case "header", "path":
			return keyexpr.Lookup(func(name string) (string, bool, error) { return root + "-" + name, name != "none", nil }), nil
		case "body":
			return goFacts.Any, nil
		}
		return v, nil
	}
}

func TestVariables(t *testing.T) {
	for _, tt := range []struct {
		text string
		opts []Option
		want string
	}{
		{"#p0.s", nil, "text"},
		{"#req.s", nil, "text"},
		{"#order.s", []Option{Params("order")}, "text"},
		{"#a0.s", []Option{Params("order")}, "text"},
		{"#s + ':' + #p1", []Option{Params("s", "i")}, "text:7"},
		{"#p2", []Option{Params("s", "i")}, "start: unknown parameter #p2: there is i, s"},
		{"#odrer.s", []Option{Params("order")}, "start: unknown parameter #odrer, did you mean order?"},
		{"#id", []Option{Var("id", "path.id")}, "path-id"},
		{"#t", []Option{Var("t", `header["X-T"]`)}, "header-X-T"},
		{"#k", []Option{Var("k", "req.attrs")}, "start: is a map"},
		{"#k['k']", []Option{Var("k", "req.attrs")}, "v"},
		{"#x", []Option{Var("x", "a b")}, `start: Var("x", …) wants a path`},
		{"#x", []Option{Var("x", `a["b`)}, "start: wants a path"},
		{"#x", []Option{Var("x", "")}, "start: wants a path"},
		{"#x", []Option{Var("x", "rec.id")}, "start: #x stands for rec, and there is no such fact, did you mean req?"},
		{"#order.id", nil, "start: #order stands for order, and there is no such fact"},
		{"#header.tenant", []Option{Params("order")}, "header-tenant"},
		{"#root.methodName + ':' + #root.targetClass.simpleName", []Option{Method("a.b.C$D", "pay")}, "pay:D"},
		{"#root.args[0].s", nil, "text"},
		{"#executionPath", []Option{Method("a.B", "pay")}, "a.B.pay"},
		{"#executionPath", nil, "start: add Method(class, name)"},
		{"#if", []Option{Var("if", "req.s")}, "text"},
	} {
		if got := onGo(t, Expression(tt.text, tt.opts...)); !agrees(got, tt.want) {
			t.Errorf("%q comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}

// A function is the user's, whatever ours are called.
func TestFunctions(t *testing.T) {
	funcs := []keyexpr.Option{
		keyexpr.Func("hash", func(s string) string { return "mine:" + s }),
		keyexpr.Func("twice", func(n int32) int64 { return 2 * int64(n) }),
		keyexpr.Func("tenant", func(context.Context) string { return "acme" }),
		keyexpr.Func("fail", func() (string, error) { return "", context.Canceled }),
		keyexpr.Func("all", func(l []string) int { return len(l) }),
		keyexpr.Func("any", func(x any) string { return fmt.Sprintf("%T", x) }),
	}
	for _, tt := range []struct{ text, want string }{
		{"#hash(#p0.s)", "mine:text"},
		{"'k:' + #hash('a' + #p0.i)", "k:mine:a7"},
		{"#hash(#p0.st)", "mine:PAID"},
		{"#hash(#p0.ref)", "mine:01020000-0000-0000-0000-000000000000"},
		{"#twice(#p0.i32) + 1", "11"},
		{"#twice(#p0.i)", "14"},
		{"#twice(#p0.u)", "request: does not fit"},
		{"#tenant() + ':' + #p0.i", "acme:7"},
		{"#all(#p0.texts)", "1"},
		{"#all({'a', 'b'})", "2"},
		{"#any(#p0.attrs)", "map[string]string"},
		{"#any(#p0.msg)", "*spel.opaque"},
		{"#any(1)", "int32"},
		{"#fail()", "error: context canceled"},
		{"#lower(#p0.s)", "start: unknown function lower: there is all, any, fail, hash, tenant, twice"},
		{"#hassh(#p0.s)", "start: unknown function hassh, did you mean hash?"},
		{"#hash()", "start: 0 arguments for hash"},
		{"#hash(7)", "start: argument 1 of hash is of type int32"},
	} {
		if got := outcome(t, Expression(tt.text), goRoots, goFactsOf(goFacts), funcs...); !agrees(got, tt.want) {
			t.Errorf("%q comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Texts that no text of Java is, and pieces that Java can't say in UTF-8.
func TestTextsThatJavaDoesNotHave(t *testing.T) {
	for _, tt := range []struct{ text, value, want string }{
		{"#p0.s", "\xff", "request: is no UTF-8"},
		{"'x' + #p0.s", "a\xc3", "request: is no UTF-8"},
		{"#p0.s.trim()", "\xff", "request: is no UTF-8"},
		{"#p0.s.length()", "\xff", "request: is no UTF-8"},
		{"#p0.s.substring(0, 1)", "😀", "request: half of a character"},
		{"#p0.s.substring(1)", "😀x", "request: half of a character"},
		{"#p0.s.substring(0, 2)", "😀x", "😀"},
		{"'x' + #p0.s.length()", "\xff", "request: is no UTF-8"},
		{"#p0.s[2]", "😀x", "x"},
		{"#p0.s.substring(0, 1)", "\ufffdx", "\ufffd"},
		{"#p0.s", strings.Repeat("x", 513), "request: more than 512 bytes"},
		{"#p0.s", "a b:{c}%", "a b:{c}%"}, // nothing is escaped
		{"'o:' + #p0.s", "", "request: is empty"},
	} {
		facts := goFacts
		facts.S = tt.value
		if got := outcome(t, Expression(tt.text), goRoots, goFactsOf(facts)); !agrees(got, tt.want) {
			t.Errorf("%q of %q comes to %q, want %q", tt.text, tt.value, got, tt.want)
		}
	}
}

func TestLibraries(t *testing.T) {
	method := Method("a.B", "pay")
	for _, tt := range []struct {
		key  *Key
		want string
	}{
		{Lock4j("pay", []string{"#p0.s"}, Prefix("mine")), "mine:pay#text"},
		{Lock4j("", []string{"#p0.s"}, method), "lock4j:a.Bpay#text"},
		{Lock4j("pay", []string{"#p0.texts", "#p0.i"}), "lock4j:pay#a.7"},
		{Lock4j("pay", []string{"#root.name"}), "start: #root is not known here"},
		{Lock4j("pay", []string{" "}), "start: nothing is written here, for which Spring throws"},
		{Lock4j("pay", []string{"#p0.at"}), "start: is a time"},
		{Lock4j("pay", []string{"#p0.s", "#p0.nope"}), `start: unknown property nope of spel.gofacts`},
		{Klock("pay", []string{"#p0.texts"}), "start: is a list"},
		{Klock("pay", []string{"#root.methodName"}, method), "start: #root is not known here"},
		{Klock("", nil, method), "lock.a.B.pay"},
		{Alturkovic("", "p:", "#p0.texts"), "distributed_lock:p:a"},
		{Alturkovic("s", "", "#root.name"), "start: #root is not known here"},
		{Redisson(`"o:" + req.s`), "o:text"},
		{Redisson(`req.i > 5 ? "big" : "small"`), "big"},
		{Redisson(`#p0.s`), "start: is SpringEL, and no Java"},
		{Redisson(`req?.s`), "start: is SpringEL, and no Java"},
		{Redisson(`req.s ?: "x"`), "start: is SpringEL, and no Java"},
		{Redisson(`{1}`), "start: is SpringEL, and no Java"},
		{Redisson(`"o:" + 'a'`), "start: characters are not read here"},
		{Redisson(`"o:" + 08`), "start: this is no number"},
		{Redisson(`req.s == "text" ? "y" : "n"`), "start: write .equals"},
		{Redisson(`req.b ? 1 : 2L`), "start: Java may make one type of the two values"},
		{Redisson(`"x" + req.texts`), "start: is a list"},
	} {
		if got := onGo(t, tt.key); !agrees(got, tt.want) {
			t.Errorf("%v comes to %q, want %q", tt.key, got, tt.want)
		}
	}
}

// The registry of guards shows what a key reads, and what it looks like.
func TestInspection(t *testing.T) {
	k := Expression("'order:' + #order.id + ':' + #order.name.trim() + #header.tenant", Params("order"))
	tmpl, err := k.Parse(keyexpr.Roots{"req": keyexpr.TypeFor[*javaOrder](), "header": keyexpr.AnyName()})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tmpl.Shape(), "order:<int64>:<string><string>"; got != want {
		t.Errorf("Shape() = %q, want %q", got, want)
	}
	if got, want := fmt.Sprint(tmpl.Roots(), tmpl.Fields()), "[header req] [header.tenant req.ID req.Name]"; got != want {
		t.Errorf("Roots() and Fields() = %s, want %s", got, want)
	}
	if tmpl.String() != k.String() {
		t.Errorf("String() = %q", tmpl)
	}
	if _, ok := tmpl.Match("order:42:xy"); ok {
		t.Error("a key that is not escaped was read back")
	}
}
