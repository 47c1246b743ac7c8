package views

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/gin-gonic/gin/binding"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/examples/routers/adapt"
	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/guardtest"
	"github.com/latchkey-go/latchkey/lock"
	"github.com/latchkey-go/latchkey/lock/memlock"
	"github.com/latchkey-go/latchkey/middleware"
	"github.com/latchkey-go/latchkey/middleware/ginguard"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	slog.SetDefault(slog.New(slog.DiscardHandler)) // guards that do not fit a route say so
	os.Exit(m.Run())
}

// TestTwoViews sends random spellings of a few requests to a guard and to a usual reader of the same fact behind it. Two requests that are one
// to the reader must have one key, or be refused: with two keys they would run at once. docs/security.md has a row for each reader.
//
// A failure names its seed; LATCHKEY_SEED plays it again.
func TestTwoViews(t *testing.T) {
	seed := newSeed(t)
	for _, v := range views {
		for _, declared := range v.declarations() {
			t.Run(v.reader+"/"+declared, func(t *testing.T) {
				t.Parallel()
				v.compare(t, declared, spelling, seed)
			})
		}
	}
}

func newSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LATCHKEY_SEED")
	if text == "" {
		return rand.Uint64() >> 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// view is a reader of one fact.
type view struct {
	reader string
	fact   string // in the words of a key
	mount  mount  // serves the reader behind a guard
	opts   []middleware.Option
}

// A speller makes a random request, in bytes.
type speller func(r *rand.Rand) string

// mount serves a guarded handler at /v/{x} and /f/{rest}, which reports what it takes for the fact. A handler that can't read reports nothing.
type mount func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler

// declarations use the fact alone, with a default, and in a condition.
func (v view) declarations() []string {
	alone, ordinary, when := "v:#{"+v.fact+"}", "v:#{"+v.fact+` ?? "none"}`, "v; when="+v.fact+` == "42"`
	root, _, _ := strings.Cut(v.fact, ".")
	switch root {
	case "host", "route":
		return []string{alone}
	case "method":
		return []string{alone, "v; when=" + v.fact + ` == "POST"`}
	case "path", `path["*"]`:
		if v.fact != "path.x" {
			return []string{alone}
		}
		return []string{alone, when}
	}
	if v.fact == "body.X" { // of a type, in which it can't be missing
		return []string{alone, when}
	}
	return []string{alone, ordinary, when}
}

func (v view) compare(t *testing.T, declared string, spell speller, seed uint64) {
	const requests = 1200
	r := rand.New(rand.NewPCG(seed, 0))
	key, when, _ := strings.Cut(declared, "; when=")
	var saw, locked string
	var ran bool
	l := memlock.New()
	g := guard.Must(guard.New(guardtest.Func(func(ctx context.Context, q lock.Request) (lock.Hold, error) {
		locked = q.Key
		return l.Acquire(ctx, q)
	}), guard.FromSpec(guard.Spec{Name: "view", Key: key, When: when, OneKey: when != ""})))
	h := v.mount(g, func(s string) { saw, ran = s, true }, v.opts)

	type seen struct{ key, request string }
	bySight, keys, admitted := make(map[string]seen), make(map[string]bool), 0
	for range requests {
		raw := spell(r)
		q, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		if err != nil {
			continue // a server refuses it
		}
		saw, locked, ran = "", "(none)", false
		h.ServeHTTP(httptest.NewRecorder(), q)
		if !ran {
			continue
		}
		admitted++
		keys[locked] = true
		if before, ok := bySight[saw]; ok && before.key != locked {
			t.Fatalf("seed %d: the handler sees %q in both requests, which have the keys %s and %s:\n%s\n---\n%s", seed, saw, before.key, locked, before.request, raw)
		}
		bySight[saw] = seen{locked, raw}
	}
	if admitted < requests/200 || len(keys) < 2 {
		t.Errorf("seed %d: %d of %d requests came to the handler, with the keys %v", seed, admitted, requests, keys)
	}
}

// chance writes requests in bytes. Each of their parts says 42, 7 or nothing, in one of many ways.
type chance struct{ *rand.Rand }

func (r chance) pick(of ...string) string { return of[r.IntN(len(of))] }
func (r chance) odd() bool                { return r.IntN(4) == 0 }
func (r chance) value() string            { return r.pick("42", "42", "7", "a b", "") }
func (r chance) name() string             { return r.pick("x", "x", "x", "x", "X", "y") }

// escaped is s with needless escapes.
func (r chance) escaped(s string, needed func(string) string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case r.odd():
			fmt.Fprintf(&b, r.pick("%%%02x", "%%%02X"), c)
		default:
			b.WriteString(needed(string(c)))
		}
	}
	return b.String()
}

