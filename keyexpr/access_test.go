package keyexpr

import (
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/keyexpr/internal/run"
)

// What requests are built of: embedded structs with and without a pointer, pointers to pointers, interfaces around all of it, and
// a message whose fields can only be read by methods.
type (
	// Audit is exported, as the fields of an embedded struct are only reached then.
	Audit struct {
		By   string
		Team *Team
	}
	// Team is embedded by pointer, and may be nil.
	Team struct{ Lead string }

	sealed struct{ id, tenant string }

	parcel struct {
		Audit
		*Team
		ID       string
		Deep     **string
		Nobody   *Audit
		Boxed    any
		ByName   map[string]*Audit
		ByNumber map[int]string
		ByTenant map[tenant]string
		Rows     [][]string
		Pair     [2]Audit
		Message  *sealed
		hidden   string
	}
)

func (m *sealed) GetOrderID() string { return m.id }
func (m *sealed) GetTenant() string  { return m.tenant }
func (p *parcel) Label() string      { return "label-" + p.ID }

func newParcel() *parcel {
	text := "deep"
	deep := &text
	return &parcel{
		Audit: Audit{By: "ada", Team: &Team{Lead: "bob"}}, Team: &Team{Lead: "eve"}, ID: "7", Deep: &deep, hidden: "secret",
		Boxed:  map[string]any{"id": json.Number("42"), "list": []any{"x", map[string]any{"y": "z"}}, "none": nil, "audit": &Audit{By: "boxed"}, "n": 3.0},
		ByName: map[string]*Audit{"a": {By: "first"}, "nil": nil}, ByNumber: map[int]string{-1: "minus", 2: "two"}, ByTenant: map[tenant]string{"acme": "t1"},
		Rows: [][]string{{"a", "b"}, {}}, Pair: [2]Audit{{By: "p0"}, {By: "p1"}}, Message: &sealed{id: "m7", tenant: "mt"},
	}
}

const isNil = `is nil; if it may be, write what stands for it: ?? "none", or ?: 'none' in Java's text`

// accessPaths are the ways into a parcel, and what is at their ends: the key, or why there is none.
var accessPaths = []struct{ expr, want string }{
	// Fields of embedded structs are those of the outer one. The nearest of two with one name is meant, as in Go.
	{"req.ID", "7"},
	{"req.By", "ada"},
	{"req.Audit.By", "ada"},
	{"req.Audit.Team.Lead", "bob"},
	{"req.Lead", "eve"},
	{"req.Team.Lead", "eve"},
	// Pointers are followed, however many there are, and one that is nil says which.
	{"req.Deep", "deep"},
	{"req.Nobody.By", "can't go on: req.Nobody is nil"},
	{"req.Nobody?.By", isNil},
	{"req.Nobody?.By ?? 'none'", "none"},
	{"req.Nobody?.Team.Lead ?? 'none'", "none"},
	{"req.Pair[1].Team.Lead", "can't go on: req.Pair[1].Team is nil"},
	// Maps: by name, by number, by a named type, by what is computed. What is not there is nil, and not "" or 0.
	{"req.ByName.a.By", "first"},
	{"req.ByName['a'].By", "first"},
	{"req.ByName.b.By", "can't go on: req.ByName.b is nil"},
	{"req.ByName['nil']?.By ?? 'none'", "none"},
	{"req.ByNumber[2]", "two"},
	{"req.ByNumber[-1]", "minus"},
	{"req.ByNumber[3] ?? 'none'", "none"},
	{"req.ByTenant.acme", "t1"},
	{"req.ByTenant['nope'] ?? 'none'", "none"},
	// Lists and arrays, from both ends. Beyond them is an error, since nobody writes an index for what may not be there.
	{"req.Rows[0][1]", "b"},
	{"req.Rows[0][-1]", "b"},
	{"req.Rows[1][0]", "asks a list of 0 elements for number 0"},
	{"req.Rows[int('0')][0]", "a"},
	{"req.Pair[0].By", "p0"},
	{"req.Pair[-1].By", "p1"},
	{"last(req.Pair[:1]).By", "p0"},
	{"join(map(req.Pair[0:2], .By), ',')", "p0,p1"},
	// Interfaces: types are found for each request.
	{"req.Boxed.id", "42"},
	{"req.Boxed['id']", "42"},
	{"req.Boxed.id + 1", "43"},
	{"req.Boxed.list[0]", "x"},
	{"req.Boxed.list[1].y", "z"},
	{"req.Boxed.audit.By", "boxed"},
	{"req.Boxed.audit.by", "asks keyexpr.Audit for a field that it does not have"},
	{"req.Boxed.none", isNil},
	{"req.Boxed.none.x", "can't go on: req.Boxed.none is nil"},
	{"req.Boxed.nope?.x.y ?? 'none'", "none"},
	{"req.Boxed.n", "is a float, float64, which has many spellings: use a whole number or a string"},
	{"req.Boxed[0]", "asks a map by string for an entry by int"},
	{"body.ID", "7"},
	{"body.By", "ada"},
	{"body.hidden", "asks keyexpr.parcel for a field that it does not have"},
	{"body.Label", "asks keyexpr.parcel for a field that it does not have"},
	// Methods, and the getters of messages, which are found by the name of their field.
	{"req.Label()", "label-7"},
	{"req.Message.GetOrderID()", "m7"},
	{"req.Message.order_id", "m7"},
	{"req.Message.orderId", "m7"},
	{"req.Message.tenant", "mt"},
	{"lower(req.Message.Tenant)", "mt"},
}

