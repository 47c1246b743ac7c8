package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/redisson"
)

// inspector is the part of a redisson.Client that the console uses.
type inspector interface {
	InspectKey(ctx context.Context, key string) (redisson.Object, error)
	InspectKeys(ctx context.Context, keys []string, opts ...redisson.SearchOption) iter.Seq2[redisson.Object, error]
	Objects(ctx context.Context, pattern string, opts ...redisson.SearchOption) iter.Seq2[redisson.Object, error]
	Free(ctx context.Context, f redisson.Freed) (bool, error)
	Frees(ctx context.Context, n int) ([]redisson.Freed, error)
}

// New returns the console of client's Redis, and of the guards in registry, which may be nil. It starts nothing: it
// asks Redis while somebody looks, and there is nothing to close. A guard that is switched by hand has a timer until
// that ends. The error is a nil client or a nil option.
func New(client *redisson.Client, registry *guard.Registry, opts ...Option) (http.Handler, error) {
	if client == nil {
		return nil, errors.New("console: nil client")
	}
	return newHandler(client, registry, opts)
}

func newHandler(client inspector, registry *guard.Registry, opts []Option) (*handler, error) {
	h := &handler{client: client, registry: registry, keys: newSeal(), forms: newForms()}
	for i, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("console: option %d of %d is nil", i+1, len(opts))
		}
		opt.apply(&h.config)
	}
	h.log = cmp.Or(h.log, slog.Default())
	if h.allowSwitch == nil || registry == nil {
		h.allowSwitch = func(*http.Request) error { return errNoSwitch }
	}
	h.list = newListFeed(client)
	h.locks.feeds = make(map[string]*feed[*lockState])
	h.ending, h.end = context.WithCancel(context.Background())
	h.site = h.protect()
	return h, nil
}

// handler is the console. It is safe for concurrent use.
type handler struct {
	config
	client   inspector
	registry *guard.Registry
	site     http.Handler // the pages behind all protection
	keys     *seal
	forms    *forms
	list     *feed[*listState]
	asks     sync.Map   // of filters, by text: their answers from Redis
	asking   sync.Mutex // for one at a time
	locks    lockFeeds
	switches switches
	streams  streams

	servers sync.Map           // those that will tell when they shut down
	ending  context.Context    // ends when one of them does
	end     context.CancelFunc // of ending
}

// ServeHTTP answers by the last element of the path alone, so that the console works under any prefix, whether that is
// stripped on the way or not. All links are relative.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if err := h.admit(r); err != nil {
		h.log.InfoContext(r.Context(), "console: refused", "remote", r.RemoteAddr, "error", err)
		deny(w, err)
		return
	}
	h.site.ServeHTTP(w, r)
}

// pages are by method and the last element of their path.
func (h *handler) pages() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET ": h.listPage, "GET lock": h.lockPage, "GET guards": h.guardsPage, "GET find": h.findPage, "POST find": h.find,
		"GET free": h.confirmPage, "POST free": h.free, "GET frees": h.freesPage, "GET switch": h.switchPage, "POST switch": h.switchPage,
		"GET events": h.events, "GET style.css": h.file, "GET script.js": h.file, "GET icon.svg": h.file,
	}
}

// file answers with a file of the site.
func (h *handler) file(w http.ResponseWriter, r *http.Request) {
	http.ServeFileFS(w, r, web, "web/"+path.Base(r.URL.Path))
}

// route answers what has passed all checks.
func (h *handler) route(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodPost:
	case http.MethodHead:
		method = http.MethodGet
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "The console takes GET, HEAD and POST.", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if page := h.pages()[method+" "+r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]; page != nil {
		page(w, r)
		return
	}
	h.problem(w, http.StatusNotFound, "There is no such page", "The link may be from another version of the console.")
}

// maxForm bounds what a form may send, in bytes: a key of 10 KiB, escaped, and a pasted request beside it.
const maxForm = 256 << 10

// frame has the values for the layout of all pages.
type frame struct {
	Title  string
	Page   string       // the link in the navigation that is this page
	Stream template.URL // of live updates; empty if there are none
	Again  template.URL // this page
	Other  template.URL // this page, coming again by itself
	Every  int          // seconds after which a browser without JavaScript loads it again; 0 is never
	Body   any
}

// problem answers with a page about an error.
func (h *handler) problem(w http.ResponseWriter, status int, title, detail string) {
	h.render(w, status, "problem", frame{Title: title, Body: detail})
}
