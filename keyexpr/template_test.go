package keyexpr

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

var expansions = []struct {
	text string
	want string // several keys are separated by a blank
}{
	{"order:fixed", "order:fixed"},
	{"order:#{req.OrderID}", "order:42"},
	{"order:{#{req.OrderID}}:pay", "order:{42}:pay"},
	{"a##{b}###{req.Seq}", "a#{b}#-5"},
	{"#{req.Tenant}/#{req.Coupon}", "acme/SAVE"},
	{"#{req.Shard}", "9223372036854775811"},
	{"#{req.Urgent}-#{req.Level}-", "true-level%2D2-"},
	{"#{req.Ref}", "018f0000-0000-0000-0000-0000000000ab"},
	{"#{req.Digest}.#{req.Salt}", "cafe.01020304"},
	{"#{req.Customer.Name}:#{req.Customer?.Parent.Name}", "Jo:Al"},
	{"#{req.Customer.GetName()}", "Jo"},
	{"#{req.Kind()}", "pay"},
	{"#{req.Any}", "thing"},
	{"#{req.Labels.zone}:#{req.Labels['zone']}:#{req.Counts.n}", "eu:eu:3"},
	{"#{req.Tags[0]}:#{req.Tags[-1]}", "x:y"},
	{"#{path.id}:#{header.Tenant}:#{header['X-Tenant-Id']}", "7:acme:acme-1"},
	{"#{header.Nope ?? 'none'}", "none"},
	{"#{req.Labels.nope ?? 'none'}", "none"},
	{"#{req.Customer?.Parent?.Parent?.Name ?? 'none'}", "none"},
	{"#{body.order.id}:#{body.qty}", "B1:3"},
	{"#{body.nope?.deep.deeper ?? 'none'}", "none"},
	{"#{lower(method)}:#{upper(req.Tenant)}", "post:ACME"},
	{"#{req.Tenant + ':' + req.OrderID}", "acme:42"},
	{"#{'n' + string(req.Seq)}", "n-5"},
	{"#{req.Urgent ? req.Tenant : 'none'}", "acme"},
	{"#{if req.Urgent { 'u' } else { 'n' }}", "u"},
	{"#{let x = req.OrderID; x + '/' + x}", "42/42"},
	{"#{req.OrderID | lower() | trim()}", "42"},
	{"#{join(map(req.Lines, .SKU), ',')}", "b,a,b"},
	{"#{map(req.Lines, .SKU)}", "a b"},
	{"#{map(req.Lines, 'item:' + .SKU)}", "item:a item:b"},
	{"#{map(req.Lines, .SKU + '-' + string(#index))}", "a-1 b-0 b-2"},
	{"#{req.Tags}", "x y"},
	{"#{req.Tenants}", "t1 t2"},
	{"#{filter(req.Tags, # != 'x')}", "y"},
	{"#{body.order.items[1]}", "y"},
	{"#{map(body.order.items, #)}", "x y"},
	{"#{[req.OrderID, req.Tenant]}", "42 acme"},
	{"#{len(req.Lines)}", "3"},
	{"#{req.Seq % 3}:#{req.Shard % 16}", "-2:3"},
	{"#{req.Seq + 1}:#{-req.Seq}:#{req.Seq * 2}:#{req.Seq - 1}", "-4:5:-10:-6"},
	{"#{int('7') + 1}", "8"},
	{"#{split(req.OrderID, '2')[0]}", "4"},
	{"#{replace(req.Tenant, 'a', 'b')}", "bcme"},
	{"#{1 < int(req.Seq) < 5}", "false"},
}

