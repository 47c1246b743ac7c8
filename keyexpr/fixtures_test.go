package keyexpr

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
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
		Small    map[uint8]string
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
	deep := new("deep")
	return &parcel{
		Audit: Audit{By: "ada", Team: &Team{Lead: "bob"}}, Team: &Team{Lead: "eve"}, ID: "7", Deep: &deep, hidden: "secret",
		Boxed: map[string]any{
			"id": json.Number("42"), "list": []any{"x", map[string]any{"y": "z"}}, "none": nil, "audit": &Audit{By: "boxed"}, "n": 3.0,
			"half": 2.5, "raw": json.RawMessage(`{"a":1}`), "one": json.Number("1.0"), "huge": json.Number("18446744073709551615"),
		},
		ByName: map[string]*Audit{"a": {By: "first"}, "nil": nil}, ByNumber: map[int]string{-1: "minus", 2: "two"},
		ByTenant: map[tenant]string{"acme": "t1"}, Small: map[uint8]string{44: "x"},
		Rows: [][]string{{"a", "b"}, {}}, Pair: [2]Audit{{By: "p0"}, {By: "p1"}}, Message: &sealed{id: "m7", tenant: "mt"},
	}
}

type aliasInner struct {
	UserName string `json:"login,omitempty" protobuf:"bytes,1,opt,name=user_name,json=userName,proto3"`
}

type aliasBase struct{ TraceID string }

// aliased has fields with other names.
type aliased struct {
	aliasBase
	OrderID  string                 `json:"order_id"`
	Owner    *aliasInner            `json:"owner"`
	Owners   []*aliasInner          `json:"-"`
	ByName   map[string]*aliasInner `json:"by_name"`
	Swapped  string                 `json:"number"`
	Number   string                 `json:"swapped"`
	First    string                 `json:"both"`
	Second   string                 `protobuf:"bytes,1,opt,name=both"`
	hidden   string
	Anything any
}

// opaque is a message whose fields can't be seen.
type opaque struct{ id string }

func (o *opaque) GetOrderID() string {
	if o == nil {
		return "nobody"
	}
	return o.id
}
func (o *opaque) GetSelf() *opaque   { return o }
func (o *opaque) GetIt(n int) string { return fmt.Sprint(n) }

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

// isKind is what protoc makes of a oneof: only its own package can name what is in it.
type isKind interface{ isKind() }

type kindCard struct{ Card string }

func (*kindCard) isKind() {}

// stamped has become a time by embedding one.
type stamped struct {
	time.Time
	ID string
}

type inner struct {
	B map[string]int
	A []float64
}

// mixed has one of each type that holes and functions meet, what is empty, and what is not there.
type mixed struct {
	Name, Empty, Blank, Uni, Bad string
	Text, Path                   string
	Opt, None                    *string
	Tenant                       tenant
	N, Neg, Zero                 int64
	Least, Most                  int64
	U                            uint64
	I8                           int8
	Yes                          bool
	Tags, NoTags                 []string
	Nums                         []int
	Bigs                         []uint64
	Tenants                      []tenant
	ByTenant                     map[tenant]int
	Lines                        []line
	Any, AnyNil                  any
	Anys                         []any
	Map                          map[string]string
	At, Never                    time.Time
	Maybe                        *time.Time
	Stamped                      stamped
	Took                         time.Duration
	Data                         []byte
	Ref                          uuid
	Level                        level
	Month                        time.Month
	Addr                         netip.Addr
	Net                          net.IPNet
	Number                       json.Number
	Raw                          json.RawMessage
	Half                         float64
	Nested                       [][]string
	In                           inner
	Message                      *fakeMessage
	Kind                         isKind
	Hidden                       struct{ a string }
	Call                         func()
	Pipe                         chan int
	Next                         *mixed
	Column, Null                 sql.NullString
	When                         sql.NullTime
	Price                        sql.NullFloat64
}

