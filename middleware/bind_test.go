package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, text, " ", guard.Held(r.Context(), "API."+text))
	}
}

type admin struct {
	Purge http.Handler `route:"DELETE /orders/{id}" guard:"order:#{path.id}; name=API.Purge"`
}

type API struct {
	Settle http.HandlerFunc                             `route:"POST /orders/{id}/settle" guard:"order:#{tenant}:#{path.id}"`
	Cancel func(w http.ResponseWriter, r *http.Request) `route:"POST /orders/{id}/cancel" guard:"order:#{path.id}"`
	List   http.HandlerFunc                             `route:"GET /orders"`
	Custom http.HandlerFunc                             `guard:"custom:#{header.Tenant}:#{route}"`
	Other  int
	admin
}

func newAPI() *API {
	return &API{
		Settle: say("Settle"), Cancel: say("Cancel"), List: say("List"), Custom: say("Custom"), admin: admin{say("Purge")},
	}
}

func TestBindAndRegister(t *testing.T) {
	var got []string
	api := newAPI()
	tenant := middleware.WithFacts("tenant", func(r *http.Request) (string, error) { return r.Header.Get("Tenant"), nil })
	if err := middleware.Bind(guard.Must(guard.New(keys(&got))), api, tenant); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := middleware.Register(mux, api); err != nil {
		t.Fatal(err)
	}
	mux.Handle("PUT /custom", api.Custom)
	for _, tt := range []struct{ method, url, body, key string }{
		{"POST", "/orders/42/settle", "Settle true", "order:acme:42"},
		{"POST", "/orders/42/cancel", "Cancel true", "order:42"},
		{"GET", "/orders", "List false", ""},
		{"PUT", "/custom", "Custom true", "custom:acme:/custom"},
		{"DELETE", "/orders/42", "Purge true", "order:42"},
	} {
		got = nil
		r := httptest.NewRequest(tt.method, tt.url, nil)
		r.Header.Set("Tenant", "acme")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.String() != tt.body || strings.Join(got, " ") != tt.key {
			t.Errorf("%s %s = %d %q with keys %q, want %q with %q", tt.method, tt.url, w.Code, w.Body, got, tt.body, tt.key)
		}
	}
}

// tagged points to a struct of one handler, whose tag may be one that go vet would not let pass.
func tagged(h http.HandlerFunc, tag string) any {
	t := reflect.StructOf([]reflect.StructField{{Name: "Settle", Type: reflect.TypeFor[http.HandlerFunc](), Tag: reflect.StructTag(tag)}})
	v := reflect.New(t)
	v.Elem().Field(0).Set(reflect.ValueOf(h))
	return v.Interface()
}