func TestExpand(t *testing.T) {
	coupon := "SAVE"
	req := &payRequest{
		OrderID: "42", Tenant: "acme", Coupon: &coupon, Seq: -5, Shard: 1<<63 + 3, Urgent: true, Level: 2,
		Ref: uuid{0x01, 0x8f, 15: 0xab}, Digest: []byte{0xca, 0xfe}, Salt: [4]byte{1, 2, 3, 4},
		Lines: []line{{"b", 1}, {"a", 2}, {"b", 3}}, Tags: []string{"x", "y"}, Tenants: []tenant{"t2", "t1"},
		Labels: map[string]string{"zone": "eu"}, Counts: map[string]int{"n": 3},
		Customer: &customer{Name: "Jo", Parent: &customer{Name: "Al"}}, Any: "thing",
	}
	for _, tt := range expansions {
		got, err := expand(t, tt.text, req)
		if want := strings.Fields(tt.want); err != nil || !slices.Equal(got, want) {
			t.Errorf("Expand(%q) = %q, %v, want %q", tt.text, got, err, want)
		}
	}
}

func TestExpandRefusesValues(t *testing.T) {
	for _, tt := range []struct {
		text   string
		reason string
	}{
		{"o:#{req.Coupon}", "is nil"},
		{"o:#{req.Customer.Name}", "req.Customer is nil"},
		{"o:#{req.Customer?.Name}", "is nil"},
		{"o:#{req.Customer.GetName()}", "panicked"},
		{"o:#{path.org}", "is empty"},
		{"o:#{header.Empty}", "is empty"},
		{"o:#{header.Nope}", "is nil"},
		{"o:#{header.Empty ?? 'none'}", "is empty"},
		{"o:#{req.Labels.nope}", "is nil"},
		{"o:#{req.Counts.nope}", "is nil"},
		{"o:#{req.Tags[3]}", "list of 0 elements"},
		{"o:#{req.Any}", "is nil"},
		{"o:#{req.Digest}", "is empty"},
		{"o:#{body.nope}", "is nil"},
		{"o:#{body.nope.deeper}", "body.nope is nil"},
		{"o:#{body.qty.deeper}", "no fields or entries"},
		{"o:#{body.order}", "is a map"},
		{"o:#{body.order.items}", "is a list"},
		{"#{body.order.items}", "is a list"},
		{"o:#{string(req.Coupon)}", "is nil"},
		{"o:#{'x' + header.Nope}", "is nil"},
		{"o:#{lower(header.Nope)}", "nil where a string is wanted"},
		{"o:#{req.Broken()}", "fails"},
		{"o:#{req.Panics()}", "panicked: secret (at "},
		{"#{req.Tags}", "is empty"},
		{"#{filter(req.Tags, true)}", "is empty"},
		{"#{map(req.Lines, .SKU)}", "is empty"},
		{"#{map(1..2000, #)}", "more than 1024 keys"},
		{"#{[header.Tenant, header.Nope]}", "element that is nil"},
	} {
		got, err := expand(t, tt.text, &payRequest{Lines: []line{}})
		if !errors.Is(err, ErrValue) || got != nil {
			t.Errorf("Expand(%q) = %q, %v, want ErrValue", tt.text, got, err)
		} else if !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("Expand(%q) = %v, want %q", tt.text, err, tt.reason)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		text   string
		offset int
		reason string
	}{
		{"o:#{req.OrdreID}", 8, "unknown field OrdreID of payRequest, did you mean OrderID?"},
		{"o:#{req.secret}", 8, "field secret of payRequest is not exported"},
		{"o:#{'é' + req.Nope}", 15, "unknown field Nope"},
		{"o:#{rq.OrderID}", 4, "unknown name rq, did you mean req?"},
		{"o:#{order.id}", 4, "unknown name order: there is body, header, method, path, req"},
		{"é:#{ path.idd }", 11, "unknown name idd of path, did you mean id?"},
		{"o:#{lwer(method)}", 4, "unknown function lwer, did you mean lower?"},
		{"o:#{req.Knd()}", 8, "unknown method Knd of payRequest, did you mean Kind?"},
		{"o:#{header}", 4, "header is looked up by name"},
		{"o:#{len(header)}", 8, "header is looked up by name"},
		{"o:#{header[3]}", 11, "has names and no numbers"},
		{"o:#{method.x}", 11, "has no field x"},
		{"o:#{req.Amount}", 4, "req.Amount is a float, float64"},
		{"o:#{req}", 4, "req is a struct"},
		{"o:#{req.Lines}", 4, "req.Lines is a list"},
		{"#{req.Lines}", 2, "each element is a struct"},
		{"o:#{req.Labels}", 4, "is a map"},
		{"o:#{req.Notify}", 4, "is a function"},
		{"o:#{req.Kind}", 4, "is a function: call it"},
		{"o:#{req.Scaled(1)}", 8, "only methods without arguments"},
		{"o:#{req.Split()}", 8, "only methods without arguments"},
		{"o:#{body.Close()}", 9, "methods need a type"},
		{"o:#{nil}", 4, "nil makes no key"},
		{"o:#{$env}", 4, "$env"},
		{"o:#{now()}", 4, "now is not allowed here"},
		{"o:#{keys(req.Labels)}", 4, "keys is not allowed here: a map has no order"},
		{"o:#{reduce(req.Tags, #acc + #)}", 4, "reduce is not allowed here"},
		{"o:#{repeat('a', 3)}", 4, "repeat is not allowed here"},
		{"o:#{toJSON(req.Tags)}", 4, "use hash(x)"},
		{"o:#{req.Seq / 2}", 12, "makes a float"},
		{"o:#{header.A ?: 'x'}", 11, "use or(a, b)"},
		{"o:#{req.OrderID + req.Seq}", 16, "+ does not put string and int64 together"},
		{"o:#{string(req.Amount)}", 4, "is a float"},
		{"o:#{a b}", 6, "unexpected \"b\""},
		{"o:#{'a' matches '('}", 16, "missing closing"},
		{"o:#{req.OrderID", 2, "not closed"},
		{"o:#{req.OrderID}%#{req.Tenant}", 16, "would look like an escape"},
		{"o:#{" + strings.Repeat("!", 300) + "true}", 4 + 300 - 1, "maximum allowed nodes"},
	} {
		_, err := Parse(tt.text, testRoots())
		fault, ok := errors.AsType[*Error](err)
		if !ok {
			t.Errorf("Parse(%q) = %v, want an *Error", tt.text, err)
			continue
		}
		if !strings.Contains(fault.Reason, tt.reason) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Parse(%q) = %q, want %q", tt.text, err, tt.reason)
		}
		if fault.Offset != tt.offset && len(tt.text) < 100 {
			t.Errorf("Parse(%q) points to %d, want %d: %v", tt.text, fault.Offset, tt.offset, err)
		}
	}
}

