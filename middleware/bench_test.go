package middleware_test

import (
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

// BenchmarkOverhead is what a guard adds to a handler that does nothing; "none" is the handler by itself.
func BenchmarkOverhead(b *testing.B) {
	for _, tt := range []struct{ name, key string }{
		{"none", ""},
		{"path", "order:#{path.id}"},
		{"header", "order:#{header.Tenant}"},
		{"query", "order:#{query.id}"},
		{"body", "order:#{body.id}"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			ran := 0
			var h http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { ran++ })
			if tt.key != "" {
				h = guard.Must(middleware.New(newGuard(b, memlock.New(), guard.Key(tt.key))))(h)
			}
			const text = `{"id": 42, "amount": 1}`
			body := rewinder{strings.NewReader(text)}
			r, err := http.NewRequest(http.MethodPost, "/orders/42?id=42", body)
			if err != nil {
				b.Fatal(err)
			}
			r.SetPathValue("id", "42")
			r.Header.Set("Tenant", "acme")
			w := discard{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(text)
				h.ServeHTTP(w, r)
			}
			if ran != b.N {
				b.Errorf("ran %d times, want %d", ran, b.N)
			}
		})
	}
}
