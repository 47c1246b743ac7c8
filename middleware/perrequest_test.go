package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/middleware"
)

// A limit and a lease come out of JSON, and out of what authentication has stored. What is missing or no such value is answered by the name of
// the fact.
func TestLimitAndLeaseOfRequests(t *testing.T) {
	type plan struct{ Slots int }
	l := guardtest.New()
	g := guard.Must(guard.New(l, guard.Name("report"), guard.Key("report:#{path.id}"), guard.LimitFrom("#{plan.Slots}"), guard.LeaseFrom("#{body.timeout}")))
	slots := 3
	wrap := guard.Must(middleware.New(g, middleware.WithFacts("plan", func(*http.Request) (plan, error) { return plan{slots}, nil })))
	mux := http.NewServeMux()
	mux.Handle("POST /reports/{id}", wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for _, tt := range []struct {
		slots  int
		body   string
		status int
		fact   string
	}{
		{3, `{"timeout": "30s"}`, 200, ""},
		{5, `{"timeout": "1m"}`, 200, ""},
		{0, `{"timeout": "30s"}`, 400, `"fact":"plan.Slots"`},
		{10_001, `{"timeout": "30s"}`, 400, `"fact":"plan.Slots"`},
		{3, `{"timeout": 30}`, 400, `"fact":"body.timeout"`},
		{3, `{"timeout": "-30s"}`, 400, `"fact":"body.timeout"`},
		{3, `{"timeout": null}`, 400, `"fact":"body.timeout"`},
		{3, `{}`, 400, `"fact":"body.timeout"`},
		{3, `{"Timeout": "30s"}`, 400, `"fact":"body.timeout"`}, // which the handler may read, in other letters
		{3, `{"timeout": "30s", "TIMEOUT": "9h"}`, 400, ""},
	} {
		slots = tt.slots
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/reports/7", strings.NewReader(tt.body)))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.fact) || strings.Contains(w.Body.String(), "30") {
			t.Errorf("%d slots, %s: %d %s, want %d with %s", tt.slots, tt.body, w.Code, w.Body, tt.status, tt.fact)
		}
	}
	var got []lock.Request
	for _, s := range l.Steps() {
		if s.Op == guardtest.Asked {
			s.Request.Holder = ""
			got = append(got, s.Request)
		}
	}
	want := []lock.Request{
		{Key: "report:7", Kind: lock.Permit, Limit: 3, Lease: 30 * time.Second}, {Key: "report:7", Kind: lock.Permit, Limit: 5, Lease: time.Minute},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("asked for %+v, want %+v", got, want)
	}
}

// A name in other letters, which the handler may read, is not passed over where the expression has a value for what is missing.
func TestLimitInOtherLetters(t *testing.T) {
	g := guard.Must(guard.New(guardtest.New(), guard.Name("report"), guard.Key("report:#{path.id}"), guard.LimitFrom("#{body.slots ?? 9}")))
	mux := http.NewServeMux()
	mux.Handle("POST /reports/{id}", guard.Must(middleware.New(g))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for body, status := range map[string]int{`{}`: 200, `{"slots": 3}`: 200, `{"SLOTS": 1}`: 400} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/reports/7", strings.NewReader(body)))
		if w.Code != status {
			t.Errorf("%s: %d, want %d", body, w.Code, status)
		}
	}
}

// Texts of a header, a path and a query are no numbers: that shows at start, and a function makes some of them.
func TestLimitOfAHeader(t *testing.T) {
	for _, text := range []string{"#{header.Slots}", "#{path.id}", "#{query.slots}"} {
		_, err := middleware.New(guard.Must(guard.New(guardtest.New(), guard.Name("report"), guard.Key("report:#{path.id}"), guard.LimitFrom(text))))
		if err == nil || !strings.Contains(err.Error(), `guard "report": limit: keyexpr: makes <string>, and should make one whole number`) {
			t.Errorf("%s: %v", text, err)
		}
	}
	g := guard.Must(guard.New(guardtest.New(), guard.Name("report"), guard.Key("report:#{path.id}"), guard.LimitFrom("#{slots(header.Plan)}"),
		guard.TemplateFunc("slots", func(plan string) int { return len(plan) })))
	if _, err := middleware.New(g); err != nil {
		t.Error(err)
	}
}