// newMixed has the facts of most tables.
func newMixed() mixed {
	return mixed{
		Name: "Ada Lovelace", Blank: "  \t", Uni: "Ünïcödé→", Bad: "\xffÉ\xc3", Text: "a:b c", Path: "/ac/me", Opt: new("opt"), Tenant: "Acme", N: 42, Neg: -7,
		Least: -1 << 63, Most: 1<<63 - 1, U: 1<<64 - 1, I8: -128, Yes: true, Tags: []string{"b", "a", "c", "a"}, Nums: []int{3, 1, 2},
		Bigs: []uint64{1<<64 - 1, 5}, Tenants: []tenant{"t2", "t1"}, ByTenant: map[tenant]int{"t1": 1}, Lines: []line{{"b", 1}, {"a", 2}, {"b", 3}},
		Any: "any", Anys: []any{1, "x", nil, true, 2.5, 3.0}, Map: map[string]string{"k": "v:w"},
		At: time.Date(2026, 3, 4, 23, 30, 0, 0, time.FixedZone("", -5*3600)), Took: 90 * time.Second, Data: []byte{0, 0xff}, Ref: uuid{1, 2}, Level: 3,
		Addr: netip.MustParseAddr("fe80::1"), Number: "17", Raw: json.RawMessage("7"), Half: 2.5, Nested: [][]string{{"p", "q"}, {"r"}, {}},
		In: inner{B: map[string]int{"y": 2, "x": 1}, A: []float64{1.5}}, Message: &fakeMessage{name: "n"}, Kind: &kindCard{"c"},
		Column: sql.NullString{String: "c:1", Valid: true},
	}
}

// Types whose methods are the program's own, and go wrong.
type (
	panicsAsText   struct{ ID string }
	panicsAsString struct{ ID string }
	failsAsText    struct{ ID string }
	rudeRequest    struct {
		Text   panicsAsText
		String panicsAsString
		Fails  failsAsText
		Any    any
		Next   *rudeRequest
		ID     string
	}
)

func (panicsAsText) MarshalText() ([]byte, error) { panic("secret text") }
func (panicsAsString) String() string             { panic("secret string") }
func (failsAsText) MarshalText() ([]byte, error)  { return nil, errors.New("secret failure") }
func (r *rudeRequest) Name() string               { return r.ID }
func (*rudeRequest) Boom() string                 { panic(errors.New("secret error")) }
func (*rudeRequest) Index() string                { return []string{}[len("secret")] }

// stock has values that are put together.
type stock struct {
	A, B, C string
	Lines   []stockLine
	Tags    []string
}

type stockLine struct{ Warehouse, SKU string }

// goValues are the values that tables name.
func goValues() map[string]any {
	filled := &payRequest{
		OrderID: "42", Tenant: "acme", Coupon: new("SAVE"), Seq: -5, Shard: 1<<63 + 3, Urgent: true, Level: 2,
		Ref: uuid{0x01, 0x8f, 15: 0xab}, Digest: []byte{0xca, 0xfe}, Salt: [4]byte{1, 2, 3, 4},
		Lines: []line{{"b", 1}, {"a", 2}, {"b", 3}}, Tags: []string{"x", "y"}, Tenants: []tenant{"t2", "t1"},
		Labels: map[string]string{"zone": "eu"}, Counts: map[string]int{"n": 3},
		Customer: &customer{Name: "Jo", Parent: &customer{Name: "Al"}}, Any: "thing",
	}
	loose := newParcel()
	loose.Team = nil
	return map[string]any{
		"pay":     filled,
		"paid":    *filled,
		"little":  &payRequest{OrderID: "42", Tenant: "acme", Lines: []line{}},
		"parcel":  newParcel(),
		"loose":   loose, // with an embedded pointer that is nil
		"aliased": aliased{aliasBase{"t"}, "o", &aliasInner{"u"}, []*aliasInner{{"v"}}, map[string]*aliasInner{"k": {"w"}}, "s", "n", "f", "s2", "h", map[string]any{"order_id": "x"}},
		"opaque":  &opaque{id: "7"},
		"mixed":   newMixed(),
		"rude":    &rudeRequest{ID: "7", Any: panicsAsString{}},
		"stock":   stock{A: "a:b", B: "c/d", C: "e,f", Lines: []stockLine{{"w:1", "s,1"}, {"w2", "s2"}}, Tags: []string{"x,y", "z"}},
		"text":    "POST",
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
		Func("boom", func(string) string { panic("secret") }),
		Func("code", func(c tenant) tenant { return c + "!" }),
		Func("amount", func() float64 { return 1.5 }),
		Func("fixed", func(n int64) int64 { return n }),
	}
}
