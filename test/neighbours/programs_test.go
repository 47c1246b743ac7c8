package neighbours

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/gin-contrib/cors"
	gingzip "github.com/gin-contrib/gzip"
	gintimeout "github.com/gin-contrib/timeout"
	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	chimiddleware "github.com/go-chi/chi/v5/middleware"
	"github.com/gorilla/handlers"
	"github.com/gorilla/mux"
	"github.com/klauspost/compress/gzhttp"
	echo4 "github.com/labstack/echo/v4"
	echo4middleware "github.com/labstack/echo/v4/middleware"
	echo5 "github.com/labstack/echo/v5"
	echo5middleware "github.com/labstack/echo/v5/middleware"
	"github.com/urfave/negroni/v3"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/latchkey-go/latchkey/examples/routers/adapt"
	"github.com/latchkey-go/latchkey/middleware"
)

// ginTimeout is made once: each New gives all of them another pool of buffers.
var ginTimeout = sync.OnceValue(func() gin.HandlerFunc { return gintimeout.New(gintimeout.WithTimeout(time.Hour)) })

// hints are what these take for the final status.
var hints = []string{"early hints"}

var programs = []program{
	{name: "net/http", new: func(e *env) http.Handler { return e.mux() }},
	{name: "http.TimeoutHandler outside", unfit: hints, keeps: true, late: true, new: func(e *env) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/orders/{id}", http.TimeoutHandler(e.std()(e), e.timeout(), "too late"))
		return mux
	}},
	{name: "decompressor", http1: true, new: func(e *env) http.Handler { return decompress(e.mux()) }},
	{name: "MaxBytesHandler", http1: true, new: func(e *env) http.Handler { return http.MaxBytesHandler(e.mux(), 1000) }},
	{name: "scs sessions", new: newSessions},
	{name: "etag", unfit: hints, keeps: true, new: func(e *env) http.Handler { return withEtag(e.mux()) }},
	{name: "klauspost gzhttp", new: func(e *env) http.Handler { return gzhttp.GzipHandler(e.mux()) }},
	{name: "klauspost gzhttp inside", new: func(e *env) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/orders/{id}", e.std()(gzhttp.GzipHandler(e)))
		return mux
	}},
	{name: "negroni", new: func(e *env) http.Handler {
		recovery := negroni.NewRecovery()
		recovery.Logger, recovery.PrintStack = log.New(io.Discard, "", 0), false
		n := negroni.New(negroni.HandlerFunc(func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
			next(w, r)
			e.see(w.(negroni.ResponseWriter).Status(), w.(negroni.ResponseWriter).Size())
		}), recovery)
		n.UseHandler(e.mux())
		return n
	}},
	{name: "otelhttp outside", http1: true, new: func(e *env) http.Handler { return otelhttp.NewHandler(e.mux(), "shop") }},
	{name: "otelhttp inside", http1: true, new: func(e *env) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/orders/{id}", e.std()(otelhttp.NewHandler(e, "settle")))
		return mux
	}},
	{name: "reverse proxy outside", new: func(e *env) http.Handler { return e.proxy(e.mux()) }},
	{name: "reverse proxy inside", http1: true, proxies: true, new: func(e *env) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/orders/{id}", e.std()(e.proxy(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.SetPathValue("id", "7")
			e.ServeHTTP(w, r)
		}))))
		return mux
	}},
	{name: "chi", late: true, new: newChi},
	{name: "huma", new: newHuma},
	{name: "gorilla/handlers", new: func(e *env) http.Handler { return e.gorilla(e.mux()) }},
	{name: "gorilla/mux", new: func(e *env) http.Handler {
		r := mux.NewRouter()
		r.Handle("/orders/{id}", e.std(middleware.PathValues(mux.Vars))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.SetPathValue("id", mux.Vars(r)["id"])
			e.ServeHTTP(w, r)
		})))
		return r
	}},
	{name: "gin", unfit: hints, new: func(e *env) http.Handler { return e.newGin((*gin.Context).AbortWithError) }},
	{name: "gin, gzip and cors", unfit: hints, new: func(e *env) http.Handler {
		return e.newGin((*gin.Context).AbortWithError, cors.New(cors.Config{AllowAllOrigins: true, ExposeHeaders: []string{"Retry-After"}}), gingzip.Gzip(gzip.BestSpeed))
	}},
	{name: "gin, body logger", unfit: hints, new: func(e *env) http.Handler {
		return e.newGin((*gin.Context).AbortWithError, func(c *gin.Context) {
			c.Writer = &bodyLogger{ResponseWriter: c.Writer}
			c.Next()
		})
	}},
	{name: "gin, gzip inside", unfit: hints, new: func(e *env) http.Handler {
		e.inner = []gin.HandlerFunc{gingzip.Gzip(gzip.BestSpeed)}
		return e.newGin((*gin.Context).AbortWithError)
	}},
	{name: "gin, timeout outside", unfit: []string{"early hints", "events", "trailers"}, keeps: true, new: func(e *env) http.Handler {
		return e.newGin((*gin.Context).AbortWithError, ginTimeout())
	}},
	{name: "gin, errors written by a handler in front", unfit: hints, new: func(e *env) http.Handler {
		leave := func(c *gin.Context, _ int, err error) *gin.Error { return c.Error(err) }
		return e.newGin(leave, func(c *gin.Context) {
			c.Next()
			if len(c.Errors) > 0 && !c.Writer.Written() {
				status, text := statusOf(c.Errors.Last().Err)
				c.JSON(status, gin.H{"error": text})
			}
		})
	}},
	{name: "echo v4", unfit: hints, returns: true, new: func(e *env) http.Handler { return e.newEcho4() }},
	{name: "echo v4, gzip", unfit: hints, returns: true, new: func(e *env) http.Handler { return e.newEcho4(echo4middleware.Gzip()) }},
	{name: "echo v4, timeout", unfit: hints, returns: true, late: true, new: func(e *env) http.Handler {
		return e.newEcho4(echo4middleware.ContextTimeout(e.timeout()), echo4middleware.Decompress())
	}},
	{name: "http.TimeoutHandler around echo v4", unfit: []string{"early hints", "events", "trailers", "flush"}, returns: true, late: true, keeps: true, new: func(e *env) http.Handler {
		return http.TimeoutHandler(e.counted(e.newEcho4()), e.timeout(), "too late")
	}},
	{name: "echo v5", unfit: hints, returns: true, new: func(e *env) http.Handler { return e.newEcho5() }},
	{name: "echo v5, gzip", unfit: hints, returns: true, new: func(e *env) http.Handler { return e.newEcho5(echo5middleware.Gzip()) }},
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(v)
}

