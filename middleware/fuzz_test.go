package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/middleware"
)

// factsOf are the values that a request gives by the rules of net/http: each has to be there once, and not be empty.
func factsOf(r *http.Request) (values []string, ok bool) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	var cookies []string
	for _, c := range r.CookiesNamed("id") {
		cookies = append(cookies, c.Value)
	}
	for _, all := range [][]string{query["id"], r.Header["Tenant"], cookies} {
		if len(all) != 1 || all[0] == "" {
			return nil, false
		}
		values = append(values, all[0])
	}
	return values, err == nil
}

// FuzzFacts holds that a request locks the key of its own facts, as net/http knows them, or gets 400 and locks nothing.
func FuzzFacts(f *testing.F) {
	const key = "#{query.id}:#{header.Tenant}:#{cookie.id}"
	for _, seed := range [][3]string{
		{"id=1", "a", "id=2"}, {"id=1&id=2", "a", "id=2"}, {"id=%31;", "a\nb", "id=2; id=3"}, {"ID=1", "", "id=\"2\""}, {"id=%zz", "a", "id"}, {"id=:", ":", "id=:"},
		{"id=%00", "\x00", "id=\x00"}, {"%69d=1", " a ", "id=2;id =3"}, {"id=#{1}", "#{req}", "id=${x}"}, {"id=%25", "%", "id=%25"}, {"id=%F0%9F", "\xff", "id=\xff"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	template, err := keyexpr.Parse(key, keyexpr.Roots{"query": keyexpr.AnyName(), "header": keyexpr.AnyName(), "cookie": keyexpr.AnyName()})
	if err != nil {
		f.Fatal(err)
	}
	var locked []string
	wrap, err := middleware.New(newGuard(f, keys(&locked), guard.Key(key)))
	if err != nil {
		f.Fatal(err)
	}
	h := wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	f.Fuzz(func(t *testing.T, query, tenants, cookie string) {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL.RawQuery = query
		r.Header["Tenant"] = strings.Split(tenants, "\n")
		r.Header["Cookie"] = []string{cookie}
		want, ok := factsOf(r)
		locked = nil
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch {
		case !ok && (w.Code != http.StatusBadRequest || len(locked) > 0):
			t.Errorf("without facts: status %d, locked %q", w.Code, locked)
		case ok && (w.Code != http.StatusOK || len(locked) != 1):
			t.Errorf("with the facts %q: status %d, locked %q", want, w.Code, locked)
		case ok:
			if got, ok := template.Match(locked[0]); len(locked[0]) < 512 && (!ok || !slices.Equal(got, want)) {
				t.Errorf("the key %q has %q, want %q", locked[0], got, want)
			}
		}
	})
}