func (r chance) pairs() string {
	var all []string
	for range r.IntN(3) {
		all = append(all, r.escaped(r.name(), url.QueryEscape)+"="+r.escaped(r.value(), url.QueryEscape))
	}
	return strings.Join(all, r.pick("&", "&", "&", ";"))
}

func (r chance) quoted(s string) string {
	if r.odd() {
		return `"\u00` + fmt.Sprintf("%02x", s[0]) + s[1:] + `"`
	}
	return `"` + s + `"`
}

func (r chance) object() string {
	var members []string
	for range 1 + r.IntN(2) {
		v := r.pick(`"42"`, `"42"`, `"7"`, `"4\u0032"`, "null", `""`, `["42"]`)
		members = append(members, r.quoted(r.pick("x", "x", "x", "X", "y"))+":"+v)
	}
	return r.pick("", "", " ") + "{" + strings.Join(members, ",") + "}" + r.pick("", "", "", "{}", "\n")
}

func (r chance) many() (body, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for range r.IntN(3) {
		_ = w.WriteField(r.name(), r.value())
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

// spelling is a request in bytes.
func spelling(rnd *rand.Rand) string {
	r := chance{rnd}
	path := "/v/" + r.escaped(r.pick("42", "42", "7", "a b", "a%b", "%34%32", "a/b"), url.PathEscape)
	if r.odd() {
		path = "/f/" + r.escaped("a", url.PathEscape) + "/" + r.escaped(r.pick("42", "7"), url.PathEscape)
	}
	if q := r.pairs(); q != "" {
		path += "?" + q
	}
	var head []string
	add := func(name, value string) { head = append(head, name+": "+value) }
	add("Host", r.pick("a.example", "A.example", "a.example:80", "a.example.", "b.example"))
	for range r.pick("", "x", "x", "x", "xx") {
		add(r.pick("X-Fact", "x-fact", "X-FACT"), r.value())
	}
	for range r.pick("", "x", "x", "x", "xx") {
		add("Cookie", r.name()+"="+r.pick("42", `"42"`, "%34%32", "4%32", "7", "%zz", ""))
	}
	var body, kind string
	switch r.IntN(5) {
	case 0:
		body, kind = r.object(), "application/json"
	case 1:
		body, kind = r.object(), r.pick("application/json", "application/json;charset=utf-8", "application/json ; x=y", "Application/JSON", "application/vnd.x+json",
			"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "", "nonsense/")
	case 2:
		body, kind = r.pairs(), r.pick("application/x-www-form-urlencoded", "application/x-www-form-urlencoded", "application/X-www-form-urlencoded; charset=utf-8", "text/plain", "application/json", "")
	case 3:
		body, kind = r.many()
	}
	if kind != "" {
		add("Content-Type", kind)
		if r.IntN(20) == 0 {
			add("Content-Type", "application/json")
		}
	}
	if r.odd() && body != "" {
		add("Transfer-Encoding", "chunked")
		body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	} else if body != "" || r.odd() {
		add("Content-Length", strconv.Itoa(len(body)))
	}
	return r.pick("GET", "POST", "POST", "PUT", "PATCH", "DELETE") + " " + path + " HTTP/1.1\r\n" + strings.Join(head, "\r\n") + "\r\n\r\n" + body
}

// fields are a struct that a handler binds.
type fields struct {
	X string `json:"x" form:"x"`
}

// onlyJSON is one for readers that would put several parts of a request into one field.
type onlyJSON struct {
	X string `json:"x"`
}

// views are the usual readers of each root.
var views = []view{
	{"net-http PathValue", "path.x", std(func(r *http.Request) (string, error) { return r.PathValue("x"), nil }), nil},
	{"net-http PathValue of the rest", "path.rest", std(func(r *http.Request) (string, error) { return r.PathValue("rest"), nil }), nil},
	{"net-http URL.Query", "query.x", std(func(r *http.Request) (string, error) { return r.URL.Query().Get("x"), nil }), options(middleware.QueryOnly())},
	{"net-http FormValue", "query.x", std(func(r *http.Request) (string, error) { return r.FormValue("x"), nil }), nil},
	{"net-http FormValue", "form.x", std(func(r *http.Request) (string, error) { return r.FormValue("x"), nil }), nil},
	{"net-http PostFormValue", "form.x", std(func(r *http.Request) (string, error) { return r.PostFormValue("x"), nil }), nil},
	{"net-http Header.Get", `header["X-Fact"]`, std(func(r *http.Request) (string, error) { return r.Header.Get("X-Fact"), nil }), nil},
	{"net-http Cookie", "cookie.x", std(stdCookie), nil},
	{"net-http Host", "host", std(func(r *http.Request) (string, error) { return r.Host, nil }), nil},
	{"net-http Method", "method", std(func(r *http.Request) (string, error) { return r.Method, nil }), nil},
	{"net-http Pattern", "route", std(func(r *http.Request) (string, error) { return r.Pattern, nil }), nil},
	{"encoding-json", "body.x", std(stdJSON), nil},
	{"encoding-json of a type", "body.X", std(stdJSON), options(middleware.Body[onlyJSON]())},
	{"encoding-json whatever the type says", "body.x", std(stdJSON), options(middleware.BodyIsJSON())},

	{"chi URLParam", "path.x", onChi(func(r *http.Request) (string, error) { return chi.URLParam(r, "x"), nil }), nil},
	{"chi URLParam, unescaped", "path.x", onChi(func(r *http.Request) (string, error) { return url.PathUnescape(chi.URLParam(r, "x")) }), nil},
	{"chi URLParam of the rest", `path["*"]`, onChi(func(r *http.Request) (string, error) { return url.PathUnescape(chi.URLParam(r, "*")) }), nil},
	{"chi RoutePattern", "route", onChi(func(r *http.Request) (string, error) { return chi.RouteContext(r.Context()).RoutePattern(), nil }), nil},

	{"gorilla Vars", "path.x", onGorilla(false), nil},
	{"gorilla Vars with UseEncodedPath", "path.x", onGorilla(true), nil},

	{"gin Param", "path.x", onGin(func(c *gin.Context) (string, error) { return c.Param("x"), nil }), nil},
	{"gin Param with UseRawPath", "path.x", onGin(func(c *gin.Context) (string, error) { return c.Param("x"), nil }, rawPath), nil},
	{"gin Param with UseRawPath, as it is escaped", "path.x", onGin(func(c *gin.Context) (string, error) { return url.PathUnescape(c.Param("x")) }, rawPath, escapedValues), nil},
	{"gin Param of the rest", "path.rest", onGin(func(c *gin.Context) (string, error) { return c.Param("rest"), nil }), nil},
	{"gin ShouldBindUri", "path.x", onGin(func(c *gin.Context) (string, error) {
		var v struct {
			X string `uri:"x"`
		}
		err := c.ShouldBindUri(&v)
		return v.X, err
	}), nil},
	{"gin FullPath", "route", onGin(func(c *gin.Context) (string, error) { return c.FullPath(), nil }), nil},
	{"gin Query", "query.x", onGin(func(c *gin.Context) (string, error) { return c.Query("x"), nil }), options(middleware.QueryOnly())},
	{"gin ShouldBindQuery", "query.x", onGin(bound((*gin.Context).ShouldBindQuery)), options(middleware.QueryOnly())},
	{"gin ShouldBind", "query.x", onGin(bound((*gin.Context).ShouldBind)), nil},
	{"gin Bind", "query.x", onGin(bound((*gin.Context).Bind)), nil},
	{"gin ShouldBind", "form.x", onGin(bound((*gin.Context).ShouldBind)), nil},
	{"gin Bind", "form.x", onGin(bound((*gin.Context).Bind)), nil},
	{"gin PostForm", "form.x", onGin(func(c *gin.Context) (string, error) { return c.PostForm("x"), nil }), nil},
	{"gin GetHeader", `header["X-Fact"]`, onGin(func(c *gin.Context) (string, error) { return c.GetHeader("X-Fact"), nil }), nil},
	{"gin ShouldBindHeader", `header["X-Fact"]`, onGin(func(c *gin.Context) (string, error) {
		var v struct {
			X string `header:"x-fact"`
		}
		err := c.ShouldBindHeader(&v)
		return v.X, err
	}), nil},
	{"gin Cookie", "cookie.x", onGin(func(c *gin.Context) (string, error) { s, _ := c.Cookie("x"); return s, nil }), nil},
	{"gin Request.Host", "host", onGin(func(c *gin.Context) (string, error) { return c.Request.Host, nil }), nil},
	{"gin Request.Method", "method", onGin(func(c *gin.Context) (string, error) { return c.Request.Method, nil }), nil},
	{"gin ShouldBind", "body.x", onGin(bound((*gin.Context).ShouldBind)), nil},
	{"gin Bind", "body.x", onGin(bound((*gin.Context).Bind)), nil},
	{"gin ShouldBind of a type", "body.X", onGin(bound((*gin.Context).ShouldBind)), options(middleware.Body[fields]())},
	{"gin ShouldBindJSON", "body.x", onGin(bound((*gin.Context).ShouldBindJSON)), options(middleware.BodyIsJSON())},
	{"gin ShouldBindBodyWith", "body.x", onGin(func(c *gin.Context) (string, error) {
		var v fields
		err := c.ShouldBindBodyWith(&v, binding.JSON)
		return v.X, err
	}), options(middleware.BodyIsJSON())},
	{"gin ShouldBindBodyWith in front, too", "body.x", onGin(bound(func(c *gin.Context, v any) error { return c.ShouldBindBodyWith(v, binding.JSON) }), bindInFront), options(middleware.BodyIsJSON())},

	{"echo Param", "path.x", onEcho4(func(c echo4.Context) (string, error) { return c.Param("x"), nil }), nil},
	{"echo Param, unescaped", "path.x", onEcho4(func(c echo4.Context) (string, error) { return url.PathUnescape(c.Param("x")) }), nil},
	{"echo Param of the rest", `path["*"]`, onEcho4(func(c echo4.Context) (string, error) { return url.PathUnescape(c.Param("*")) }), nil},
	{"echo Path", "route", onEcho4(func(c echo4.Context) (string, error) { return c.Path(), nil }), nil},
	{"echo QueryParam", "query.x", onEcho4(func(c echo4.Context) (string, error) { return c.QueryParam("x"), nil }), options(middleware.QueryOnly())},
	{"echo FormValue", "query.x", onEcho4(func(c echo4.Context) (string, error) { return c.FormValue("x"), nil }), nil},
	{"echo FormValue", "form.x", onEcho4(func(c echo4.Context) (string, error) { return c.FormValue("x"), nil }), nil},
	{"echo Cookie", "cookie.x", onEcho4(func(c echo4.Context) (string, error) { return stdCookie(c.Request()) }), nil},
	{"echo Bind", "body.x", onEcho4(func(c echo4.Context) (string, error) { var v onlyJSON; err := c.Bind(&v); return v.X, err }), nil},

	{"echo 5 Param", "path.x", onEcho5(func(c *echo5.Context) (string, error) { return c.Param("x"), nil }), nil},
	{"echo 5 Param, unescaped", "path.x", onEcho5(func(c *echo5.Context) (string, error) { return url.PathUnescape(c.Param("x")) }), nil},
	{"echo 5 QueryParam", "query.x", onEcho5(func(c *echo5.Context) (string, error) { return c.QueryParam("x"), nil }), options(middleware.QueryOnly())},
	{"echo 5 FormValue", "query.x", onEcho5(func(c *echo5.Context) (string, error) { return c.FormValue("x"), nil }), nil},
	{"echo 5 FormValue", "form.x", onEcho5(func(c *echo5.Context) (string, error) { return c.FormValue("x"), nil }), nil},
	{"echo 5 Bind", "body.x", onEcho5(func(c *echo5.Context) (string, error) { var v onlyJSON; err := c.Bind(&v); return v.X, err }), nil},
}

func options(o ...middleware.Option) []middleware.Option { return o }

func stdCookie(r *http.Request) (string, error) {
	c, err := r.Cookie("x")
	if errors.Is(err, http.ErrNoCookie) {
		return "", nil
	}
	return c.Value, err
}

func stdJSON(r *http.Request) (string, error) {
	var v onlyJSON
	err := json.NewDecoder(r.Body).Decode(&v)
	return v.X, err
}

// report tells what a handler saw, unless it could not read.
func report(saw func(string), s string, err error) {
	if err == nil {
		saw(s)
	}
}

func handler(saw func(string), read func(*http.Request) (string, error)) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s, err := read(r)
		report(saw, s, err)
	})
}