// decompress is what several published packages do: the body is another, and the length stays that of the compressed one.
func decompress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			defer z.Close()
			r.Body = z
		}
		next.ServeHTTP(w, r)
	})
}

// withEtag keeps each response until it knows the hash of the body, as published packages for ETag do, and caches.
func withEtag(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept := &keeper{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(kept, r)
		if kept.status == http.StatusOK {
			w.Header().Set("Etag", fmt.Sprintf("%q", fmt.Sprint(crc32.ChecksumIEEE(kept.Bytes()))))
		}
		w.WriteHeader(kept.status)
		_, _ = w.Write(kept.Bytes())
	})
}

// keeper is a http.ResponseWriter and no more.
type keeper struct {
	bytes.Buffer
	header http.Header
	status int
}

func (k *keeper) Header() http.Header    { return k.header }
func (k *keeper) WriteHeader(status int) { k.status = status }

// newSessions sets a cookie with the header of each response.
func newSessions(e *env) http.Handler {
	sessions := scs.New()
	mux := e.mux()
	return sessions.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sessions.Put(r.Context(), "seen", "now")
		mux.ServeHTTP(w, r)
	}))
}

// proxy stands in front of a server of its own.
func (e *env) proxy(upstream http.Handler) http.Handler {
	target, err := url.Parse(e.serve(http1, upstream, io.Discard))
	if err != nil {
		e.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	transport := &http.Transport{DisableCompression: true}
	e.close = append(e.close, transport.CloseIdleConnections)
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	if e.work.events > 0 {
		proxy.FlushInterval = -1 // as for lines, whose type does not ask for it
	}
	return proxy
}

// newChi mounts a router with the guard in one that compresses, strips slashes and recovers.
func newChi(e *env) http.Handler {
	orders := chi.NewRouter()
	orders.With(e.std()).Handle("/{id}", e)
	r := chi.NewRouter()
	r.Use(chimiddleware.RequestLogger(requestLog{e}), chimiddleware.Recoverer, chimiddleware.Compress(5), chimiddleware.StripSlashes,
		chimiddleware.Timeout(e.timeout()))
	r.Mount("/orders", orders)
	return r
}

// see notes what a log of requests says.
func (e *env) see(status, size int) { e.seen = [2]int{status, max(0, size)} }

// requestLog is chi's log of requests and of their panics.
type requestLog struct{ *env }

func (l requestLog) NewLogEntry(*http.Request) chimiddleware.LogEntry { return l }
func (l requestLog) Write(status, size int, _ http.Header, _ time.Duration, _ any) {
	l.see(status, size)
}
func (l requestLog) Panic(any, []byte) {}

// bodyLogger keeps what is written, as many programs do for their logs. It has no method Unwrap.
type bodyLogger struct {
	gin.ResponseWriter
	body []byte
}

func (l *bodyLogger) Write(p []byte) (int, error) {
	l.body = append(l.body, p...)
	return l.ResponseWriter.Write(p)
}

// newHuma has an operation behind chi's middleware.
func newHuma(e *env) http.Handler {
	r := chi.NewRouter()
	config := huma.DefaultConfig("shop", "1")
	config.OpenAPIPath, config.DocsPath, config.SchemasPath, config.CreateHooks = "", "", "", nil
	api := humachi.New(r.With(chimiddleware.Compress(5), e.std()), config)
	type contextKey struct{}
	api.UseMiddleware(func(c huma.Context, next func(huma.Context)) { next(huma.WithValue(c, contextKey{}, c)) })
	operation := huma.Operation{OperationID: "settle", Method: e.work.method, Path: "/orders/{id}"}
	if operation.Method == "" {
		operation.Method = http.MethodPost
	}
	type input struct{}
	type output struct {
		Status int
		Body   any
	}
	run := func(ctx context.Context) (*output, error) {
		r, w := humachi.Unwrap(ctx.Value(contextKey{}).(huma.Context))
		out := new(output)
		err := e.run(w, r, func(status int, v any) error { *out = output{status, v}; return nil })
		if err != nil {
			status, text := statusOf(err)
			err = huma.NewError(status, text)
		}
		return out, err
	}
	if e.work.typed {
		huma.Register(api, operation, func(ctx context.Context, _ *input) (*output, error) { return run(ctx) })
	} else {
		huma.Register(api, operation, func(ctx context.Context, _ *input) (*huma.StreamResponse, error) {
			_, err := run(ctx)
			return &huma.StreamResponse{Body: func(huma.Context) {}}, err
		})
	}
	return r
}

// gorilla has the usual handlers around next.
func (e *env) gorilla(next http.Handler) http.Handler {
	recovery := handlers.RecoveryHandler(handlers.RecoveryLogger(log.New(io.Discard, "", 0)))
	formatter := func(_ io.Writer, p handlers.LogFormatterParams) { e.see(p.StatusCode, p.Size) }
	return handlers.CustomLoggingHandler(io.Discard, recovery(handlers.CompressHandler(next)), formatter)
}

// newGin has the guard behind handlers of others, in front of one that fails in its own way.
func (e *env) newGin(fail func(*gin.Context, int, error) *gin.Error, outer ...gin.HandlerFunc) http.Handler {
	r := gin.New()
	r.Use(func(c *gin.Context) {
		c.Next()
		e.see(c.Writer.Status(), c.Writer.Size())
	})
	r.Use(gin.RecoveryWithWriter(io.Discard))
	r.Use(outer...)
	chain := append([]gin.HandlerFunc{e.gin()}, e.inner...)
	r.Any("/orders/:id", append(chain, func(c *gin.Context) {
		c.Request.SetPathValue("id", c.Param("id"))
		if err := e.run(c.Writer, c.Request, func(status int, v any) error { c.JSON(status, v); return nil }); err != nil {
			status, _ := statusOf(err)
			_ = fail(c, status, err)
		}
	})...)
	return r
}

// newEcho4 has the guard behind middleware of others.
func (e *env) newEcho4(outer ...echo4.MiddlewareFunc) http.Handler {
	r := echo4.New()
	r.Logger.SetOutput(io.Discard)
	r.Use(func(next echo4.HandlerFunc) echo4.HandlerFunc {
		return func(c echo4.Context) error {
			if err := next(c); err != nil {
				c.Error(err)
			}
			e.see(c.Response().Status, int(c.Response().Size))
			return nil
		}
	}, echo4middleware.Recover())
	r.Use(outer...)
	handler := func(c echo4.Context) error {
		c.Request().SetPathValue("id", c.Param("id"))
		err := e.run(c.Response(), c.Request(), c.JSON)
		if f, ok := err.(*failure); ok {
			return echo4.NewHTTPError(f.status, f.text)
		}
		return err
	}
	if e.guard == nil {
		r.Any("/orders/:id", handler)
	} else {
		r.Any("/orders/:id", handler, adapt.Echo(e.std()))
	}
	return r
}

// newEcho5 is newEcho4 for version 5.
func (e *env) newEcho5(outer ...echo5.MiddlewareFunc) http.Handler {
	r := echo5.New()
	r.Logger = slog.New(slog.DiscardHandler)
	r.Use(echo5middleware.Recover())
	r.Use(outer...)
	handler := func(c *echo5.Context) error {
		c.Request().SetPathValue("id", c.Param("id"))
		err := e.run(c.Response(), c.Request(), c.JSON)
		if f, ok := err.(*failure); ok {
			return echo5.NewHTTPError(f.status, f.text)
		}
		return err
	}
	if e.guard == nil {
		r.Any("/orders/:id", handler)
	} else {
		r.Any("/orders/:id", handler, adapt.Echo5(e.std()))
	}
	return r
}
