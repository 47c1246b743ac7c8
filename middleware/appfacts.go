package middleware

import (
	"net/http"
	"regexp"

	"github.com/latchkey-go/latchkey/guard"
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

// offerRequest offers the request to a guard that has a key function in place of a template.
func (c *config) offerRequest(g *guard.Guard) {
	if _, given := c.facts[requestRoot]; given || g.Spec().Key != "" {
		return
	}
	WithFacts(requestRoot, func(r *http.Request) (*http.Request, error) { return r, nil }).apply(c)
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// WithFacts gives templates a root of the application's own: the claims of a token, a tenant, a session. Templates use it
// by name, and are checked at start against T. It is asked for at most once a request, and only where a template uses
// it; the request still has its body, which f must not read.
//
//	middleware.WithFacts("claims", func(r *http.Request) (Claims, error) { return auth.Claims(r.Context()) })
//	guard.Key("basket:#{claims.Tenant}:#{claims.Subject}")
//
// What f returns decides whose fault it is that there is no key. An empty value, a nil pointer or an error that matches
// guard.ErrKey is the client's: 400. An error that matches guard.ErrOutage is a 503, any other one a 500.
//
// Prefer facts that were authenticated to those that a client just sends. None comes from network addresses, on purpose:
// behind a proxy, the address is the proxy's, and all clients would wait for each other.
func WithFacts[T any](root string, f func(*http.Request) (T, error)) Option {
	return optionFunc(func(c *config) {
		_, own := c.own()[root]
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