func TestRootsAreThoseThatAreUsed(t *testing.T) {
	tmpl := mustParse(t, "#{req.OrderID}:#{header.B ?? header.A}:#{lower(method)}")
	if got, want := tmpl.Roots(), []string{"header", "method", "req"}; !slices.Equal(got, want) {
		t.Errorf("Roots() = %v, want %v", got, want)
	}
}

func TestFactsAreAskedOnceAndOnlyIfUsed(t *testing.T) {
	tmpl := mustParse(t, "#{req.OrderID}:#{lower(req.Tenant)}:#{header.Tenant}")
	asked := map[string]int{}
	facts := testFacts(nil)
	for range 2 {
		clear(asked)
		_, err := tmpl.Expand(t.Context(), func(root string) (any, error) {
			asked[root]++
			return facts(root)
		})
		if err != nil || len(asked) != 2 || asked["req"] != 1 || asked["header"] != 1 {
			t.Errorf("asked for %v, %v, want req and header once", asked, err)
		}
	}
}

func TestErrorOfFactsIsTheCallers(t *testing.T) {
	for _, text := range []string{"o:#{body.id}", "o:#{lower(body.id)}", "#{map(body, .id)}"} {
		_, err := mustParse(t, text).Expand(t.Context(), func(string) (any, error) { return nil, io.ErrUnexpectedEOF })
		if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, ErrValue) {
			t.Errorf("Expand(%q) = %v, want the error of facts alone", text, err)
		}
	}
}

