package ginguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	m.Run()
}

func newGin(t testing.TB, g *guard.Guard, opts ...middleware.Option) gin.HandlerFunc {
	t.Helper()
	h, err := ginguard.New(g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newGuard declares a guard that settles orders.
func newGuard(t testing.TB, l lock.Locker, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, append([]guard.Option{guard.FromSpec(guard.Spec{Name: "order.settle", Key: "order:#{path.id}"})}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestChain follows one request through handlers before and after the guard.
func TestChain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		locker adaptertest.Locker
		opts   []guard.Option
		want   string
	}{
		{"runs", adaptertest.Free, nil, "before next last after aborted=false status=201 errors=1"},
		{"refused", adaptertest.Down, nil, "before after aborted=true status=503 errors=1"},
		{"ambiguous", adaptertest.Free, []guard.Option{guard.Key(`order:#{query.a ?? "none"}`)}, "before after aborted=true status=400 errors=1"},
		{"skipped", adaptertest.Down, []guard.Option{guard.Outage(guard.Skip)}, "before after aborted=true status=204 errors=1"},
		{"unlocked", adaptertest.Down, []guard.Option{guard.Outage(guard.RunUnlocked)}, "before next last after aborted=false status=201 errors=1"},
		// Nothing but c.Status was called, which gin does not count as written.
		{"lost", adaptertest.Losing, nil, "before next last after aborted=false status=500 errors=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			e := gin.New()
			e.Use(func(c *gin.Context) {
				got = append(got, "before")
				_ = c.Error(errors.New("mine"))
				before := c.Request
				c.Next()
				if c.Request != before {
					t.Error("the request is not what it was")
				}
				got = append(got, "after", fmt.Sprintf("aborted=%v status=%d errors=%d", c.IsAborted(), c.Writer.Status(), len(c.Errors)))
			})
			e.Use(newGin(t, newGuard(t, tt.locker, append([]guard.Option{guard.FromSpec(guard.Spec{Key: "order:1", OneKey: true})}, tt.opts...)...)))
			e.Use(func(c *gin.Context) { got = append(got, "next") })
			e.POST("/orders", func(c *gin.Context) {
				got = append(got, "last")
				c.Status(http.StatusCreated)
			})
			e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders?a=1&a=2", nil))
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}

func TestParamsArePathValues(t *testing.T) {
	var got []string
	locker := adaptertest.Locker(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		got = append(got, r.Key)
		return adaptertest.Free(ctx, r)
	})
	e := gin.New()
	g := newGuard(t, locker, guard.Key("#{path.org}:#{path.file}"))
	e.GET("/orgs/:org/*file", newGin(t, g, middleware.Pattern("/orgs/{org}/{file...}")), func(c *gin.Context) {
		if !guard.Held(c.Request.Context(), "order.settle") || c.Request.PathValue("org") != "acme" {
			t.Error("the handler does not have the held request")
		}
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orgs/acme/a.txt", nil))
	if w.Code != 200 || !slices.Equal(got, []string{"acme:a.txt"}) {
		t.Errorf("status %d, keys %q", w.Code, got)
	}
}

func TestBodyCanBeBound(t *testing.T) {
	type transfer struct {
		From string `json:"from" binding:"required"`
	}
	e := gin.New()
	e.POST("/transfer", newGin(t, newGuard(t, memlock.New(), guard.Key("account:#{body.from}"))), func(c *gin.Context) {
		var in transfer
		if err := c.ShouldBindJSON(&in); err != nil {
			t.Error(err)
		}
		c.String(http.StatusOK, in.From)
	})
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/transfer", strings.NewReader(`{"from":"alice"}`))
	r.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(w, r)
	if w.Code != 200 || w.Body.String() != "alice" {
		t.Errorf("response = %d %q", w.Code, w.Body)
	}
}

func TestPanicReleasesAndGoesOn(t *testing.T) {
	recovery := gin.RecoveryWithWriter(io.Discard)
	none := func(c *gin.Context) { c.Next() }
	for _, tt := range []struct {
		name            string
		value           any
		outside, inside gin.HandlerFunc
		status          int // 0: the panic leaves gin
	}{
		{"no recovery", "boom", none, none, 0},
		{"http.ErrAbortHandler", http.ErrAbortHandler, none, none, 0},
		{"recovery outside", "boom", recovery, none, 500},
		{"recovery inside", "boom", none, recovery, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			locker := memlock.New()
			e := gin.New()
			e.GET("/orders/:id", tt.outside, newGin(t, newGuard(t, locker)), tt.inside, func(*gin.Context) { panic(tt.value) })
			w := httptest.NewRecorder()
			var left any
			func() {
				defer func() { left = recover() }()
				e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders/42", nil))
			}()
			if tt.status == 0 && left != tt.value {
				t.Errorf("panic = %v, want %v", left, tt.value)
			}
			if tt.status != 0 && (left != nil || w.Code != tt.status) {
				t.Errorf("panic = %v, status %d, want %d", left, w.Code, tt.status)
			}
			h, err := locker.Acquire(t.Context(), lock.Request{Key: "order:42"})
			if err != nil {
				t.Fatalf("still locked: %v", err)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEngineBehindMiddleware runs gin inside of net/http's adapter: c.Stream wants every method of the writer.
func TestEngineBehindMiddleware(t *testing.T) {
	e := gin.New()
	e.GET("/events", func(c *gin.Context) {
		n := 0
		c.Stream(func(w io.Writer) bool {
			fmt.Fprintf(w, "%d;", n)
			n++
			return n < 3
		})
	})
	g := newGuard(t, memlock.New(), guard.Key("events:#{header.Tenant}"))
	s := httptest.NewServer(guard.Must(middleware.New(g))(e))
	defer s.Close()
	r, err := http.NewRequest(http.MethodGet, s.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Tenant", "acme")
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil || body.String() != "0;1;2;" {
		t.Errorf("body = %q, %v", body.String(), err)
	}
}

func BenchmarkOverhead(b *testing.B) {
	for _, guarded := range []bool{false, true} {
		b.Run(fmt.Sprintf("guarded=%v", guarded), func(b *testing.B) {
			ran := 0
			e := gin.New()
			handlers := []gin.HandlerFunc{func(*gin.Context) { ran++ }}
			if guarded {
				handlers = slices.Insert(handlers, 0, newGin(b, newGuard(b, memlock.New())))
			}
			e.POST("/orders/:id", handlers...)
			r := httptest.NewRequest(http.MethodPost, "/orders/42", nil)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				e.ServeHTTP(w, r)
			}
			if ran != b.N {
				b.Errorf("ran %d times, want %d", ran, b.N)
			}
		})
	}
}
