package interop

import (
	"context"
	"testing"

	"github.com/latchkey-go/latchkey/keyexpr"
	"github.com/latchkey-go/latchkey/keyexpr/spel"
)

// keyScenarios are those of keys that Java joins together of a request.
var keyScenarios = []scenario{
	{name: "61_keys_that_are_joined", play: joinedKeys, long: true},
}

// purchase is a request of which both sides make a key.
type purchase struct {
	Shop string `json:"shop"`
	ID   string `json:"id"`
}

// purchases are a plain one, and those in which a template without raw would escape something.
var purchases = []purchase{{"berlin", "42"}, {"a b", " 7 "}, {"50%", "%20"}, {"{x}", "y}"}, {"a:b", "c:d"}, {"Grün", "東京 🔑"}, {"line\nend", "\x00"}}

// joined is what Java gives to getLock.
func (p purchase) joined() string { return "order:" + p.Shop + ":" + p.ID }

// keySource is a template, or an expression of Java.
type keySource interface {
	Expand(ctx context.Context, facts keyexpr.Facts) ([]string, error)
}

// joining are the two ways in which Go makes the key of Java.
func joining(tb testing.TB) map[string]keySource {
	tb.Helper()
	roots := keyexpr.Roots{"req": keyexpr.TypeFor[purchase]()}
	return map[string]keySource{
		"raw":  must[*keyexpr.Template](tb)(keyexpr.Parse("order:#{raw(req.Shop)}:#{raw(req.ID)}", roots)),
		"spel": must[*keyexpr.Template](tb)(spel.Redisson(`"order:" + order.getShop() + ":" + order.getId()`, spel.Params("order")).Parse(roots)),
	}
}

// keyOf is the key in Go.
func keyOf(tb testing.TB, source keySource, p purchase) string {
	tb.Helper()
	return must[[]string](tb)(source.Expand(context.Background(), func(string) (any, error) { return p, nil }))[0]
}

// joinedKeys: who holds the lock on one side keeps out the other, whatever is in the request.
func joinedKeys(t *testing.T, on setting) {
	w := newWorld(t, on)
	for name, source := range joining(t) {
		for _, p := range purchases {
			java, _ := w.pair(p.joined())
			_, golang := w.pair(keyOf(t, source, p))
			for _, sides := range [][2]mutex{{java, golang}, {golang, java}} {
				w.take(sides[0], "a", 0)
				if r := sides[1].take("b", 0, 0); r.ok || r.err != nil {
					t.Errorf("%s, %q: two holders, as %v gets in beside %v (%v)", name, p, sides[1], sides[0], r.err)
					sides[1].unlock("b")
				}
				w.release(sides[0], "a")
			}
		}
	}
	w.clean()
}
