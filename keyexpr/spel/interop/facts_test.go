package interop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/latchkey-go/latchkey/keyexpr"
)

// Order is the request, as Order.java in package interop has it.
type Order struct {
	ID     int64             `json:"id"`
	Seq    int32             `json:"seq"`
	Level  int16             `json:"level"`
	Name   string            `json:"name"`
	Note   *string           `json:"note"`
	Empty  string            `json:"empty"`
	ISBN   string            `json:"isbn"`
	Bn     string            `json:"-"` // which isbn() must not read
	Status Status            `json:"status"`
	Items  []Item            `json:"items"`
	Tags   []string          `json:"tags"`
	IDs    []int64           `json:"ids"`
	Attrs  map[string]string `json:"attrs"`
	Urgent bool              `json:"urgent"`
	Owner  *Owner            `json:"owner"`
	Ref    UUID              `json:"ref"`
	Data   Bytes             `json:"data"`
}

// Item is a line of an order.
type Item struct {
	SKU string `json:"sku"`
	Qty int32  `json:"qty"`
}

// Owner is whoever ordered.
type Owner struct {
	Login  string `json:"login"`
	Parent *Owner `json:"parent"`
}

// Status is an enum in Java.
type Status string

// UUID is what the usual packages have.
type UUID [16]byte

// String is the usual spelling.
func (u UUID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// MarshalText is String.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// Bytes are numbers in JSON, as Gson reads them.
type Bytes []byte

// MarshalJSON writes the numbers that Java has for bytes.
func (b Bytes) MarshalJSON() ([]byte, error) {
	list := make([]int8, len(b))
	for i, x := range b {
		list[i] = int8(x)
	}
	return json.Marshal(list)
}

// orders are what each expression is tried on: something usual, something odd, nothing in it, and nothing there.
func orders() []*Order {
	note, blank := "fragile", ""
	return []*Order{
		{
			ID: 42, Seq: 7, Level: 3, Name: "Ada Lovelace", Note: &note, ISBN: "978-3", Bn: "wrong", Status: "PAID",
			Items: []Item{{"pen", 1}, {"ink", 12}, {"paper", 3}}, Tags: []string{"blue", "red"}, IDs: []int64{7, 42},
			Attrs: map[string]string{"zone": "eu", "k": "v"}, Urgent: true, Owner: &Owner{Login: "ada", Parent: &Owner{Login: "byron"}},
			Ref: UUID{0x01, 0x8f, 0x6b, 15: 0xab}, Data: Bytes{1, 2, 255},
		},
		{
			ID: 1<<40 + 5, Seq: 1<<31 - 1, Level: -9, Name: " Straße,\u00a0ÀÉ; naïve😀 ", Note: &blank, ISBN: "a.b,,", Bn: "wrong", Status: "SHIPPED",
			Items: []Item{{"a:b", 1 << 30}, {"É|x", -1}}, Tags: []string{"", "x,y", "Ünï"}, IDs: []int64{-1, 1 << 33},
			Attrs: map[string]string{"zone": "", "a b": "{x}"}, Owner: &Owner{Login: "O'Neil"}, Ref: UUID{15: 1}, Data: Bytes{},
		},
		{Name: "x", Items: []Item{}, Tags: []string{}, IDs: []int64{}, Attrs: map[string]string{}, Status: "NEW"},
		{Name: "null", Status: "NEW"}, // lists that are not there
	}
}

// letters are orders with texts whose other case, or whose white space, is not simple.
func letters() []*Order {
	var list []*Order
	for _, s := range []string{"ΣΑΣ", "İstanbul", "ŉ", "ﬁn", "ǆ", "Ǆ", "ß", "ẞ", "ა", "ᏸ", "ꭰ", "ΐ", "և", "K", "ſ", "µ", "ÿ", "ı", "𐐀", "ᾳ", "Ω", "ԥ", "ꞑ", "\u2007x\u202f", "\u2028y", "\x1cz\x1f", "\u0085w", "\u180e", "\u3000v"} {
		list = append(list, &Order{Name: s, ISBN: strings.Repeat(s, 2), Status: "NEW"})
	}
	return list
}

// longs are orders with texts half as long as what Spring puts together, in units of one byte and of two halves.
func longs() []*Order {
	var list []*Order
	for _, s := range []string{strings.Repeat("n", 49_999), strings.Repeat("n", 50_000), strings.Repeat("n", 50_001), strings.Repeat("é", 50_000), strings.Repeat("😀", 25_000), strings.Repeat("😀", 25_000) + "n"} {
		list = append(list, &Order{Name: s, ISBN: s + "x", Tags: []string{""}, Status: "NEW"})
	}
	return list
}

// orderRoots are the facts of a method that has one parameter, order.
var orderRoots = keyexpr.Roots{"req": keyexpr.TypeFor[*Order]()}

// factsOf gives an order.
func factsOf(o *Order) keyexpr.Facts { return func(string) (any, error) { return o, nil } }
