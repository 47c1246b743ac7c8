package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/route"
	"github.com/latchkey-go/latchkey/internal/view"
	"github.com/latchkey-go/latchkey/keyexpr"
)

const defaultBodyLimit = 1 << 20

// An Option changes one thing about middleware. Where options contradict each other, the last wins.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	view      view.Reader
	bodyRoot  keyexpr.Root
	decode    func([]byte, names) (any, error)
	json      func(*http.Request) bool // reports whether the body is JSON
	bodyLimit int64
	queryOnly bool // and no form, is what the handler reads
	path      keyexpr.Root
	vars      func(*http.Request) map[string]string // nil for those of net/http
	facts     map[string]appFact
	statuses  statuses
	respond   func(http.ResponseWriter, *http.Request, Problem)
	fallback  func(http.ResponseWriter, *http.Request, error)
	ahead     ahead
	faults    []error
}

// newConfig applies opts to the defaults and reports every mistake.
func newConfig(opts []Option) (config, error) {
	c := config{bodyLimit: defaultBodyLimit, path: keyexpr.AnyName(), statuses: defaultStatuses(), respond: respond, json: isJSON}
	Body[any]().apply(&c)
	for _, o := range opts {
		switch o := o.(type) {
		case nil:
			c.faulty("nil option")
		case optionFunc:
			o.apply(&c)
		case interface{ View() view.Reader }: // ginguard's, which comes first
			c.view = o.View()
			c.json = c.view.JSON
		default: // such as ginguard's, which want more than a request of net/http
			c.faulty("an option of another package (%T): give it to New of that package", o)
		}
	}
	return c, errors.Join(c.faults...)
}

func (c *config) faulty(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// Body gives the JSON body a type, so that templates are checked against its fields at start: body.OrderID, by their Go
// names. Give it the type that the handler decodes into, and both read the same out of every body, since encoding/json
// also takes ID for a field id. A field that the body lacks has its zero value: make it a pointer where 0 or false is
// no key.
//
// Without Body, members go by their exact names: body.order_id. A body that spells such a name in other letters only, as
// Order_ID, is refused where the name is used, as the handler would find it. Whole numbers are whole numbers; one with a
// fraction or an exponent is no key.
//
// With and without it, an object with one name twice, or with two that differ only in case, is refused: readers of JSON do
// not agree on what it says.
func Body[T any]() Option {
	return optionFunc(func(c *config) {
		c.bodyRoot, c.decode = keyexpr.TypeFor[T](), decode[T]
		if reflect.TypeFor[T]() == reflect.TypeFor[any]() {
			c.decode = readJSON
		}
	})
}

// BodyIsJSON is for handlers that decode the body as JSON whatever its Content-Type says. Without it, a key from the body
// takes those of no type, of application/json and of types that end in +json; any other is answered with 415, as a handler
// that goes by the type would read other facts.
func BodyIsJSON() Option {
	return optionFunc(func(c *config) { c.json = func(*http.Request) bool { return true } })
}

// QueryOnly is for handlers that read the values of the query from the URL alone, as [http.Request.URL] has them. Without it,
// a key from the query refuses requests whose body is a form, with 415: FormValue and its like prefer a value in the body.
func QueryOnly() Option { return optionFunc(func(c *config) { c.queryOnly = true }) }

// PathValues is for routers that keep path values elsewhere than [http.Request.PathValue]: vars returns those of a request.
// With gorilla/mux, it is mux.Vars.
func PathValues(vars func(*http.Request) map[string]string) Option {
	return optionFunc(func(c *config) {
		if vars == nil {
			c.faulty("nil function in PathValues")
		}
		c.vars = vars
	})
}

// BodyLimit bounds the bodies that are read for a key, in bytes; the default is 1 MiB. A larger one is answered with 413.
// It does not bound what the handler reads where no key uses the body.
func BodyLimit(n int64) Option {
	return optionFunc(func(c *config) {
		if n < 1 {
			c.faulty("a body limit must be at least 1 byte, not %d", n)
			return
		}
		c.bodyLimit = n
	})
}

// ReadAhead reads every body before waiting for the lock, up to BodyLimit, also where no key uses it, and the handler
// reads it again. Over HTTP/1, a server notices that its client hung up only once the body was read; until then, a
// request stays in line for all of the guard's wait, and its handler runs for nobody. A slow upload is also over before
// the lock is taken.
//
// Most guards need no option: without one, a guard that waits reads bodies ahead that come over HTTP/1 and announce a
// length of up to 64 KiB, and at most that much of them. It reads none that the client waits to send (Expect:
// 100-continue). A guard that is switched off, or to shadow mode, reads nothing ahead.
func ReadAhead() Option { return optionFunc(func(c *config) { c.ahead = readAll }) }

// Stream reads no body ahead. The handler gets it as it comes, and a client that hangs up while it waits may stay
// unnoticed: see ReadAhead.
func Stream() Option { return optionFunc(func(c *config) { c.ahead = readNone }) }

// Pattern names the route, as in [http.ServeMux]: "POST /orders/{id}". With it, path.idd is a mistake found at start;
// without it, one that is found by the first request.
func Pattern(pattern string) Option {
	return optionFunc(func(c *config) {
		names, err := route.Check(pattern)
		if err != nil {
			c.faults = append(c.faults, err)
			return
		}
		c.path = keyexpr.Names(names...)
	})
}

// Status replaces the status for one way of failing, which is one of the errors in the table of the package comment:
// guard.ErrBusy with 423 or 429, for instance. It must be a status that says the same: of 4xx for guard.ErrKey, 409, 423,
// 429 or 503 for guard.ErrBusy, and of 5xx for the others.
func Status(failure error, status int) Option {
	return optionFunc(func(c *config) {
		if err := c.statuses.replace(failure, status); err != nil {
			c.faults = append(c.faults, err)
		}
	})
}

// Respond replaces what is written for a problem. The headers Content-Type and Retry-After are set before f is called,
// and f may change them. The status is the problem's if f writes none. f is not called for a client that has gone.
func Respond(f func(http.ResponseWriter, *http.Request, Problem)) Option {
	return optionFunc(func(c *config) {
		if f == nil {
			c.faulty("nil function in Respond")
			return
		}
		c.respond = f
	})
}

// Fallback runs in place of the handler when a lock is busy or the lock service out, without the lock: it may answer from
// a cache, or accept the request for later. It is the policy guard.RunFallback for both, unless the guard says otherwise.
// err is a *guard.Error and says which it was.
func Fallback(f func(w http.ResponseWriter, r *http.Request, err error)) Option {
	return optionFunc(func(c *config) {
		if f == nil {
			c.faulty("nil function in Fallback")
			return
		}
		c.fallback = f
	})
}

// abilities are those of this adapter.
func (c *config) abilities() []adapter.Ability {
	can := []adapter.Ability{adapter.ServesMethods}
	if c.fallback != nil {
		can = append(can, adapter.ServesFallback)
	}
	return can
}
