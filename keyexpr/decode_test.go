package keyexpr

import (
	"slices"
	"testing"
)

// Values that people write as JSON make the keys that the same values of a request make.
func TestRootDecode(t *testing.T) {
	type order struct {
		ID    string `json:"id"`
		Lines []int
	}
	for _, tt := range []struct {
		root           Root
		template, json string
		want           []string // none for an error
	}{
		{TypeFor[order](), "order:#{x.ID}", `{"id":"7"}`, []string{"order:7"}},
		{TypeFor[*order](), "order:#{x.ID}", `{"id":"7"}`, []string{"order:7"}},
		{TypeFor[order](), "#{x.Lines}", `{"lines":[2,1]}`, []string{"1", "2"}},
		{TypeFor[order](), "order:#{x.ID}", `{"id":7}`, nil},
		{TypeFor[order](), "order:#{x.ID}", `{"id":`, nil},
		{TypeFor[int](), "n:#{x}", `7`, []string{"n:7"}},
		{TypeFor[any](), "order:#{x.id}", `{"id":7}`, []string{"order:7"}},
		{TypeFor[any](), "order:#{x.lines[1].sku}", `{"lines":[{},{"sku":"a b"}]}`, []string{"order:a%20b"}},
		{TypeFor[any](), "order:#{x.id}", `{"id":7.5}`, nil},
		{TypeFor[any](), "order:#{x.id}", `{"id":7} {}`, nil},
		{TypeFor[any](), "order:#{x.id}", ``, nil},
		{AnyName(), "t:#{x.Tenant}", `{"tenant":"acme"}`, []string{"t:acme"}},
		{Names("id"), "t:#{x.id}", `{"id":7}`, []string{"t:7"}},
		{Names("id"), "t:#{x.id}", `{"id":true}`, []string{"t:true"}},
		{Names("id"), "t:#{x.id}", `{"id":null}`, nil},
		{Names("id"), "t:#{x.id}", `{"id":["a","b"]}`, nil},
		{Names("id"), "t:#{x.id}", `["a"]`, nil},
	} {
		tmpl, err := Parse(tt.template, Roots{"x": tt.root})
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.Expand(t.Context(), func(string) (any, error) { return tt.root.Decode([]byte(tt.json)) })
		if !slices.Equal(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("%s with %s = %q, %v, want %q", tt.template, tt.json, got, err, tt.want)
		}
	}
}