func std(read func(*http.Request) (string, error)) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		h := guard.Must(middleware.New(g, opts...))(handler(saw, read))
		m := http.NewServeMux()
		m.Handle("/v/{x}", h)
		m.Handle("/f/{rest...}", h)
		return m
	}
}

func onChi(read func(*http.Request) (string, error)) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		r := chi.NewRouter()
		guarded := r.With(guard.Must(middleware.New(g, opts...)))
		guarded.Handle("/v/{x}", handler(saw, read))
		guarded.Handle("/f/*", handler(saw, read))
		return r
	}
}

func onGorilla(encoded bool) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		r := mux.NewRouter()
		if encoded {
			r = r.UseEncodedPath()
		}
		r.Use(guard.Must(middleware.New(g, append(slices.Clip(opts), middleware.PathValues(mux.Vars))...)))
		h := handler(saw, func(r *http.Request) (string, error) {
			if encoded {
				return url.PathUnescape(mux.Vars(r)["x"])
			}
			return mux.Vars(r)["x"], nil
		})
		r.Handle("/v/{x}", h)
		r.Handle("/f/{rest:.*}", h)
		return r
	}
}

func rawPath(e *gin.Engine)       { e.UseRawPath = true }
func escapedValues(e *gin.Engine) { e.UnescapePathValues = false }
func bindInFront(e *gin.Engine) {
	e.Use(func(c *gin.Context) { _ = c.ShouldBindBodyWith(new(fields), binding.JSON) })
}

