package route

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		want    string
	}{
		{"POST example.com/orders/{id}/{rest...}", "id rest"},
		{"/orders/{$}", ""},
		{"/orders/{id:[0-9]{2,3}}/*", "* id"},
		{"/orders/:id/*file", "id file"},
		{"/v1/:batch", "batch"},
		{"/orders/a:b/:/*", "*"},
		{"", ""},
	} {
		if got := strings.Join(Names(tt.pattern), " "); got != tt.want {
			t.Errorf("Names(%q) = %q, want %q", tt.pattern, got, tt.want)
		}
	}
}

func TestSpellings(t *testing.T) {
	for _, tt := range []struct{ gin, http string }{
		{"/orders/:id", "/orders/{id}"},
		{"/orgs/:org/*file", "/orgs/{org}/{file...}"},
		{"/", "/"},
	} {
		if got := FromGin(tt.gin); got != tt.http {
			t.Errorf("FromGin(%q) = %q, want %q", tt.gin, got, tt.http)
		}
		if got := ToGin(tt.http); got != tt.gin {
			t.Errorf("ToGin(%q) = %q, want %q", tt.http, got, tt.gin)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, tt := range []struct {
		tag, want string
		malformed bool
	}{
		{`route:"GET /a"`, "GET /a", false},
		{`guard:"a:#{path.b}; when=query.route:x" route:"GET /a"`, "GET /a", false},
		{`guard:"route: a"`, "", false},
		{``, "", false},
		{`route:GET`, "", true},
		{`guard:"a",route:"GET /a"`, "", true},
		{`guard:a route:"GET /a"`, "", true},
	} {
		got, ok, err := Lookup(reflect.StructTag(tt.tag))
		if got != tt.want || ok != (tt.want != "") || (err != nil) != tt.malformed {
			t.Errorf("Lookup(%q) = %q, %v, %v", tt.tag, got, ok, err)
		}
	}
}

func TestEach(t *testing.T) {
	type inner struct {
		A    int `route:"/a"`
		Self *inner
	}
	type outer struct {
		inner
		B     int `route:"/b"`
		Named inner
		Ptr   *inner
		Nil   *inner
		other inner
	}
	o := &outer{Ptr: &inner{}}
	o.Ptr.Self = o.Ptr
	var got []string
	err := Each(o, func(pattern string, f reflect.StructField, v reflect.Value) error {
		got = append(got, pattern+" "+f.Name)
		return nil
	})
	if want := []string{"/a A", "/b B", "/a A", "/a A"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("Each = %q, %v, want %q", got, err, want)
	}
	_ = o.other
}
