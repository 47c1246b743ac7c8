package middleware

import (
	"bytes"
	"io"
	"net/http"
	"reflect"
	"regexp"

	"github.com/latchkey-go/latchkey/guard"
	"github.com/latchkey-go/latchkey/guard/adapter"
	"github.com/latchkey-go/latchkey/internal/roots"
	"github.com/latchkey-go/latchkey/keyexpr"
)

// appFact is a root of the application's own.
type appFact struct {
	root keyexpr.Root
	of   func(*http.Request) (any, error)
}

// requestRoot is the name under which a key function of package guard looks for its request. It is not offered to
// templates, which could otherwise make a key of a network address.
const requestRoot = "req"

// offerRequest offers the request to a guard that has a key function for it in place of a template.
func (c *config) offerRequest(g *guard.Guard) {
	if adapter.RequestType(g) == reflect.TypeFor[*http.Request]() {
		WithFacts(requestRoot, func(r *http.Request) (*http.Request, error) { return r, nil }).apply(c)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WithFacts gives templates a root of the application's own: the claims of a token, a tenant, a session. Templates use it
// by name, and are checked at start against T. f is called at most once a request, and only where a template uses the
// root. It may read the body, up to BodyLimit: the handler reads the same bytes again.
//
//	middleware.WithFacts("claims", func(r *http.Request) (Claims, error) { return auth.Claims(r.Context()) })
//	guard.Key("basket:#{claims.Tenant}:#{claims.Subject}")
//
// The result of f decides whose fault it is that there is no key. An empty value, a nil pointer or an error that
// matches guard.ErrKey is the client's: 400. An error that matches guard.ErrOutage is a 503, any other one a 500.
//
// Prefer facts that were authenticated to those that a client just sends. None comes from network addresses, on purpose:
// behind a proxy, the address is the proxy's, and all clients would wait for each other.
func WithFacts[T any](root string, f func(*http.Request) (T, error)) Option {
	return optionFunc(func(c *config) {
		_, own := roots.HTTP(c.path, c.bodyRoot)[root]
		_, twice := c.facts[root]
		switch {
		case !identifier.MatchString(root):
			c.faulty("WithFacts: %q can't be the name of a root, which has letters, digits and _", root)
		case own:
			c.faulty("WithFacts: every request has a root %q already", root)
		case twice:
			c.faulty("WithFacts: two roots %q", root)
		case f == nil:
			c.faulty("WithFacts: nil function for root %q", root)
		default:
			if c.facts == nil {
				c.facts = make(map[string]appFact)
			}
			c.facts[root] = appFact{keyexpr.TypeFor[T](), func(r *http.Request) (any, error) { return f(r) }}
		}
	})
}

// offer is the request for a function of the application. If that reads the body, the handler reads it again.
func (f *facts) offer() *http.Request {
	if f.r.Body == nil || f.r.Body == http.NoBody {
		return f.r
	}
	r := *f.r
	r.Body = &peek{f: f}
	return &r
}

// peek is a body that is read when somebody wants it.
type peek struct {
	f    *facts
	data io.Reader
}

func (p *peek) Read(b []byte) (int, error) {
	if p.data == nil {
		data, err := p.f.body()
		if err != nil {
			p.f.unread = err
			return 0, err
		}
		p.data = bytes.NewReader(data)
	}
	return p.data.Read(b)
}

// Close leaves the body to the handler.
func (p *peek) Close() error { return nil }
