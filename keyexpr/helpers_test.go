package keyexpr

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
)

type tenant string

// level is a number with a name, as protoc and stringer make them.
type level int

func (l level) String() string { return "level-" + strconv.Itoa(int(l)) }

// uuid is what the usual packages have.
type uuid [16]byte

func (u uuid) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:])
}

type line struct {
	SKU string
	Qty int
}

type customer struct {
	Name   string
	Parent *customer
}

func (c *customer) GetName() string { return c.Name }

type payRequest struct {
	OrderID  string
	Tenant   tenant
	Coupon   *string
	Seq      int64
	Shard    uint64
	Urgent   bool
	Level    level
	Ref      uuid
	Digest   []byte
	Salt     [4]byte
	Amount   float64
	Lines    []line
	Tags     []string
	Tenants  []tenant
	Labels   map[string]string
	Counts   map[string]int
	Customer *customer
	Any      any
	Notify   func() string
	secret   string
}

func (payRequest) Kind() string           { return "pay" }
func (payRequest) Scaled(by int) int      { return by }
func (payRequest) Broken() (int, error)   { return 0, errors.New("broken") }
func (payRequest) Panics() string         { panic("secret") }
func (r payRequest) Split() (a, b string) { return r.OrderID, r.secret }

func testRoots() Roots {
	return Roots{
		"req":    TypeFor[*payRequest](),
		"path":   Names("id", "org"),
		"header": AnyName(),
		"body":   Root{},
		"method": TypeFor[string](),
	}
}

// testFacts offers req, a request with little in it if it is nil, and a few fixed values.
func testFacts(req *payRequest) Facts {
	if req == nil {
		req = &payRequest{OrderID: "42", Tenant: "acme"}
	}
	return func(root string) (any, error) {
		switch root {
		case "req":
			return req, nil
		case "path":
			return lookupOf(map[string]string{"id": "7", "org": ""}), nil
		case "header":
			return lookupOf(map[string]string{"Tenant": "acme", "X-Tenant-Id": "acme-1", "Empty": ""}), nil
		case "body":
			return map[string]any{"order": map[string]any{"id": "B1", "items": []any{"x", "y"}}, "qty": 3}, nil
		case "method":
			return "POST", nil
		}
		return nil, fmt.Errorf("no root %q", root)
	}
}

func lookupOf(m map[string]string) Lookup {
	return func(name string) (string, bool, error) {
		v, ok := m[name]
		return v, ok, nil
	}
}

func mustParse(t testing.TB, text string) *Template {
	t.Helper()
	tmpl, err := Parse(text, testRoots(), OneKey())
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return tmpl
}

func expand(t testing.TB, text string, req *payRequest) ([]string, error) {
	t.Helper()
	return mustParse(t, text).Expand(context.Background(), testFacts(req))
}

// expandOf expands tmpl for v in all ways that there are, which must agree: with facts, and where v is.
func expandOf(t testing.TB, tmpl *Template, v any) ([]string, error) {
	t.Helper()
	keys, err := tmpl.Expand(context.Background(), func(string) (any, error) { return v, nil })
	places := []any{&v}
	if v != nil {
		p := reflect.New(reflect.TypeOf(v))
		p.Elem().Set(reflect.ValueOf(v))
		places = append(places, p.Interface())
	}
	for _, place := range places {
		again, err2 := tmpl.AppendKeysOf(context.Background(), nil, place)
		if !slices.Equal(again, keys) || fmt.Sprint(err2) != fmt.Sprint(err) || errors.Is(err2, ErrValue) != errors.Is(err, ErrValue) {
			t.Errorf("%s: AppendKeysOf(%T) = %q, %v; want %q, %v as with facts", tmpl, place, again, err2, keys, err)
		}
	}
	return keys, err
}