func TestAccessPaths(t *testing.T) {
	roots := Roots{"req": TypeFor[*parcel](), "body": Root{}}
	for _, tt := range accessPaths {
		tmpl, err := Parse("#{"+tt.expr+"}", roots, OneKey())
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.expr, err)
			continue
		}
		keys, err := expandOf(t, tmpl, newParcel())
		got := strings.Join(keys, " ")
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "keyexpr: unusable value: "+tt.expr+" ")
		}
		if got != tt.want || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("%s = %q, want %q", tt.expr, got, tt.want)
		}
	}
}

// An embedded pointer that is nil has no fields to promote: an error of the request, for known types and unknown ones.
func TestNilEmbeddedPointer(t *testing.T) {
	req := newParcel()
	req.Team = nil
	for _, root := range []string{"req", "body"} {
		tmpl, err := Parse("#{"+root+".Lead}", Roots{"req": TypeFor[*parcel](), "body": Root{}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = expandOf(t, tmpl, req)
		if !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "can't go on") {
			t.Errorf("%s.Lead of a nil pointer = %v", root, err)
		}
	}
}

// holeFacts have one value of each sort that holes are made of.
type holeFacts struct {
	Text   string
	Named  tenant
	Ptr    *string
	Int    int64
	Uint   uint64
	Yes    bool
	Level  level
	Ref    uuid
	Bytes  []byte
	Addr   netip.Addr
	Number json.Number
	At     time.Time
	Texts  []string
	Ints   []int
	Map    map[string]string
	Any    any
}

// kindsOfHoles have the key of a request with the facts in TestMatchEachKindOfHole, and what is read back from it.
var kindsOfHoles = []struct {
	text, key string
	values    []string
}{
	// Values of each type.
	{"o:#{req.Text}:x", "o:a%3Ab%20c:x", []string{"a:b c"}},
	{"o:#{req.Named}/x", "o:ac%2Fme/x", []string{"ac/me"}},
	{"o:#{req.Ptr}:x", "o:p%3A1%25:x", []string{"p:1%"}},
	{"o:#{req.Int}:x", "o:-42:x", []string{"-42"}},
	{"o:#{req.Int}-x", "o:%2D42-x", []string{"-42"}},
	{"o:#{req.Int}4", "o:-%3424", []string{"-42"}},
	{"o:#{req.Uint}", "o:18446744073709551615", []string{"18446744073709551615"}},
	{"o:#{req.Yes}", "o:true", []string{"true"}},
	{"o:#{req.Level}-x", "o:level%2D3-x", []string{"level-3"}},
	{"o:#{req.Ref}", "o:ab000000-0000-0000-0000-000000000000", []string{"ab000000-0000-0000-0000-000000000000"}},
	{"o:#{req.Bytes}f", "o:00%66%66f", []string{"00ff"}},
	{"o:#{req.Addr}:x", "o:fe80%3A%3A1:x", []string{"fe80::1"}},
	{"o:#{req.Number}", "o:17", []string{"17"}},
	{"o:#{req.Any}:x", "o:an%3Ay:x", []string{"an:y"}},
	{"o:#{req.Map.k}:x", "o:v%3Aw:x", []string{"v:w"}},
	{"o:#{header.Tenant}:x", "o:h%3ATenant:x", []string{"h:Tenant"}},
	{"o:#{header[req.Named]}:x", "o:h%3Aac/me:x", []string{"h:ac/me"}},
	// What is computed is one value.
	{"o:#{upper(req.Text)}:x", "o:A%3AB%20C:x", []string{"A:B C"}},
	{"o:#{req.Int + 1}:x", "o:-41:x", []string{"-41"}},
	{"o:#{req.Yes ? req.Text : req.Named}:x", "o:a%3Ab%20c:x", []string{"a:b c"}},
	{"o:#{let x = req.Text; x}:x", "o:a%3Ab%20c:x", []string{"a:b c"}},
	{"o:#{req.Map.nope ?? req.Text}:x", "o:a%3Ab%20c:x", []string{"a:b c"}},
	{"o:#{or(req.Map.nope, req.Named)}/x", "o:ac%2Fme/x", []string{"ac/me"}},
	{"o:#{fmtTime(req.At, '15:04')}:x", "o:07%3A30:x", []string{"07:30"}},
	{"o:#{req.Text[0:3]}:x", "o:a%3Ab:x", []string{"a:b"}},
	{"o:#{first(req.Texts)},x", "o:x%2C1,x", []string{"x,1"}},
	{"o:#{toBase64(req.Text)}=", "o:YTpiIGM%3D=", []string{"YTpiIGM="}},
	{"o:#{req.Int < 0}", "o:true", []string{"true"}},
	// What is put together is several.
	{"#{'o:' + req.Text + ':' + req.Named}", "o:a%3Ab%20c:ac/me", []string{"a:b c", "ac/me"}},
	{"o:#{join(req.Texts, ',')}:x", "o:x%2C1,y:x", []string{"x,1", "y"}},
	{"o:#{join(req.Ints, '-')}", "o:3-%2D1", []string{"3", "-1"}},
	{"o:#{join(map(req.Texts, # + '=' + req.Named), ';')}", "o:x,1=ac/me;y=ac/me", []string{"x,1", "ac/me", "y", "ac/me"}},
	{"{#{req.Named}}:#{req.Int}", "{ac/me}:-42", []string{"ac/me", "-42"}},
}

// A key of each kind of hole is read back to the texts that it was made of. What follows a value is escaped in it, whatever kind
// of value it is: a colon in an address and a minus in front of a number as well as one in a text.
func TestMatchEachKindOfHole(t *testing.T) {
	text := "p:1%"
	facts := holeFacts{
		Text: "a:b c", Named: "ac/me", Ptr: &text, Int: -42, Uint: 1<<64 - 1, Yes: true, Level: 3, Ref: uuid{0xab}, Bytes: []byte{0, 0xff}, Addr: netip.MustParseAddr("fe80::1"),
		Number: "17", At: time.Date(2026, 3, 5, 7, 30, 0, 0, time.UTC), Texts: []string{"x,1", "y"}, Ints: []int{3, -1}, Map: map[string]string{"k": "v:w"}, Any: "an:y",
	}
	roots := Roots{"req": TypeFor[holeFacts](), "header": AnyName()}
	for _, tt := range kindsOfHoles {
		tmpl, err := Parse(tt.text, roots)
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.text, err)
			continue
		}
		keys, err := tmpl.Expand(t.Context(), func(root string) (any, error) {
			if root == "header" {
				return Lookup(func(name string) (string, bool, error) { return "h:" + name, true, nil }), nil
			}
			return facts, nil
		})
		if err != nil || len(keys) != 1 || keys[0] != tt.key {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.text, keys, err, tt.key)
			continue
		}
		if values, ok := tmpl.Match(keys[0]); !ok || !slices.Equal(values, tt.values) {
			t.Errorf("Match(%q) by %q = %q, %v, want %q", keys[0], tt.text, values, ok, tt.values)
		}
	}
}

