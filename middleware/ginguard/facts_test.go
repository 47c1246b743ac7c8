package ginguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
	"github.com/latchkey-go/latchkey/middleware/internal/adaptertest"
)

// keyed declares a guard with a key of its own.
func keyed(t testing.TB, l lock.Locker, key string) *guard.Guard {
	t.Helper()
	g, err := guard.New(l, guard.Name("order.settle"), guard.Key(key))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// keys gives out every lock and notes its key.
func keys(got *[]string) adaptertest.Locker {
	return func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		*got = append(*got, r.Key)
		return adaptertest.Free(ctx, r)
	}
}

// logged returns what the program logs until the end of the test.
func logged(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &b
}

func TestFactsOfGin(t *testing.T) {
	type claims struct{ Tenant string }
	set := func(key, value any) gin.HandlerFunc { return func(c *gin.Context) { c.Set(key, value) } }
	fromContext := ginguard.WithFacts("claims", func(c *gin.Context) (claims, error) {
		if c.Param("id") == "" {
			return claims{}, errors.New("not this request's")
		}
		return claims{c.GetHeader("Tenant")}, nil
	})
	for _, tt := range []struct {
		name, key string
		set       gin.HandlerFunc
		option    middleware.Option
		status    int
		want      string // the key; for a 500, what is logged
	}{
		{"value", "order:#{user}:#{path.id}", set("user", "alice"), ginguard.Value[string]("user"), 200, "order:alice:42"},
		{"number", "order:#{user}", set("user", int64(7)), ginguard.Value[int64]("user"), 200, "order:7"},
		{"struct", "order:#{user.Tenant}", set("user", &claims{"acme"}), ginguard.Value[*claims]("user"), 200, "order:acme"},
		{"function", "order:#{claims.Tenant}", nil, fromContext, 200, "order:acme"},
		{"of the request", "order:#{claims.Tenant}", nil, middleware.WithFacts("claims", func(r *http.Request) (claims, error) {
			return claims{r.PathValue("id")}, nil
		}), 200, "order:42"},
		{"empty value", "order:#{user}", set("user", ""), ginguard.Value[string]("user"), 400, ""},
		{"nil", "order:#{user.Tenant}", set("user", (*claims)(nil)), ginguard.Value[*claims]("user"), 400, ""},
		{"nothing set", "order:#{user}", nil, ginguard.Value[string]("user"), 500, "nothing was set as"},
		{"another type", "order:#{user}", set("user", 7), ginguard.Value[string]("user"), 500, "was set to a int, and the guard wants a string"},
		{"another name", "order:#{user}", set("usr", "alice"), ginguard.Value[string]("user"), 500, "nothing was set as"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := logged(t)
			var got []string
			e := gin.New()
			if tt.set != nil {
				e.Use(tt.set)
			}
			e.POST("/orders/:id", newGin(t, keyed(t, keys(&got), tt.key), tt.option), func(c *gin.Context) { c.Status(200) })
			for range 2 {
				r := httptest.NewRequest(http.MethodPost, "/orders/42", nil)
				r.Header.Set("Tenant", "acme")
				w := httptest.NewRecorder()
				e.ServeHTTP(w, r)
				if w.Code != tt.status {
					t.Errorf("response = %d %s, want %d", w.Code, w.Body, tt.status)
				}
			}
			if tt.status == 500 {
				if n := strings.Count(log.String(), tt.want); n != 1 {
					t.Errorf("logged %d times: %s", n, log)
				}
				return
			}
			if want := strings.Repeat(" "+tt.want, len(got)); tt.want != "" && (len(got) != 2 || " "+strings.Join(got, " ") != want) {
				t.Errorf("keys = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOptionsStayWithTheirPackage gives an option of gin's to net/http.
func TestOptionsStayWithTheirPackage(t *testing.T) {
	_, err := middleware.New(keyed(t, memlock.New(), "order:#{user}"), ginguard.Value[string]("user"))
	if err == nil || !strings.Contains(err.Error(), "ginguard") {
		t.Errorf("New = %v, want an error", err)
	}
}

// TestNoRouteNoLock puts a guard in front of all routes.
func TestNoRouteNoLock(t *testing.T) {
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.Use(newGin(t, newGuard(t, adaptertest.Locker(adaptertest.Down))))
	e.POST("/orders/:id", func(c *gin.Context) { t.Error("the handler ran") })
	for _, tt := range []struct {
		method, url string
		status      int
	}{
		{"POST", "/orders/42", 503},
		{"GET", "/orders/42", 405},
		{"POST", "/orderz/42", 404},
	} {
		w := httptest.NewRecorder()
		e.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, nil))
		if w.Code != tt.status {
			t.Errorf("%s %s = %d, want %d", tt.method, tt.url, w.Code, tt.status)
		}
	}
}

func TestRouteIsInNetHTTPsSpelling(t *testing.T) {
	var got []string
	e := gin.New()
	e.POST("/orgs/:org/*file", newGin(t, keyed(t, keys(&got), "#{route}|#{path.file}")), func(c *gin.Context) {
		if c.Request.Pattern != "/orgs/{org}/{file...}" {
			t.Errorf("pattern = %q in the handler", c.Request.Pattern)
		}
	})
	mux := http.NewServeMux()
	after := ""
	mux.HandleFunc("/orgs/", func(w http.ResponseWriter, r *http.Request) {
		e.ServeHTTP(w, r)
		after = r.Pattern
	})
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orgs/acme/a.txt", nil))
	if want := "/orgs/%7Borg%7D/%7Bfile...%7D|a.txt"; strings.Join(got, " ") != want || after != "/orgs/" {
		t.Errorf("keys = %q, want %q; the outer pattern is %q then", got, want, after)
	}
}

func TestMultipartFilesAreRemoved(t *testing.T) {
	var sent bytes.Buffer
	m := multipart.NewWriter(&sent)
	if err := m.WriteField("name", "value"); err != nil {
		t.Fatal(err)
	}
	m.Close()
	e := gin.New()
	set := func(c *gin.Context) { c.Set("user", "alice") }
	e.POST("/orders/:id", set, newGin(t, keyed(t, memlock.New(), "#{user}"), ginguard.Value[string]("user")), func(c *gin.Context) {
		if c.PostForm("name") != "value" {
			t.Error("no form")
		}
	})
	r := httptest.NewRequest(http.MethodPost, "/orders/42", &sent)
	r.Header.Set("Content-Type", m.FormDataContentType())
	e.ServeHTTP(httptest.NewRecorder(), r)
	if r.MultipartForm == nil {
		t.Error("the server does not see the form")
	}
}

// TestErrorsOfTheServiceLayer has a handler that leaves a guard's error behind, in each of gin's ways.
func TestErrorsOfTheServiceLayer(t *testing.T) {
	busy := fmt.Errorf("pay: %w", &guard.Error{Guard: "order.pay", Err: guard.ErrBusy, RetryAfter: 1500 * time.Millisecond})
	for _, tt := range []struct {
		name    string
		handler gin.HandlerFunc
		status  int
		guard   bool // the answer names it
	}{
		{"Answer", func(c *gin.Context) {
			if !ginguard.Answer(c, busy) || !c.IsAborted() {
				t.Error("Answer is false, or the chain goes on")
			}
		}, 409, true},
		{"Answer, own error", func(c *gin.Context) {
			if ginguard.Answer(c, errors.New("no such order")) || c.IsAborted() {
				t.Error("Answer answers for what is no guard's")
			}
			c.Status(404)
		}, 404, false},
		{"c.Errors", func(c *gin.Context) {
			_ = c.Error(errors.New("first"))
			_ = c.Error(busy)
			_ = c.Error(errors.New("last"))
		}, 423, true},
		{"c.Errors of two guards", func(c *gin.Context) {
			_ = c.Error(&guard.Error{Guard: "order.ship", Err: guard.ErrOutage})
			_ = c.Error(busy)
		}, 423, true},
		{"c.Errors without one", func(c *gin.Context) { _ = c.Error(errors.New("no such order")).SetType(gin.ErrorTypePublic) }, 200, false},
		{"c.Errors, written", func(c *gin.Context) {
			_ = c.Error(busy)
			c.String(418, "no")
		}, 418, false},
		{"AbortWithError", func(c *gin.Context) { _ = c.AbortWithError(500, busy) }, 500, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := gin.New()
			errs, err := ginguard.Errors(middleware.Status(guard.ErrBusy, 423))
			if err != nil {
				t.Fatal(err)
			}
			e.Use(errs)
			e.POST("/orders", tt.handler)
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", nil))
			if w.Code != tt.status || strings.Contains(w.Body.String(), `"guard":"order.pay"`) != tt.guard {
				t.Errorf("response = %d %s, want %d", w.Code, w.Body, tt.status)
			}
			if tt.guard && w.Header().Get("Retry-After") != "2" {
				t.Errorf("Retry-After = %q", w.Header().Get("Retry-After"))
			}
		})
	}
	if _, err := ginguard.Errors(middleware.Status(guard.ErrLost, 200)); err == nil {
		t.Error("Errors with a wrong status is no error")
	}
}

func TestFallbackOfGin(t *testing.T) {
	e := gin.New()
	fallback := ginguard.Fallback(func(c *gin.Context, err error) {
		if !errors.Is(err, guard.ErrOutage) {
			t.Errorf("reason = %v, want an outage", err)
		}
		c.String(http.StatusAccepted, "later: %s", c.Param("id"))
	})
	e.Use(func(c *gin.Context) {
		r, out := c.Request, c.Writer
		c.Next()
		if c.Request != r || c.Writer != out || c.Writer.Status() != http.StatusAccepted {
			t.Errorf("the context is not what it was: status %d", c.Writer.Status())
		}
	})
	e.POST("/orders/:id", newGin(t, newGuard(t, adaptertest.Locker(adaptertest.Down)), fallback), func(*gin.Context) { t.Error("the handler ran") })
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
	if w.Code != 202 || w.Body.String() != "later: 42" {
		t.Errorf("response = %d %s", w.Code, w.Body)
	}
}

// TestFactsMayReadTheBody has a function and a handler that read the same body.
func TestFactsMayReadTheBody(t *testing.T) {
	type order struct{ ID string }
	bind := func(c *gin.Context) (o order, err error) { return o, c.ShouldBindJSON(&o) }
	var got []string
	e := gin.New()
	e.POST("/orders", newGin(t, keyed(t, keys(&got), "order:#{order.ID}"), ginguard.WithFacts("order", bind)), func(c *gin.Context) {
		o, err := bind(c)
		c.String(http.StatusOK, "%s %v", o.ID, err)
	})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"ID": "42"}`)))
	if key := strings.Join(got, " "); key != "order:42" || w.Body.String() != "42 <nil>" {
		t.Errorf("key %q, response %s", key, w.Body)
	}
}

func TestKeyFunctionsOfGin(t *testing.T) {
	for _, tt := range []struct {
		name string
		key  guard.Option
		want string
	}{
		{"KeyFunc", guard.KeyFunc(func(c *gin.Context) (string, error) { return "order:" + c.Param("id") + c.GetString("user"), nil }), "order:42alice"},
		{"KeyFunc of the request", guard.KeyFunc(func(r *http.Request) (string, error) { return "order:" + r.PathValue("id"), nil }), "order:42"},
		{"KeysFunc", guard.KeysFunc(func(c *gin.Context) ([]string, error) { return []string{c.Param("id"), "a"}, nil }), "42 a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			g := guard.Must(guard.New(keys(&got), guard.Name("order.settle"), tt.key))
			e := gin.New()
			e.POST("/orders/:id", func(c *gin.Context) { c.Set("user", "alice") }, newGin(t, g), func(*gin.Context) {})
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/orders/42", nil))
			if s := strings.Join(got, " "); s != tt.want || w.Code != 200 {
				t.Errorf("keys = %q, want %q (status %d)", s, tt.want, w.Code)
			}
		})
	}
}

// TestBodyThatGinKeeps was read by ShouldBindBodyWith in front of the guard, and is kept in gin's context.
func TestBodyThatGinKeeps(t *testing.T) {
	type order struct {
		ID string `json:"id"`
	}
	var got []string
	locker := adaptertest.Locker(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
		got = append(got, r.Key)
		return adaptertest.Free(ctx, r)
	})
	e := gin.New()
	e.Use(func(c *gin.Context) {
		if err := c.ShouldBindBodyWith(new(order), binding.JSON); err != nil {
			t.Error(err)
		}
	})
	e.POST("/orders", newGin(t, newGuard(t, locker, guard.Key("order:#{body.id}"))), func(c *gin.Context) {
		var o order
		if err := c.ShouldBindBodyWith(&o, binding.JSON); err != nil || o.ID != "42" {
			t.Errorf("the handler reads %+v, %v", o, err)
		}
	})
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(`{"id":"42"}`))
	r.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(w, r)
	if want := []string{"order:42"}; w.Code != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("status = %d %s, keys %q, want %q", w.Code, w.Body, got, want)
	}
}

// TestGinsViews are requests that gin's handlers read in another way than those of net/http.
func TestGinsViews(t *testing.T) {
	for _, tt := range []struct {
		name, key, method, kind, body, cookie string
		status                                int
		want                                  string // key
	}{
		{"escaped cookie", "#{cookie.id}", "GET", "", "", "id=%34%32", 200, "42"},
		{"malformed cookie", "#{cookie.id}", "GET", "", "", "id=%zz", 400, ""},
		{"no type", "#{body.id}", "POST", "", `{"id":"42"}`, "", 415, ""},
		{"suffix", "#{body.id}", "POST", "application/vnd.api+json", `{"id":"42"}`, "", 415, ""},
		{"blank behind the type", "#{body.id}", "POST", "application/json x", `{"id":"42"}`, "", 200, "42"},
		{"GET with a body", "#{body.id}", "GET", "application/json", `{"id":"42"}`, "", 415, ""},
		{"query beside JSON", "#{query.id}", "POST", "application/json", `{"id":"42"}`, "", 415, ""},
		{"query of a GET with a body", "#{query.id}", "GET", "application/json", `{"id":"43"}`, "", 200, "41"},
	} {
		var got []string
		locker := adaptertest.Locker(func(ctx context.Context, r lock.Request) (lock.Hold, error) {
			got = append(got, r.Key)
			return adaptertest.Free(ctx, r)
		})
		e := gin.New()
		e.Any("/orders", newGin(t, newGuard(t, locker, guard.Key(tt.key))), func(*gin.Context) {})
		w, r := httptest.NewRecorder(), httptest.NewRequest(tt.method, "/orders?id=41", strings.NewReader(tt.body))
		if tt.kind != "" {
			r.Header.Set("Content-Type", tt.kind)
		}
		r.Header.Set("Cookie", tt.cookie)
		e.ServeHTTP(w, r)
		if key := strings.Join(got, " "); w.Code != tt.status || key != tt.want {
			t.Errorf("%s: status %d, key %q, want %d, %q", tt.name, w.Code, key, tt.status, tt.want)
		}
	}
}