func bound(bind func(*gin.Context, any) error) func(*gin.Context) (string, error) {
	return func(c *gin.Context) (string, error) {
		var v fields
		err := bind(c, &v)
		return v.X, err
	}
}

func onGin(read func(*gin.Context) (string, error), set ...func(*gin.Engine)) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		e := gin.New()
		for _, f := range set {
			f(e)
		}
		guarded := guard.Must(ginguard.New(g, opts...))
		h := func(c *gin.Context) {
			s, err := read(c)
			report(saw, s, err)
		}
		e.Any("/v/:x", guarded, h)
		e.Any("/f/*rest", guarded, h)
		return e
	}
}

func onEcho4(read func(echo4.Context) (string, error)) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		e := echo4.New()
		guarded := adapt.Echo(guard.Must(middleware.New(g, opts...)))
		h := func(c echo4.Context) error {
			s, err := read(c)
			report(saw, s, err)
			return err
		}
		e.Any("/v/:x", h, guarded)
		e.Any("/f/*", h, guarded)
		return e
	}
}

func onEcho5(read func(*echo5.Context) (string, error)) mount {
	return func(g *guard.Guard, saw func(string), opts []middleware.Option) http.Handler {
		e := echo5.New()
		guarded := adapt.Echo5(guard.Must(middleware.New(g, opts...)))
		h := func(c *echo5.Context) error {
			s, err := read(c)
			report(saw, s, err)
			return err
		}
		e.Any("/v/:x", h, guarded)
		e.Any("/f/*", h, guarded)
		return e
	}
}