// Each function charges for what it is about to do before it does it, so that one value too many is found for the price of one
// that is not. The values are just within a budget of the whole request, and just beyond it.
func TestBudgetsOfFunctions(t *testing.T) {
	const most = run.MaxBytes
	text := func(n int) any { return strings.Repeat("x", n) }
	list := func(n int) any { return make([]int, n) }
	for _, tt := range []struct {
		expr         string
		fits, beyond any
	}{
		// Texts are read once by each function, and what it makes is charged by whoever reads that.
		{"len(v)", text(most), text(most + 1)},
		{"len(lower(v))", text(most / 2), text(most/2 + 1)},
		{"indexOf(v, 'y')", text(most - 1), text(most)},
		{"v contains 'y'", text(most - 1), text(most)},
		{"v startsWith v", text(most / 2), text(most/2 + 1)},
		{"v == v", text(most), text(most + 1)},
		{"len(replace(v, 'x', 'yy'))", text(most / 6), text(most / 4)},
		{"v matches '^x'", text(maxSubject), text(maxSubject + 1)},
		{"len(hash(v))", text(most/2 - 40), text(most / 2)},
		// Lists are charged by what their copies take: 24 bytes an element.
		{"len(reverse(v))", list(most / 24), list(most/24 + 1)},
		{"len(concat(v, v))", list(most / 24 / 4), list(most/24/2 + 1)},
		{"len(take(v, 1))", list(1 << 20), "text"},
		{"len(flatten([v]))", list(most/24 - 3), list(most / 24)},
		{"len(uniq(v))", list(most / 24 / 4), list(most/24/4 + 1)},
		{"len(sort(v))", list(9_000), list(15_000)},
		{"len(map(v, #))", list(most / 24), list(most/24 + 1)},
		{"any(v, # == 1)", list(most / 24), list(most/24 + 1)},
		{"max(v)", list(most/24 - 2), list(most / 24)},
		{"1 in v", list(run.MaxSteps / 2), list(run.MaxSteps/2 + 1)},
		{"len(v)", list(1 << 20), nil},
	} {
		c, err := newCompilation(tt.expr, Roots{"v": {}}, true, config{})
		if err != nil {
			t.Fatal(err)
		}
		node, err := c.tree(tt.expr, 0)
		if err != nil {
			t.Fatal(err)
		}
		x, err := c.compile(node)
		if err != nil {
			t.Fatal(err)
		}
		run := func(v any) error {
			st := newTestState(c, func(string) (any, error) { return v, nil })
			defer st.Release()
			_, err := x.value(st)
			return err
		}
		if err := run(tt.fits); err != nil {
			t.Errorf("%s of what fits: %v", tt.expr, err)
		}
		if err := run(tt.beyond); err == nil {
			t.Errorf("%s of what is beyond the budget: no error", tt.expr)
		}
	}
}
