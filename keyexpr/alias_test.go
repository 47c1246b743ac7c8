package keyexpr

import (
	"errors"
	"strings"
	"testing"
)

type aliasInner struct {
	UserName string `json:"login,omitempty" protobuf:"bytes,1,opt,name=user_name,json=userName,proto3"`
}

type aliasBase struct {
	TraceID string
}

type aliased struct {
	aliasBase
	OrderID  string                 `json:"order_id"`
	Owner    *aliasInner            `json:"owner"`
	Owners   []*aliasInner          `json:"-"`
	ByName   map[string]*aliasInner `json:"by_name"`
	Renamed  string                 `expr:"other"`
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
func (o *opaque) GetIt(n int) string { return "" }

func TestNamesOfFields(t *testing.T) {
	req := aliased{
		aliasBase: aliasBase{TraceID: "t"}, OrderID: "o", Owner: &aliasInner{"u"}, Owners: []*aliasInner{{"v"}},
		ByName: map[string]*aliasInner{"k": {"w"}}, Renamed: "r", Swapped: "s", Number: "n", hidden: "h",
		Anything: map[string]any{"order_id": "x"},
	}
	facts := func(root string) (any, error) {
		if root == "msg" {
			return &opaque{id: "7"}, nil
		}
		return &req, nil
	}
	roots := Roots{"req": TypeFor[*aliased](), "msg": TypeFor[*opaque]()}
	for _, tt := range []struct{ text, want string }{
		{"#{req.OrderID}:#{req.order_id}:#{req.orderId}:#{req.orderid}", "o:o:o:o"},
		{"#{req.owner.login}:#{req.owner.user_name}:#{req.Owner.userName}", "u:u:u"},
		{"#{req.owner?.login}", "u"},
		{"#{req.Owners[0].login}:#{req.by_name.k.login}", "v:w"},
		{"#{map(req.owners, .login)}", "v"},
		{"#{req.trace_id}", "t"},
		{"#{req.other}", "r"},
		{"#{req.Swapped}:#{req.Number}", "s:n"},
		{"#{req.swapped}", "start: swapped of aliased may be Swapped or Number: use the Go name"},
		{"#{req.both}", "start: both of aliased may be First or Second"},
		{"#{req.hidden}", "start: field hidden of aliased is not exported"},
		{"#{req.login}", "start: unknown field login"},
		{"#{req.anything.order_id}", "x"},
		{"#{lower(req.order_id)}", "o"},
		{"#{msg.order_id}:#{msg.GetOrderID()}:#{msg.self.self.orderId}", "7:7:7"},
		{"#{msg?.order_id}", "7"},
		{"#{msg.it}", "start: unknown field it of opaque"},
	} {
		if got := outcome(tt.text, roots, facts); !agrees(got, tt.want) {
			t.Errorf("%q comes to %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestAmbiguityPointsToTheName(t *testing.T) {
	_, err := Parse("o:#{ req.both }", Roots{"req": TypeFor[*aliased]()})
	if fault, ok := errors.AsType[*Error](err); !ok || fault.Offset != 9 {
		t.Errorf("Parse = %v, want an *Error at offset 9", err)
	}
}

func TestDetail(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"order:#{req.OrdreID}", "keyexpr: unknown field OrdreID of payRequest, did you mean OrderID?\n    order:#{req.OrdreID}\n                ^"},
		{"é→#{reqq.x}", "keyexpr: unknown name reqq, did you mean req?\n    é→#{reqq.x}\n        ^"},
		{"o:#{\n\treq.Nope}!", "\n    \treq.Nope}!\n    \t    ^"},
		{"o:#{", "    o:#{\n      ^"},
	} {
		_, err := Parse(tt.text, testRoots())
		fault, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasSuffix(fault.Detail(), tt.want) {
			t.Errorf("Detail of %q is\n%s\nwant\n%s", tt.text, fault.Detail(), tt.want)
		}
	}
	if got := (&Error{Text: "", Reason: "r"}).Detail(); got != "keyexpr: r\n    \n    ^" {
		t.Errorf("Detail = %q", got)
	}
}
