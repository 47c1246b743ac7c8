package keyexpr

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Values that a request can have in two forms, and types that lead astray.

type selfPointer *selfPointer

// selfValuer is its own value in a database.
type selfValuer struct{}

func (v selfValuer) Value() (driver.Value, error) { return &v, nil }

// twoTexts has one text by value and another one by pointer.
type twoTexts struct{}

func (twoTexts) String() string                { return "value" }
func (*twoTexts) MarshalText() ([]byte, error) { return []byte("pointer"), nil }

// pointerFloat is a float whose pointer says how it is written.
type pointerFloat float64

func (*pointerFloat) String() string { return "three" }

type promoted struct{ X string }

type embeds struct {
	*promoted
	ID string
}

type strict struct {
	Self    selfPointer
	Valuer  selfValuer
	Two     twoTexts
	TwoP    *twoTexts
	Float   pointerFloat
	FloatP  *pointerFloat
	Null    *sql.NullString
	IP      net.IP
	Month   time.Month
	Embeds  embeds
	Raw     json.RawMessage
	Number  json.Number
	Numbers []json.Number
	Any     any
	Many    []uint64
	Large   [][200]string
	ID      string
	ID8     [8]byte
	Mute    mute
	None    [0]byte
}

// mute spells nothing whatever it is.
type mute struct{ V int }

func (mute) String() string { return "" }

// expandStrict makes a key of r, or returns an error, which must be one at start or of the request.
func expandStrict(t *testing.T, text string, r strict, opts ...Option) string {
	t.Helper()
	tmpl, err := Parse("k:#{"+text+"}", Roots{"req": TypeFor[strict]()}, opts...)
	if err != nil {
		return "start: " + err.Error()
	}
	keys, err := tmpl.Expand(context.Background(), func(string) (any, error) { return r, nil })
	if err != nil && !errors.Is(err, ErrValue) {
		t.Errorf("%s: %v, want ErrValue", text, err)
	}
	if err != nil {
		return "request: " + err.Error()
	}
	return keys[0]
}