func TestBindReportsMistakes(t *testing.T) {
	h := say("x")
	done := &struct {
		Settle http.HandlerFunc `guard:"order:#{path.id}"`
	}{h}
	if err := middleware.Bind(guard.Must(guard.New(memlock.New())), done); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		target any
		want   string
	}{
		{"path value that the route lacks", tagged(h, `route:"POST /orders/{id}" guard:"order:#{path.idd}"`), "Settle"},
		{"gin's spelling", tagged(h, `route:"POST /orders/:id" guard:"order:#{path.id}"`), `write "POST /orders/{id}"`},
		{"malformed route tag", tagged(h, `guard:"order:#{path.id}" route:POST`), "malformed struct tag"},
		{"comma between the tags", tagged(h, `guard:"order:#{path.id}",route:"POST /orders/{id}"`), "malformed struct tag"},
		{"no key", tagged(h, `guard:"; wait=2s"`), "no key"},
		{"unknown attribute", tagged(h, `guard:"order:#{path.id}; wiat=2s"`), "did you mean wait"},
		{"root of functions", tagged(h, `guard:"order:#{req.ID}"`), "req"},
		{"args", tagged(h, `guard:"order:#{path.id}; args=w,r"`), "args"},
		{"fallback without one", tagged(h, `guard:"order:#{path.id}; busy=fallback"`), "fallback"},
		{"nil handler", tagged(nil, `guard:"order:#{path.id}"`), "nil"},
		{"function of the service layer", &struct {
			Settle func(context.Context, int) error `guard:"order:#{path.id}"`
		}{func(context.Context, int) error { return nil }}, "not an http.HandlerFunc"},
		{"not exported", &struct {
			settle http.HandlerFunc `guard:"order:#{path.id}"`
		}{h}, "not exported"},
		{"bound twice", done, "guarded already"},
		{"two of one name", &struct {
			A http.HandlerFunc `guard:"order:#{path.id}; name=x"`
			B http.HandlerFunc `guard:"order:#{path.id}; name=x"`
		}{h, h}, `"x"`},
		{"no tag at all", &struct{ Settle http.HandlerFunc }{h}, "no field has a guard tag"},
		{"methods", http.NewServeMux(), "latchkey-gen"},
		{"no pointer", struct{}{}, "pointer to a struct"},
		{"nothing", nil, "pointer to a struct"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := middleware.Bind(guard.Must(guard.New(memlock.New())), tt.target)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Bind = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestBindReportsMistakesOfItsArguments(t *testing.T) {
	if err := middleware.Bind(nil, newAPI()); err == nil {
		t.Error("Bind with a nil guard is no error")
	}
	if err := middleware.Bind(guard.Must(guard.New(memlock.New())), newAPI(), nil); err == nil || !strings.Contains(err.Error(), "nil option") {
		t.Errorf("Bind with a nil option: %v", err)
	}
}

func TestRegisterReportsMistakes(t *testing.T) {
	h := say("x")
	taken := http.NewServeMux()
	taken.Handle("GET /orders", h)
	for _, tt := range []struct {
		name   string
		target any
		want   string
	}{
		{"not bound", newAPI(), "call Bind first"},
		{"conflict", &struct {
			List http.HandlerFunc `route:"GET /orders"`
		}{h}, "conflicts"},
		{"gin's spelling", &struct {
			List http.HandlerFunc `route:"GET /orders/:id"`
		}{h}, "write"},
		{"malformed tag", tagged(h, `route:GET`), "malformed struct tag"},
		{"nil handler", &struct {
			List http.HandlerFunc `route:"GET /o"`
		}{}, "nil"},
		{"no handler", &struct {
			List int `route:"GET /o"`
		}{}, "is a int"},
		{"not exported", &struct {
			list http.HandlerFunc `route:"GET /o"`
		}{h}, "not exported"},
		{"no tag at all", &struct{ List http.HandlerFunc }{h}, "has a route tag"},
		{"no struct", 7, "pointer to a struct"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := middleware.Register(taken, tt.target); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Register = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestBoundHandlersShareOptions is about a slice that Bind must not write to.
func TestBoundHandlersShareOptions(t *testing.T) {
	opts := make([]middleware.Option, 1, 8)
	opts[0] = middleware.Status(guard.ErrBusy, 423)
	two := &struct {
		A http.HandlerFunc `route:"/a/{x}" guard:"a:#{path.x}"`
		B http.HandlerFunc `route:"/b/{y}" guard:"b:#{path.y}"`
	}{say("A"), say("B")}
	if err := middleware.Bind(guard.Must(guard.New(adaptertest.Busy(0))), two, opts...); err != nil {
		t.Fatal(err)
	}
	if o := opts[:2][1]; o != nil {
		t.Errorf("Bind wrote %T into the options", o)
	}
	w := httptest.NewRecorder()
	two.A(w, httptest.NewRequest(http.MethodGet, "/a/1", nil))
	if w.Code != 500 { // outside of a mux
		t.Errorf("status = %d", w.Code)
	}
}

// TestBindOfTwoStructsOfAType has one guard in the registry for each field.
func TestBindOfTwoStructsOfAType(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	type API struct {
		Settle http.HandlerFunc `route:"POST /orders/{id}" guard:"order:#{path.id}"`
	}
	for range 2 {
		api := API{func(http.ResponseWriter, *http.Request) {}}
		if err := middleware.Bind(guard.Must(guard.New(memlock.New(), guard.In(reg))), &api); err != nil {
			t.Error(err)
		}
	}
	for info := range reg.All() {
		if info.Spec.Name != "API.Settle" {
			t.Errorf("guard %q", info.Spec.Name)
		}
	}
}

// TestBindWithoutTheFallbackOfAll has a field whose tag does without the fallback that the others have.
func TestBindWithoutTheFallbackOfAll(t *testing.T) {
	api := struct {
		Settle http.HandlerFunc `guard:"orders; one-key; name=settle"`
		Cancel http.HandlerFunc `guard:"orders; one-key; name=cancel; busy=fail; outage=fail"`
	}{say("Settle"), say("Cancel")}
	fallback := middleware.Fallback(func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusAccepted) })
	if err := middleware.Bind(guard.Must(guard.New(adaptertest.Busy(0))), &api, fallback); err != nil {
		t.Fatal(err)
	}
	for want, h := range map[int]http.HandlerFunc{http.StatusAccepted: api.Settle, http.StatusConflict: api.Cancel} {
		w := httptest.NewRecorder()
		h(w, httptest.NewRequest(http.MethodPost, "/", nil))
		if w.Code != want {
			t.Errorf("status = %d, want %d", w.Code, want)
		}
	}
}

// TestOverriddenMethods has a guard for other methods than it declares, as its registry says.
func TestOverriddenMethods(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	if err := reg.Override(map[string]guard.Spec{"orders": {Methods: "PUT"}}); err != nil {
		t.Fatal(err)
	}
	g := guard.Must(guard.New(adaptertest.Busy(0), guard.In(reg), guard.Name("orders"), guard.Key("orders"), guard.OneKey(), guard.Methods("POST")))
	h := guard.Must(middleware.New(g))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for method, want := range map[string]int{http.MethodPost: http.StatusOK, http.MethodPut: http.StatusConflict} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
		if w.Code != want {
			t.Errorf("%s: status = %d, want %d", method, w.Code, want)
		}
	}
}

// A guard before a handler takes what its registry says while it runs: other methods, and another member of the body, of which another spelling is refused.
func TestOverriddenWhileItRuns(t *testing.T) {
	reg := guard.Must(guard.NewRegistry())
	l := memlock.New()
	g := guard.Must(guard.New(l, guard.In(reg), guard.Name("orders"), guard.Key("order:#{body.id}")))
	h := guard.Must(middleware.New(g))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	guard.Must(l.Acquire(t.Context(), lock.Request{Key: "order:7"}))
	guard.Must(l.Acquire(t.Context(), lock.Request{Key: "tenant:3"}))
	status := func(method, body string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		return w.Code
	}
	if got := status(http.MethodPost, `{"id": 7, "Tenant": 3}`); got != http.StatusConflict {
		t.Errorf("before: %d", got)
	}
	if err := reg.Override(map[string]guard.Spec{"orders": {Key: `tenant:#{body.tenant ?? "none"}`, Methods: "POST"}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		method, body string
		want         int
	}{
		{http.MethodPost, `{"id": 7, "tenant": 4}`, http.StatusOK},
		{http.MethodPost, `{"id": 8, "tenant": 3}`, http.StatusConflict},
		{http.MethodPost, `{"id": 8, "Tenant": 3}`, http.StatusBadRequest},
		{http.MethodPut, `{"id": 8, "tenant": 3}`, http.StatusOK},
	} {
		if got := status(tt.method, tt.body); got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.body, got, tt.want)
		}
	}
	if err := reg.Override(map[string]guard.Spec{"orders": {Key: "tenant:#{path.id}#{bod.x}"}}); err == nil {
		t.Error("a key that reads what there is not was taken")
	}
}

// TestStackWithAKeyFunc has a key function in a guard that is not the first.
func TestStackWithAKeyFunc(t *testing.T) {
	l := memlock.New()
	first := guard.Must(guard.New(l, guard.Name("first"), guard.Key("tenant:#{header.Tenant}")))
	second := guard.Must(guard.New(l, guard.Name("second"), guard.KeyFunc(func(r *http.Request) (string, error) { return r.URL.Path, nil })))
	h := guard.Must(middleware.New(guard.Must(guard.Stack(first, second))))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := l.Acquire(t.Context(), lock.Request{Key: "/orders/7"}); !errors.Is(err, lock.ErrBusy) {
			t.Errorf("Acquire beside the handler = %v", err)
		}
	}))
	r := httptest.NewRequest(http.MethodPost, "/orders/7", nil)
	r.Header.Set("Tenant", "acme")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Errorf("status = %d", w.Code)
	}
}