func TestPanicOfFactsGoesOn(t *testing.T) {
	defer func() {
		if r := recover(); r != "mine" {
			t.Errorf("recovered %v, want the panic of facts", r)
		}
	}()
	_, _ = mustParse(t, "o:#{body.id}").Expand(t.Context(), func(string) (any, error) { panic("mine") })
}

func TestWrongFactIsNoFaultOfTheRequest(t *testing.T) {
	for _, text := range []string{"o:#{method}", "o:#{header.A}"} {
		_, err := mustParse(t, text).Expand(t.Context(), func(string) (any, error) { return 7, nil })
		if err == nil || errors.Is(err, ErrValue) || !strings.Contains(err.Error(), "was declared as") {
			t.Errorf("Expand(%q) = %v, want an error that is not ErrValue", text, err)
		}
	}
}

func TestErrorsHideValues(t *testing.T) {
	req := &payRequest{OrderID: "secret", Any: map[string]string{"secret": "secret"}}
	for _, text := range []string{"#{int(req.OrderID)}", "#{req.Any}", "#{req.Any.x.y}", "#{req.Broken()}", "#{req.Tags[int(req.OrderID + '1')]}"} {
		_, err := expand(t, text, req)
		if !errors.Is(err, ErrValue) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Expand(%q) = %v, want ErrValue without the value", text, err)
		}
	}
}

func TestExpandInParallel(t *testing.T) {
	tmpl := mustParse(t, "#{req.OrderID}:#{lower(req.Tenant)}:#{header.Tenant}")
	for range 4 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for range 200 {
				keys, err := tmpl.Expand(context.Background(), testFacts(nil))
				if err != nil || keys[0] != "42:acme:acme" {
					t.Fatalf("Expand = %q, %v", keys, err)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, text := range []string{"o:#{anything.at.all}", "#{f(x)}", "fixed"} {
		if err := Check(text); err != nil {
			t.Errorf("Check(%q) = %v", text, err)
		}
	}
	for _, text := range []string{"", "o:#{", "o:#{a b}", "{#x}"} {
		if _, ok := errors.AsType[*Error](Check(text)); !ok {
			t.Errorf("Check(%q) finds nothing", text)
		}
	}
}

// AppendKeysOf is given a place and not a value, and there is one for all roots.
func TestAppendKeysOfMistakes(t *testing.T) {
	tmpl := mustParse(t, "order:#{req.OrderID}")
	for _, tt := range []struct {
		request any
		want    string
	}{
		{payRequest{OrderID: "7"}, "is given by a keyexpr.payRequest, want a pointer to it"},
		{(*payRequest)(nil), "is given by a *keyexpr.payRequest, want a pointer to it"},
		{nil, "is given by a <nil>, want a pointer to it"},
		{new("7"), "is of type string, and was declared as *keyexpr.payRequest"},
		{&payRequest{OrderID: "7"}, "is of type keyexpr.payRequest, and was declared as *keyexpr.payRequest"},
	} {
		keys, err := tmpl.AppendKeysOf(t.Context(), nil, tt.request)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrValue) {
			t.Errorf("AppendKeysOf(%T) = %q, %v; want an error that says %q, and is not the request's", tt.request, keys, err, tt.want)
		}
	}
	req := &payRequest{OrderID: "7"}
	keys, err := tmpl.AppendKeysOf(t.Context(), []string{"before"}, &req)
	if err != nil || !slices.Equal(keys, []string{"before", "order:7"}) {
		t.Errorf("AppendKeysOf = %q, %v", keys, err)
	}
}
