package middleware_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
)

// discard is a ResponseWriter that costs nothing.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

type rewinder struct{ *strings.Reader }

func (rewinder) Close() error { return nil }

const benchBody = `{"id": 42, "amount": 1}`

// BenchmarkFunc is what BenchmarkOverhead is measured against: the same guard around a function.
func BenchmarkFunc(b *testing.B) {
	type request struct{ ID string }
	ran := 0
	f := guard.Must(guard.Func(newGuard(b, memlock.New(), guard.Key("order:#{req.ID}")), func(context.Context, request) (int, error) {
		ran++
		return ran, nil
	}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f(b.Context(), request{"42"}); err != nil {
			b.Fatal(err)
		}
	}
	if ran != b.N {
		b.Errorf("ran %d times, want %d", ran, b.N)
	}
}

// BenchmarkOverhead is what a guard adds to a handler that does nothing, or writes a little; "none" is the handler by
// itself.
func BenchmarkOverhead(b *testing.B) {
	nothing := func(http.ResponseWriter) {}
	little := func(w http.ResponseWriter) { _, _ = io.WriteString(w, benchBody) }
	for _, tt := range []struct {
		name, key string
		write     func(http.ResponseWriter)
	}{
		{"none", "", nothing},
		{"path", "order:#{path.id}", nothing},
		{"path, answer", "order:#{path.id}", little},
		{"header", "order:#{header.Tenant}", nothing},
		{"query", "order:#{query.id}", nothing},
		{"body", "order:#{body.id}", nothing},
	} {
		b.Run(tt.name, func(b *testing.B) {
			ran := 0
			var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				ran++
				tt.write(w)
			})
			if tt.key != "" {
				h = guard.Must(middleware.New(newGuard(b, memlock.New(), guard.Key(tt.key))))(h)
			}
			body := rewinder{strings.NewReader(benchBody)}
			r, err := http.NewRequest(http.MethodPost, "/orders/42?id=42", body)
			if err != nil {
				b.Fatal(err)
			}
			r.ContentLength = int64(len(benchBody))
			r.Pattern = "/orders/{id}"
			r.SetPathValue("id", "42")
			r.Header.Set("Tenant", "acme")
			w := discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(benchBody)
				h.ServeHTTP(w, r)
			}
			if ran != b.N {
				b.Errorf("ran %d times, want %d", ran, b.N)
			}
		})
	}
}

// TestAllocations bounds what middleware allocates beyond a guarded function: the request's copy, the watch over the held context, the
// header as it was, what is held back. A body is read and stopped, parsed and replayed.
func TestAllocations(t *testing.T) {
	type request struct{ ID string }
	f := guard.Must(guard.Func(newGuard(t, memlock.New(), guard.Key("order:#{req.ID}")), func(context.Context, request) (int, error) {
		return 0, nil
	}))
	bare := testing.AllocsPerRun(100, func() {
		if _, err := f(t.Context(), request{"42"}); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		key  string
		most float64 // more than bare
	}{{"order:#{path.id}", 30}, {"order:#{body.id}", 75}} {
		h := guard.Must(middleware.New(newGuard(t, memlock.New(), guard.Key(tt.key))))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, benchBody)
		}))
		body := rewinder{strings.NewReader(benchBody)}
		r, err := http.NewRequest(http.MethodPost, "/orders/42", body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(benchBody))
		r.Pattern = "/orders/{id}"
		r.SetPathValue("id", "42")
		w := discard{http.Header{}}
		got := testing.AllocsPerRun(100, func() {
			body.Reset(benchBody)
			h.ServeHTTP(w, r)
		})
		if got > bare+tt.most {
			t.Errorf("%s: %v allocations a request, %v for a function, want at most %v more", tt.key, got, bare, tt.most)
		}
	}
}