// TestRoutersAgree has one key for one path, whichever router serves it and however it is spelt.
func TestRoutersAgree(t *testing.T) {
	none := func(*http.Request) (string, error) { return "", nil }
	for name, serve := range map[string]struct {
		mount mount
		rest  string // what the rest of a path is called
	}{
		"net/http":                {std(none), "rest"},
		"chi":                     {onChi(none), "*"},
		"gorilla":                 {onGorilla(false), "rest"},
		"gorilla, UseEncodedPath": {onGorilla(true), "rest"},
		"gin":                     {onGin(func(*gin.Context) (string, error) { return "", nil }), "rest"},
		"gin, UseRawPath":         {onGin(func(*gin.Context) (string, error) { return "", nil }, rawPath, escapedValues), "rest"},
		"echo":                    {onEcho4(func(echo4.Context) (string, error) { return "", nil }), "*"},
		"echo 5":                  {onEcho5(func(*echo5.Context) (string, error) { return "", nil }), "*"},
	} {
		for path, want := range map[string]string{
			"/v/42": "x:42", "/v/%34%32": "x:42", "/v/%342": "x:42", "/v/a%20b": "x:a%20b", "/v/a%2bb": "x:a+b", "/v/a+b": "x:a+b", "/v/%e4%b8%9c": "x:东", "/v/%E4%B8%9C": "x:东",
			"/f/a/b": "rest:a/b", "/f/%61/b": "rest:a/b", "/f/a/b%2Fc": "rest:a/b/c",
		} {
			key := "x:#{path.x}"
			if strings.HasPrefix(path, "/f/") {
				key = `rest:#{path["` + serve.rest + `"]}`
			} else if !strings.HasPrefix(name, "gorilla") { // which has no pattern in the request
				key, want = "#{route}:#{path.x}", strings.Replace(want, "x", "/v/%7Bx%7D", 1)
			}
			l := guardtest.New()
			g := guard.Must(guard.New(l, guard.Name("view"), guard.Key(key)))
			serve.mount(g, func(string) {}, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
			if got := strings.Join(l.Keys(), " "); got != want {
				t.Errorf("%s: %s has the key %q, want %q", name, path, got, want)
			}
		}
	}
}
