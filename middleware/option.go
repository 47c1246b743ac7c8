package middleware

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/latchkey-go/latchkey/keyexpr"
)

const defaultBodyLimit = 1 << 20

// An Option changes one thing about middleware. Where options contradict each other, the last wins.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	body      keyexpr.Root
	decode    func([]byte) (any, error)
	bodyLimit int64
	path      keyexpr.Root
	busy      int
	respond   func(http.ResponseWriter, *http.Request, Problem)
	readAhead bool
	fault     error
}

// newConfig applies opts to the defaults and reports the first mistake.
func newConfig(opts []Option) (config, error) {
	c := config{bodyLimit: defaultBodyLimit, path: keyexpr.AnyName(), busy: http.StatusConflict, respond: respond}
	Body[any]().apply(&c)
	for _, o := range opts {
		o.apply(&c)
	}
	switch {
	case c.fault != nil:
		return c, c.fault
	case c.bodyLimit < 1:
		return c, fmt.Errorf("a body limit must be at least 1 byte, not %d", c.bodyLimit)
	case c.busy != http.StatusConflict && c.busy != http.StatusLocked && c.busy != http.StatusTooManyRequests:
		return c, fmt.Errorf("a busy status is 409, 423 or 429, not %d", c.busy)
	case c.respond == nil:
		return c, errors.New("nil function in Respond")
	}
	return c, nil
}

// Body gives the JSON body a type, so that templates are checked against its fields at start: body.OrderID, by their Go
// names. Give it the type that the handler decodes into, and both read the same out of every body, since encoding/json
// also takes ID for a field id. A field that the body lacks has its zero value: make it a pointer where 0 or false is
// no key.
//
// Without Body, members go by their exact names: body.order_id. An object with two names that differ only in case is
// refused. Whole numbers are whole numbers; one with a fraction or an exponent is no key.
func Body[T any]() Option {
	return optionFunc(func(c *config) { c.body, c.decode = keyexpr.TypeFor[T](), decode[T] })
}

// BodyLimit bounds the bodies that are read for a key, in bytes; the default is 1 MiB. A larger one is answered with 413.
// It does not bound what the handler reads where no key uses the body.
func BodyLimit(n int64) Option { return optionFunc(func(c *config) { c.bodyLimit = n }) }

// ReadAhead reads every body before waiting for the lock, up to BodyLimit, also where no key uses it, and the handler
// reads it again. Over HTTP/1, a server notices that its client hung up only once the body was read: without ReadAhead,
// a request with a body that no key uses stays in line for all of the guard's wait, and its handler then runs for
// nobody. A slow upload is also over before the lock is taken. It does not fit handlers that stream.
func ReadAhead() Option { return optionFunc(func(c *config) { c.readAhead = true }) }

// Pattern names the route, as in [http.ServeMux]: "POST /orders/{id}". With it, path.idd is a mistake found at start;
// without it, one that each request is refused for.
func Pattern(pattern string) Option {
	return optionFunc(func(c *config) {
		names, err := pathNames(pattern)
		if err != nil {
			c.fault = err
			return
		}
		c.path = keyexpr.Names(names...)
	})
}

// BusyStatus is what a busy lock is answered with: 409 (the default), 423 or 429.
func BusyStatus(status int) Option { return optionFunc(func(c *config) { c.busy = status }) }

// Respond replaces what is written for a problem. The headers Content-Type and Retry-After are set before f is called; f
// may change them, and must write a status that is not a success. f is not called for a client that has gone.
func Respond(f func(http.ResponseWriter, *http.Request, Problem)) Option {
	return optionFunc(func(c *config) { c.respond = f })
}

var wildcard = regexp.MustCompile(`\{([^{}$.]+)(?:\.\.\.)?\}`)

// pathNames returns the names of the wildcards in pattern. What a pattern is, a mux of net/http decides.
func pathNames(pattern string) (names []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pattern: %v", p)
		}
	}()
	http.NewServeMux().Handle(pattern, http.NotFoundHandler())
	for _, m := range wildcard.FindAllStringSubmatch(pattern, -1) {
		names = append(names, m[1])
	}
	return names, nil
}