func TestOneValueHasOneSpelling(t *testing.T) {
	t.Parallel()
	three, null := pointerFloat(3), sql.NullString{}
	r := strict{TwoP: &twoTexts{}, Float: 3, FloatP: &three, Null: &null, Number: "1E2", Numbers: []json.Number{"7"}, Any: json.Number("7"), ID: "id"}
	for text, want := range map[string]string{
		"req.Two": "k:pointer", "req.TwoP": "k:pointer", "string(req.Two)": "k:pointer", "req.Float": "k:three", "req.FloatP": "k:three",
		`req.Null ?? "none"`: "k:none", "req.Null == nil": "k:true",
		"lower(req.Number)": "start:", "upper(req.Any)": "request:", "hash(req.Raw)": "start:", "hash(req.Number)": "request:",
		"req.Self": "start:", "req.Valuer": "request:",
		"req.IP.String()": "request:", "required(req.IP.String())": "request:", `coalesce(req.IP.String(), "none")`: "k:none", "req.Month.String()": "request:",
		"req.ID8 == req.ID": "start:", "req.ID in [req.ID8]": "start:", "req.ID8 == req.ID8": "k:true", "mod(req.Month, 5).String()": "start:", "mod(req.Month, 5)": "k:0",
		"req.Mute": "request:", "hash(req.Mute)": "request:", "hash(req.None)": "request:",
		`text(req.ID) ?? "none"`: "k:none", `fmtTime(time(req.ID), "2006")`: "request:",
	} {
		got := expandStrict(t, text, r, Func("text", func(string) sql.NullString { return null }), Func("time", func(string) *time.Time { return nil }))
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestHashIsOfTheValue(t *testing.T) {
	t.Parallel()
	of := func(r strict) string { return expandStrict(t, "hash([req.Any])", r) }
	seven := of(strict{Any: 7})
	for _, same := range []any{json.Number("7"), 7.0, int8(7), uint64(7)} {
		if got := of(strict{Any: same}); got != seven {
			t.Errorf("hash of %T 7 = %s, want %s", same, got, seven)
		}
	}
	for _, other := range []any{"7", 7.5, []byte("7"), true} {
		if got := of(strict{Any: other}); got == seven {
			t.Errorf("%T %v has the hash of 7", other, other)
		}
	}
	if got := of(strict{Any: json.Number("7.0")}); !strings.HasPrefix(got, "request: ") {
		t.Errorf("7.0 = %s, want a refusal", got)
	}
	a := expandStrict(t, "hash(req.Embeds)", strict{Embeds: embeds{&promoted{"a"}, "id"}})
	if b := expandStrict(t, "hash(req.Embeds)", strict{Embeds: embeds{&promoted{"b"}, "id"}}); a == b || !strings.HasPrefix(a, "k:") {
		t.Errorf("a promoted field is not in the hash: %s, %s", a, b)
	}
}

// Structs that embed what spells itself, beside something else.
type (
	sayer    struct{ V string }
	withNull struct {
		sql.NullString
		Kind string
	}
	withText struct {
		sayer
		Kind string
	}
	withPointer struct {
		*sayer
		Kind string
	}
	withAny struct {
		fmt.Stringer
		Kind string
	}
	within   struct{ withText }
	alone    struct{ sayer }
	itself   struct{ *itself }
	hidden   struct{ v string }
	word     string
	number   int
	texts    interface{ String() string }
	withWord struct {
		word
		Kind string
	}
	withNumber struct {
		number
		Kind string
	}
	withTexts struct {
		texts
		Kind string
	}
	wrapped struct {
		hidden
		Kind string
	}
)

func (s sayer) String() string  { return s.V }
func (s hidden) String() string { return s.v }
func (w word) String() string   { return string(w) }
func (n number) String() string { return "n" }

// TestEmbeddedTextsSwallowNothing holds that two structs which differ never have one key: what is embedded speaks for all of them.
func TestEmbeddedTextsSwallowNothing(t *testing.T) {
	t.Parallel()
	text := sayer{"v"}
	for _, pair := range [][2]any{
		{withNull{sql.NullString{String: "v", Valid: true}, "a"}, withNull{sql.NullString{String: "v", Valid: true}, "b"}},
		{withNull{Kind: "a"}, withNull{Kind: "b"}},
		{withText{text, "a"}, withText{text, "b"}}, {&withText{text, "a"}, &withText{text, "b"}}, {withPointer{&text, "a"}, withPointer{&text, "b"}},
		{withAny{text, "a"}, withAny{text, "b"}}, {within{withText{text, "a"}}, within{withText{text, "b"}}},
		{withWord{"v", "a"}, withWord{"w", "a"}}, {withWord{"v", "a"}, withWord{"v", "b"}}, {withNumber{1, "a"}, withNumber{2, "a"}}, {withTexts{text, "a"}, withTexts{sayer{"w"}, "a"}},
		{wrapped{hidden{"v"}, "a"}, wrapped{hidden{"w"}, "a"}},
	} {
		if got := expandStrict(t, "req.Any", strict{Any: pair[0]}); !strings.HasPrefix(got, "request: ") || !strings.Contains(got, "is a struct") {
			t.Errorf("%T = %s, want a refusal", pair[0], got)
		}
		if got := refusal(known(reflect.TypeOf(pair[0]))); !strings.HasPrefix(got, "is a struct") {
			t.Errorf("%T is refused at start with %q", pair[0], got)
		}
		a, b := expandStrict(t, "hash(req.Any)", strict{Any: pair[0]}), expandStrict(t, "hash(req.Any)", strict{Any: pair[1]})
		if a == b && strings.HasPrefix(a, "k:") || strings.Contains(a, "panicked") {
			t.Errorf("%T: %s: one hash for %v and %v", pair[0], a, pair[0], pair[1])
		}
	}
	if got := expandStrict(t, "req.Any", strict{Any: alone{text}}); got != "k:v" {
		t.Errorf("a text alone = %s", got)
	}
	if got := refusal(known(reflect.TypeFor[itself]())); got == "" {
		t.Error("a struct in itself is a key")
	}
}

func TestLoopsAreCharged(t *testing.T) {
	t.Parallel()
	r := strict{Many: make([]uint64, 50_000), Large: make([][200]string, 30_000), ID: "id"}
	for i := range r.Many {
		r.Many[i] = 1<<63 + uint64(i)
	}
	calls := strings.Repeat("mod(#, 18446744073) == 3 or ", 22) + "false"
	for _, text := range []string{"any(req.Many, " + calls + ")", "len(filter(req.Large, #[0] == ''))"} {
		if got := expandStrict(t, text, r); !strings.HasPrefix(got, "request: ") || !strings.Contains(got, "takes") {
			t.Errorf("%.30s = %s, want it to be too much", text, got)
		}
	}
	r.Many = r.Many[:30_000]
	for text, want := range map[string]string{"any(req.Many, # in [5, 6, 7])": "k:false", "len(filter(req.Many, # > 5))": "k:30000"} {
		if got := expandStrict(t, text, r); got != want {
			t.Errorf("%s = %s, want %s", text, got, want)
		}
	}
}

func TestConditionsCompareNumbersOfJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"req.Any > 1.5": true, "req.Any == 2.5": true, "req.Any in [2.5]": true, "req.Any != 2.5": false, "req.Number == 7": true, "req.Number < 8": true, "req.Numbers[0] == 100": true,
	} {
		c, err := ParseCondition(text, Roots{"req": TypeFor[strict]()})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := c.Eval(context.Background(), func(string) (any, error) {
			return strict{Any: json.Number("2.5"), Number: "7.0", Numbers: []json.Number{"100.0"}}, nil
		})
		if got != want || err != nil {
			t.Errorf("%s = %v, %v", text, got, err)
		}
	}
}
